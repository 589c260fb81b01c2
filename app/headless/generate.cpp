// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/generate.h"

#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/json_object.h"
#include "headless/verbs.h"

namespace sluice::headless {
namespace {

Result<GenerateOptions> options_of(const Args& args) {
  GenerateOptions options;
  if (args.has("--prompt") == args.has("--prompt-file")) return invalid_argument("give either --prompt or --prompt-file");
  options.prompt = args.text("--prompt");
  if (args.has("--prompt-file")) {
    std::ifstream in(args.text("--prompt-file"), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return invalid_argument("prompt file " + args.text("--prompt-file") + " can't be read");
    options.prompt = text.str();
  }
  options.model_path = args.text("--model");
  options.adapter_folder = args.text("--adapter");
  options.raw = args.has("--raw");
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t tokens, args.integer("--max-tokens", 128, 0, 1'000'000));
  SLUICE_ASSIGN_OR_RETURN(const double temperature, args.number("--temperature", 0, 0, 2));
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t seed, args.integer("--seed", 0, 0, INT64_MAX));
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t threads, args.integer("--threads", 0, 0, 256));
  options.max_tokens = static_cast<int>(tokens);
  options.temperature = static_cast<float>(temperature);
  options.seed = static_cast<std::uint64_t>(seed);
  options.threads = static_cast<int>(threads);
  return options;
}

}  // namespace

int generate(const Args& args, Log&) {
  const auto options = options_of(args);
  if (!options.ok()) return fail(options.status(), true);
  const auto answer = generate_once(*options);
  if (!answer.ok()) return fail(answer.status());
  if (!args.has("--json")) {
    std::printf("%s\n", answer->text.c_str());
    return 0;
  }
  JsonObject object;
  object.add("prompt_ids", answer->prompt_ids).add("token_ids", answer->token_ids).add("text", answer->text);
  if (args.has("--logprobs")) object.add("logprobs", answer->logprobs);
  object.add("finish_reason", answer->finish_reason).add("adapter", answer->adapter).add("seconds", answer->seconds);
  std::printf("%s\n", object.text().c_str());
  return 0;
}

}  // namespace sluice::headless
