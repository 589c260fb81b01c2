// SPDX-License-Identifier: GPL-3.0-or-later
// The decoder's step takes no memory once it is warm, but for fresh blocks of the key-value cache: operator new is counted on all
// threads while a step runs. A program of its own, since it replaces operator new.
#include <atomic>

#include "engine/model/golden.h"
#include "support/counted_new.h"

namespace {
std::atomic<bool> counting{false};
}  // namespace

bool sluice::testing::counts_new() { return counting; }

namespace sluice {
namespace {

struct Setting {
  const char* name;
  SamplingParams sampling;
  bool adapters;
};

SamplingParams sampling(float temperature, float top_p, int top_k, float penalty) {
  SamplingParams p;
  p.temperature = temperature;
  p.top_p = top_p;
  p.top_k = top_k;
  p.presence_penalty = penalty;
  return p;
}

class StepAllocation : public ::testing::TestWithParam<Setting> {};

// Penalties over ever more tokens, and over three blocks of the cache.
TEST_P(StepAllocation, DecodeTakesNoMemory) {
  constexpr int kSequences = 4, kWarm = 40, kSteps = 96, kBlock = 32;
  // A block's memory, its tokens, and its place in the tree of prefixes (a node and a list).
  constexpr int kFreshBlock = 4;
  const Setting setting = GetParam();
  const LoadedModel model = test::load("tiny-llama");
  const auto adapter = test::load_adapter(model, test::data_path("golden/tiny-lora"), 5);
  // One thread: each has scratch memory of its own, taken when it first draws, and of two the second may come late.
  const auto context = model.model->make_context({.kv_tokens = 4096, .threads = 1});
  const std::vector<TokenId> prompt = {5, 6, 7, 8};
  std::vector<std::vector<TokenId>> generated(kSequences);
  std::vector<TokenId> fed(kSequences, prompt.back());
  StepInput input;
  StepOutput output;
  for (std::size_t i = 0; i < kSequences; ++i) {
    generated[i].reserve(kWarm + kSteps);
    const auto opened = context->open(setting.adapters && i % 2 == 0 ? adapter : nullptr, prompt, kWarm + kSteps + 8);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    input.items.push_back({opened->handle, &fed[i], 1, true, &setting.sampling, &generated[i], &prompt});
  }
  for (int step = 0; step < kWarm + kSteps; ++step) {
    testing::counted_new = 0;
    counting = step >= kWarm;
    const Status done = context->step(input, output);
    counting = false;
    ASSERT_TRUE(done.ok()) << done.message();
    EXPECT_LE(testing::counted_new, step % kBlock == 0 ? kSequences * kFreshBlock : 0) << "step " << step;
    for (std::size_t i = 0; i < kSequences; ++i) {
      fed[i] = output.results[i].sampled.token;
      generated[i].push_back(fed[i]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Settings, StepAllocation,
                         ::testing::Values(Setting{"greedy", sampling(0, 1, 0, 0), false},
                                         Setting{"sampled", sampling(0.7f, 1, 0, 0), false},
                                         Setting{"cut", sampling(0.7f, 0.9f, 40, 0), false},
                                         Setting{"penalised", sampling(0.7f, 1, 0, 0.5f), false},
                                         Setting{"adapters", sampling(0.7f, 1, 0, 0), true}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace sluice
