// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/generate.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/clock.h"

namespace sluice {
namespace {

Result<std::vector<TokenId>> encode_prompt(const LoadedSystem& system, const GenerateOptions& options) {
  if (options.raw) return system.tokenizer->encode(options.prompt, {.parse_special = true, .add_special = true});
  if (!system.chat_template) return invalid_argument(system.chat_error + "; use --raw");
  std::vector<ChatMessage> messages(1);
  messages.front().role = "user";
  messages.front().content = options.prompt;
  SLUICE_ASSIGN_OR_RETURN(const auto segments, system.chat_template->render(messages));
  return encode_segments(*system.tokenizer, segments);
}

}  // namespace

Result<Generated> generate_once(const GenerateOptions& options) {
  const std::string path = options.model_path.empty() ? find_bundled_model() : options.model_path;
  if (path.empty()) return not_found("the bundled model is not here: run packaging/fetch.sh or give --model");
  SLUICE_ASSIGN_OR_RETURN(const LoadedSystem system, load_system(path));
  std::shared_ptr<const Adapter> adapter;
  if (!options.adapter_folder.empty()) {
    SLUICE_ASSIGN_OR_RETURN(adapter, system.model->adapter_loader().load(options.adapter_folder, VersionId(1)));
  }
  Generated out;
  out.adapter = adapter ? options.adapter_folder : "base";
  SLUICE_ASSIGN_OR_RETURN(out.prompt_ids, encode_prompt(system, options));
  const int context = system.model->info().context_length;
  const int prompt = static_cast<int>(out.prompt_ids.size());
  if (prompt == 0) return invalid_argument("the prompt is empty");
  if (prompt >= context) {
    return invalid_argument("the prompt has " + std::to_string(prompt) + " tokens; this model's maximum context length is " +
                            std::to_string(context) + " tokens");
  }
  const int budget = std::clamp(options.max_tokens, 0, context - prompt);

  ContextOptions context_options;
  context_options.kv_tokens = std::max(1024, prompt + budget + 64);
  context_options.threads = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const auto model_context = system.model->make_context(context_options);
  const SteadyTime begin = Clock::system().steady();
  SLUICE_ASSIGN_OR_RETURN(const OpenedSequence opened, model_context->open(adapter, out.prompt_ids, prompt + budget));
  SamplingParams sampling;
  sampling.temperature = options.temperature;
  sampling.seed = options.seed;
  out.finish_reason = "length";
  std::vector<TokenId> feed(out.prompt_ids.begin() + opened.cached_tokens, out.prompt_ids.end());
  while (static_cast<int>(out.token_ids.size()) < budget) {
    StepItem item;
    item.sequence = opened.handle;
    item.tokens = feed.data();
    item.count = static_cast<int>(feed.size());
    item.sample = true;
    item.sampling = &sampling;
    item.generated = &out.token_ids;
    item.prompt = &out.prompt_ids;
    StepInput input;
    input.items.push_back(item);
    SLUICE_ASSIGN_OR_RETURN(const StepOutput step, model_context->step(input));
    const SampledToken& sampled = step.results.front().sampled;
    if (!sampled.finite) return internal_error("the model gave non-finite numbers for this prompt");
    out.token_ids.push_back(sampled.token);
    out.logprobs.push_back(sampled.lp_raw);
    if (system.tokenizer->is_end_of_generation(sampled.token)) {
      out.finish_reason = "stop";
      break;
    }
    feed = {sampled.token};
  }
  out.seconds = std::chrono::duration<double>(Clock::system().steady() - begin).count();
  out.text = system.tokenizer->decode(out.token_ids);
  return out;
}

}  // namespace sluice
