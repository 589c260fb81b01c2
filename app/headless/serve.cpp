// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/plain_name.h"
#include "headless/verbs.h"
#include "runtime/runtime.h"

namespace sluice::headless {
namespace {

Result<std::vector<std::string>> read_keys(const std::string& path) {
  std::ifstream in(path);
  if (!in) return not_found("key file " + path + " can't be read");
  std::vector<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    if (!line.empty() && line.front() != '#') keys.push_back(line);
  }
  if (keys.empty()) return invalid_argument("key file " + path + " holds no key: one a line");
  return keys;
}

std::vector<std::string> list_of(const Args& args, const std::string& name) {
  std::vector<std::string> items;
  std::istringstream text(args.text(name));
  for (std::string item; std::getline(text, item, ',');) {
    const auto first = item.find_first_not_of(' ');  // "a, b" is how people write a list
    if (first != std::string::npos) items.push_back(item.substr(first, item.find_last_not_of(' ') + 1 - first));
  }
  return items;
}

Result<RuntimeOptions> options_of(const Args& args) {
  RuntimeOptions options;
  options.data_folder = args.text("--data");
  options.model_path = args.text("--model");
  options.host = args.text("--host", "127.0.0.1");
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t port, args.integer("--port", 8080, 0, 65535));
  options.port = static_cast<int>(port);
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t threads, args.integer("--threads", 0, 0, 256));
  options.engine_threads = static_cast<int>(threads);
  options.deterministic = args.has("--deterministic");
  options.behind_proxy = args.has("--behind-proxy");
  options.tls_certificate = args.text("--tls-cert");
  options.tls_key = args.text("--tls-key");
  options.allowed_hosts = list_of(args, "--allowed-hosts");
  options.cors_origins = list_of(args, "--cors-origins");
  if (args.has("--aliases")) options.aliases = list_of(args, "--aliases");
  for (const std::string& alias : options.aliases) {
    if (is_plain_name(alias)) continue;
    return invalid_argument("alias \"" + alias + "\": use letters, digits, dot, dash and underscore, at most 64");
  }
  if (args.has("--compat-rlinf")) options.editor_ports = {8081, 8082};
  options.port_required = true;
  options.discard_at_bound = true;
  if (args.has("--api-key-file")) {
    SLUICE_ASSIGN_OR_RETURN(options.api_keys, read_keys(args.text("--api-key-file")));
  }
  return options;
}

}  // namespace

int serve(const Args& args, Log& log) {
  watch_signals();
  auto options = options_of(args);
  if (!options.ok()) return fail(options.status(), options.code() == Code::kInvalidArgument);
  const auto drain = args.number("--drain", 20, 0, 3600);
  if (!drain.ok()) return fail(drain.status(), true);
  auto runtime = Runtime::open(*options, log);
  if (!runtime.ok()) return fail(runtime.status());
  bool told = false;
  for (Status ready = deadline_exceeded(""); !ready.ok();) {
    ready = (*runtime)->wait_ready(0.2);
    if (!ready.ok() && ready.code() != Code::kDeadline) return fail(ready);
    if (!ready.ok() && stop_requested()) return 0;
    if (const auto state = (*runtime)->snapshot(); !ready.ok() && !told && !state->server_url.empty()) {
      std::printf("Listening on %s; requests get 503 until the model is loaded\n", state->server_url.c_str());
      std::fflush(stdout);
      told = true;
    }
  }
  const auto snapshot = (*runtime)->snapshot();
  if (args.has("--recipe") && !snapshot->session) {
    StartSession start;
    start.recipe = args.text("--recipe");
    start.live_only = true;
    const CommandOutcome started = (*runtime)->run(start);
    if (!started.ok()) return fail(started.status);
  }
  std::printf("Serving %s (%s) on %s\n", snapshot->model_name.c_str(), snapshot->serving_name.c_str(), snapshot->server_url.c_str());
  if (snapshot->session) {
    std::printf("Session %lld (\"%s\") is back, paused: POST /sluice/v1/sessions/%lld/resume goes on with it, .../end ends it%s\n",
                static_cast<long long>(snapshot->session->id.value), snapshot->session->name.c_str(),
                static_cast<long long>(snapshot->session->id.value), args.has("--recipe") ? "; --recipe starts nothing." : ".");
  }
  std::fflush(stdout);
  while (!wait_for_stop(3600)) {
  }
  std::printf("Stopping: answers in the making go on for up to %g s; a second signal ends them at once.\n", *drain);
  std::fflush(stdout);
  for (double left = *drain; left > 0 && stop_signals() < 2 && !(*runtime)->drain(std::min(left, 0.2)); left -= 0.2) {
  }
  return 0;
}

}  // namespace sluice::headless
