// SPDX-License-Identifier: GPL-3.0-or-later
// model_bench FILE [threads]: tokens per second of decode (batch 1, 4, 8, without and with an adapter), of prefill, and
// of a training step's forward and backward pass. One line a measurement.
#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/ones.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include "model/lora.h"
#include "model/lora_at.h"
#include "model/train_forward_at.h"
#include "model/transformer.h"
#include "model/weights.h"

namespace sluice {
namespace {

// Wall time, or the processor time of all threads (SLUICE_BENCH_CPU set): for a machine with other work on it.
double now() {
  timespec t{};
  clock_gettime(std::getenv("SLUICE_BENCH_CPU") != nullptr ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

double seconds(const std::function<void()>& fn) {
  const double begin = now();
  fn();
  return now() - begin;
}

std::vector<TokenId> some_ids(int n, int vocab, int seed) {
  std::vector<TokenId> ids;
  for (int i = 0; i < n; ++i) ids.push_back(3 + (i * 7919 + seed * 104729) % (vocab - 3));
  return ids;
}

void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

void decode(const Model& model, std::shared_ptr<const Adapter> adapter, int batch, int threads) {
  auto context = model.make_context({.kv_tokens = 16384, .threads = threads});
  SamplingParams params;
  params.temperature = 0.7f;
  std::vector<std::vector<TokenId>> prompts, generated(static_cast<std::size_t>(batch));
  std::vector<SequenceHandle> handles;
  for (int i = 0; i < batch; ++i) {
    prompts.push_back(some_ids(64, model.info().vocab_size, i));
    auto opened = context->open(adapter, prompts.back(), 512);
    if (!opened.ok()) check(opened.status());
    handles.push_back(opened->handle);
    StepItem item{opened->handle, prompts.back().data(), 63};
    auto done = context->step({{item}});
    if (!done.ok()) check(done.status());
  }
  const auto steps = [&](int n) {
    for (int s = 0; s < n; ++s) {
      StepInput input;
      for (std::size_t i = 0; i < handles.size(); ++i) {
        const TokenId* last = generated[i].empty() ? &prompts[i].back() : &generated[i].back();
        input.items.push_back({handles[i], last, 1, true, &params, &generated[i], &prompts[i]});
      }
      auto output = context->step(input);
      if (!output.ok()) check(output.status());
      for (std::size_t i = 0; i < handles.size(); ++i) generated[i].push_back(output->results[i].sampled.token);
    }
  };
  steps(8);
  constexpr int kSteps = 64;
  double best = 1e9;
  for (int r = 0; r < 3; ++r) best = std::min(best, seconds([&] { steps(kSteps); }));
  std::printf("decode batch %d%s: %.1f tokens/s\n", batch, adapter ? " with adapter" : "", batch * kSteps / best);
}

void prefill(const Model& model, int tokens, int chunk, int threads) {
  auto context = model.make_context({.kv_tokens = 16384, .threads = threads, .prefix_cache = false});
  const auto prompt = some_ids(tokens, model.info().vocab_size, 1);
  double best = 1e9;
  for (int r = 0; r < 2; ++r) {
    auto opened = context->open(nullptr, prompt, tokens);
    if (!opened.ok()) check(opened.status());
    best = std::min(best, seconds([&] {
      for (int first = 0; first < tokens; first += chunk) {
        auto done = context->step({{StepItem{opened->handle, prompt.data() + first, std::min(chunk, tokens - first)}}});
        if (!done.ok()) check(done.status());
      }
    }));
    context->close(opened->handle);
  }
  std::printf("prefill %d in chunks of %d: %.1f tokens/s (%.1f ms)\n", tokens, chunk, tokens / best, best * 1e3);
}

void train(const TransformerWeights& weights, int samples, int prompt, int response, bool checkpoint) {
  LoraConfig config;
  config.rank = 8;
  config.alpha = 16;
  auto lora = init_lora(weights.config, config, 1);
  if (!lora.ok()) check(lora.status());
  std::vector<TokenId> ids;
  std::vector<std::int32_t> positions, starts{0};
  std::vector<std::int64_t> rows, targets;
  for (int s = 0; s < samples; ++s) {
    const auto part = some_ids(prompt + response, weights.config.vocab, s);
    for (int i = 0; i < prompt + response; ++i) {
      if (i >= prompt) rows.push_back(starts.back() + i - 1), targets.push_back(part[static_cast<std::size_t>(i)]);
      ids.push_back(part[static_cast<std::size_t>(i)]);
      positions.push_back(i);
    }
    starts.push_back(static_cast<std::int32_t>(ids.size()));
  }
  const auto m = static_cast<std::int64_t>(rows.size());
  const at::Tensor index = at::from_blob(rows.data(), {m}, at::kLong), target = at::from_blob(targets.data(), {m}, at::kLong);
  double forward = 1e9, both = 1e9;
  for (int r = 0; r < 3; ++r) {
    double first = 0;
    const double total = seconds([&] {
      at::Tensor loss;
      first = seconds([&] {
        auto hidden = train_forward(weights, &*lora, {ids, positions, starts}, {.checkpoint = checkpoint});
        if (!hidden.ok()) check(hidden.status());
        auto out = chunked_logprob(weights, hidden->index_select(0, index), target, at::ones({m}));
        if (!out.ok()) check(out.status());
        loss = out->lp.mean();
      });
      loss.backward();
    });
    forward = std::min(forward, first);
    both = std::min(both, total);
  }
  std::printf("train %d x (%d + %d)%s: %.1f tokens/s (forward %.2f s, all %.2f s)\n", samples, prompt, response,
              checkpoint ? " checkpointed" : "", static_cast<double>(ids.size()) / both, forward, both);
}

int run(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "model_bench FILE [threads] [what]\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const int threads = argc > 2 ? std::atoi(argv[2]) : 1;
  const std::string what = argc > 3 ? argv[3] : "all";
  at::set_num_threads(threads);
  LoadedModel loaded;
  std::printf("load: ");
  std::printf("%.2f s\n", seconds([&] {
    auto result = load_model(argv[1]);
    if (!result.ok()) check(result.status());
    loaded = *std::move(result);
  }));
  const auto weights = model_weights(*loaded.model);
  LoraConfig config;
  config.rank = 8;
  auto lora = init_lora(weights->config, config, 1);
  if (!lora.ok()) check(lora.status());
  const auto adapter = std::make_shared<LoraAdapter>(weights->config, lora_to_data(*lora), VersionId(1));
  if (what == "all" || what == "decode") {
    for (const int batch : {1, 4, 8}) decode(*loaded.model, nullptr, batch, threads);
    for (const int batch : {1, 8}) decode(*loaded.model, adapter, batch, threads);
  }
  if (what == "all" || what == "prefill") {
    for (const int chunk : {16, 48, 64, 128, 512}) prefill(*loaded.model, 512, chunk, threads);
  }
  if (what == "all" || what == "train") {
    for (const bool checkpoint : {false, true}) train(*weights, 4, 128, 64, checkpoint);
  }
  return 0;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) { return sluice::run(argc, argv); }
