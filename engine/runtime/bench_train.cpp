// SPDX-License-Identifier: GPL-3.0-or-later
// What a training step takes, and the adapters that the other measurements serve.
#include <filesystem>

#include "learn_torch/step_runner.h"
#include "runtime/bench_impl.h"

namespace sluice {

// A step of the shipped recipes with answers of full length, before the first promotion and after; longer prompts.
Status Bench::train() {
  SLUICE_RETURN_IF_ERROR(need_model());
  SLUICE_RETURN_IF_ERROR(train_shape({.samples = 16, .shared = 24, .prompt = 38, .response = 96, .from_base = true}, 8));
  SLUICE_RETURN_IF_ERROR(train_shape({.samples = 16, .shared = 24, .prompt = 38, .response = 96}, 8));
  return train_shape({.samples = 16, .shared = 0, .prompt = 128, .response = 64}, 16);
}

Result<std::vector<std::shared_ptr<const Adapter>>> Bench::make_adapters(int count) {
  SLUICE_RETURN_IF_ERROR(write_adapter(folder_.path() + "/adapter", 1));
  std::vector<std::shared_ptr<const Adapter>> adapters;
  for (int i = 1; i <= count; ++i) {
    SLUICE_ASSIGN_OR_RETURN(auto adapter, system_.model->adapter_loader().load(folder_.path() + "/adapter", VersionId(i)));
    adapters.push_back(std::move(adapter));
  }
  return adapters;
}

Status Bench::write_adapter(const std::string& folder, std::uint64_t seed) {
  SLUICE_ASSIGN_OR_RETURN(const auto runner, make_step_runner(system_.model, {.lora = {}, .threads = threads_}));
  SLUICE_RETURN_IF_ERROR(runner->reset_to_base(seed));
  SLUICE_ASSIGN_OR_RETURN(const StepStats stats, runner->step(training_batch({.samples = 2, .shared = 0, .prompt = 16, .response = 8}), LearnSettings()));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  SLUICE_ASSIGN_OR_RETURN(saved_, runner->save(folder, {}));
  return {};
}

Status Bench::train_shape(const BatchShape& shape, int rank) {
  SLUICE_ASSIGN_OR_RETURN(const auto runner, make_step_runner(system_.model, {.lora = {.rank = rank}, .threads = threads_}));
  LearnSettings settings;
  if (options_.micro_batch_tokens > 0) settings.micro_batch_tokens = options_.micro_batch_tokens;
  TrainBatch batch = training_batch(shape);
  SLUICE_ASSIGN_OR_RETURN(batch.lp_full, runner->log_probs(batch));
  std::vector<StepStats> steps;
  for (int round = 0; round < 3; ++round) {
    SLUICE_ASSIGN_OR_RETURN(StepStats stats, runner->step(batch, settings));
    if (round > 0) steps.push_back(std::move(stats));
  }
  const auto middle = [&steps](double StepStats::* part) {
    std::vector<double> values;
    for (const StepStats& s : steps) values.push_back(s.*part);
    return median(std::move(values));
  };
  BenchResult result{.name = "train", .batch = shape.samples, .adapters = 1, .tokens = static_cast<int>(batch.tokens()), .answer_tokens = shape.response, .from_base = shape.from_base};
  result.seconds = middle(&StepStats::seconds);
  result.tokens_per_s = static_cast<double>(batch.tokens()) / result.seconds;
  result.reference_seconds = middle(&StepStats::reference_seconds);
  result.forward_seconds = middle(&StepStats::forward_seconds);
  result.backward_seconds = middle(&StepStats::backward_seconds);
  result.update_seconds = middle(&StepStats::update_seconds);
  result.megabytes = anonymous_megabytes();
  report(result);
  return {};
}

TrainBatch Bench::training_batch(const BatchShape& shape) const {
  const auto [samples, shared, prompt, response, from_base] = shape;
  const int vocab = system_.model->info().vocab_size;
  const auto common = some_tokens(shared, vocab, samples);
  TrainBatch b;
  b.seq_start = {0};
  b.resp_start = {0};
  for (int s = 0; s < samples; ++s) {
    auto ids = some_tokens(prompt + response, vocab, s);
    std::copy(common.begin(), common.end(), ids.begin());
    b.ids.insert(b.ids.end(), ids.begin(), ids.end());
    for (int i = 0; i < prompt + response; ++i) b.pos.push_back(i);
    for (int i = 0; i < response; ++i) {
      b.resp_index.push_back(b.seq_start.back() + prompt - 1 + i);
      b.target.push_back(ids[static_cast<std::size_t>(prompt + i)]);
      b.lp_full.push_back(-10.0f);
      b.mask.push_back(1.0f);
      b.advantage.push_back(s % 2 ? 1.0f : -1.0f);
    }
    b.seq_start.push_back(b.seq_start.back() + prompt + response);
    b.resp_start.push_back(b.resp_start.back() + response);
    b.tau.push_back(1.0f);
    b.weight.push_back(1.0f);
    b.age.push_back(1);
    b.from_base.push_back(from_base);
  }
  return b;
}

}  // namespace sluice
