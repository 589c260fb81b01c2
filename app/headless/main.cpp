// SPDX-License-Identifier: GPL-3.0-or-later
// sluice-headless: the engine of the workbench without a window, for servers, scripts and CI.
#include <csignal>
#include <cstdio>
#include <ctime>
#include <string>
#include <unistd.h>
#include <poll.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <vector>

#include "headless/verbs.h"
#include "runtime/conditions.h"

namespace sluice::headless {
namespace {

int g_signal_pipe[2] = {-1, -1};

void on_signal(int) {
  const char byte = 1;
  // Nothing can be done in a handler when the pipe is full: then a stop is asked for already.
  [[maybe_unused]] const ssize_t written = write(g_signal_pipe[1], &byte, 1);
}

const std::vector<Verb>& verbs() {
  const OptionSpec data{"--data", "DIR", "the workspace folder; made when missing", true};
  const OptionSpec model{"--model", "PATH", "a GGUF file or Hugging Face folder; default: the bundled SmolLM2-135M-Instruct", false};
  const std::string lines = "write JSON lines there (- for standard output; what is printed for people then goes to standard error)";
  const OptionSpec json{"--json", "FILE", lines, false};
  const OptionSpec demo_json{"--json", "FILE",
                             lines + ": request (verdict accept, reject, silent, or failed with the reason), step, decision, swap, summary", false};
  static const std::vector<Verb> all = {
      {{"serve", "Serves a workspace over HTTP until it is stopped; prints \"Serving ...\" once the model is loaded.",
        {data, model,
         {"--port", "N", "port, default 8080; 0 picks a free one", false},
         {"--host", "ADDR", "address, default 127.0.0.1; another one needs keys, and TLS or --behind-proxy", false},
         {"--api-key-file", "F", "one key a line; \"client:KEY\" may complete and give feedback only; # begins a comment", false},
         {"--tls-cert", "F", "PEM file with the certificate chain: HTTPS", false},
         {"--tls-key", "F", "PEM file with its key", false},
         {"--behind-proxy", "", "a proxy in front does TLS", false},
         {"--allowed-hosts", "LIST", "further names a Host header may say, with commas", false},
         {"--cors-origins", "LIST", "pages that may use the client routes, such as https://app.example, with commas", false},
         {"--aliases", "LIST", "model names that mean whatever serves, with commas, in the place of sluice", false},
         {"--compat-rlinf", "", "listens on 8081 and 8082 too, for editors of RLinf; what they leave out is as the recipe says", false},
         {"--drain", "SECONDS", "how long answers in the making may go on after a stop signal, default 20", false},
         {"--threads", "N", "cores for generation; default all, half of them while an update is trained", false},
         {"--deterministic", "", "answers are bit-equal whatever is answered beside them; slower under load", false},
         {"--recipe", "NAME|FILE", "start a live session with this recipe: labels from outside train it", false}},
        ""}, serve},
      {{"demo", "Runs a recipe with its simulated user: serve, learn, gate, swap; a line per update and a summary.",
        {data, model, {"--recipe", "NAME|FILE", "default be-brief", false},
         {"--seed", "N", "default 1", false},
         {"--max-requests", "N", "default as the recipe says", false},
         {"--port", "N", "port of the HTTP server, default any free one", false},
         {"--gate", "PROFILE", "demo, standard, strict or off; default as the recipe says", false},
         demo_json},
        ""}, demo},
      {{"generate", "Answers one prompt and prints the text.",
        {model, {"--adapter", "PATH", "a LoRA adapter: a PEFT folder or a GGUF file", false},
         {"--prompt", "TEXT", "the prompt", false},
         {"--prompt-file", "F", "reads it from a file", false},
         {"--raw", "", "no chat template: the prompt as it is", false},
         {"--max-tokens", "N", "default 128", false},
         {"--temperature", "T", "default 0: the likeliest token", false},
         {"--seed", "N", "default 0", false},
         {"--threads", "N", "cores, default all", false},
         {"--logprobs", "", "with --json: log-probability of each token", false},
         {"--json", "", "one JSON object instead of text", false}},
        ""}, generate},
      {{"bench", "Measures one part on this machine; swap: between versions in memory, from disk to visible, and what 1,000 loads and unloads leave behind.",
        {model, {"--threads", "N", "cores, default all", false},
         {"--kernels", "NAME", "instruction set, as AVX2; default the best", false},
         {"--micro-batch", "N", "train: tokens in memory at once; default as recipes have it", false}, json}, "decode|prefill|train|swap|store|memory|all"}, bench},
      {{"export", "Writes an adapter version for other programs.",
        {data, model, {"--version", "V", "the version's number", true}, {"--out", "DIR", "made; must not hold files", true},
         {"--format", "F", "peft", false}}, ""}, export_version},
      {{"verify", "Checks the database and the adapter files of a workspace.", {data}, ""}, verify},
  };
  return all;
}

void print_help() {
  std::printf("sluice-headless %s: serves a language model, learns from verdicts, lets updates in through a gate.\n\n"
              "Usage: sluice-headless [--log-level debug|info|warning|error] VERB ...\n\n", program_version());
  for (const Verb& verb : verbs()) std::printf("  %-10s %s\n", verb.spec.name.c_str(), verb.spec.summary.c_str());
  std::printf("\n\"sluice-headless VERB --help\" lists a verb's options. Exit: 0 done, 1 failed, 2 wrong usage.\n");
}

int run(std::vector<std::string> words) {
  LogLevel least = LogLevel::kWarning;
  while (!words.empty() && words.front().rfind("--", 0) == 0) {
    const std::string word = words.front();
    words.erase(words.begin());
    if (word == "--help") return print_help(), 0;
    if (word == "--version") return std::printf("sluice %s\n", program_version()), 0;
    if (word != "--log-level" || words.empty()) return fail(invalid_argument("option " + word + " is unknown: see --help"), true);
    const auto level = parse_log_level(words.front());
    if (!level.ok()) return fail(level.status(), true);
    least = *level;
    words.erase(words.begin());
  }
  if (words.empty()) return print_help(), 2;
  const std::string name = words.front();
  words.erase(words.begin());
  for (const Verb& verb : verbs()) {
    if (verb.spec.name != name) continue;
    for (const std::string& word : words) {
      if (word == "--help") return std::printf("%s", usage(verb.spec).c_str()), 0;
    }
    VerbSpec spec = verb.spec;
    spec.options.push_back({"--log-level", "LEVEL", "", false});
    const auto args = Args::parse(spec, words);
    if (!args.ok()) {
      return fail(invalid_argument(args.status().message() + "; see sluice-headless " + name + " --help"), true);
    }
    if (args->has("--log-level")) {
      const auto level = parse_log_level(args->text("--log-level"));
      if (!level.ok()) return fail(level.status(), true);
      least = *level;
    }
    Log log([](LogLevel level, std::string_view category, std::string_view text) {
      std::fprintf(stderr, "%s %.*s: %.*s\n", log_level_name(level), static_cast<int>(category.size()), category.data(),
                   static_cast<int>(text.size()), text.data());
    }, least);
    return verb.run(*args, log);
  }
  return fail(invalid_argument("verb \"" + name + "\" is unknown: see sluice-headless --help"), true);
}

}  // namespace

int fail(const Status& status, bool usage_error) {
  std::fprintf(stderr, "sluice-headless: %s\n", status.message().c_str());
  return usage_error ? 2 : 1;
}

void watch_signals() {
  if (g_signal_pipe[0] >= 0) return;
  if (pipe2(g_signal_pipe, O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool wait_for_stop(double seconds) {
  pollfd fd{g_signal_pipe[0], POLLIN, 0};
  return poll(&fd, 1, static_cast<int>(seconds * 1000)) > 0;
}

bool stop_requested() { return wait_for_stop(0); }

int stop_signals() {
  int waiting = 0;
  return ioctl(g_signal_pipe[0], FIONREAD, &waiting) == 0 ? waiting : 0;
}

}  // namespace sluice::headless

int main(int argc, char** argv) { return sluice::headless::run(std::vector<std::string>(argv + 1, argv + argc)); }
