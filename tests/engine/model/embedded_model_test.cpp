// SPDX-License-Identifier: GPL-3.0-or-later
// The embedded model against transformers in f32 on its dequantised weights: golden greedy continuations of
// tests/oracle/smollm2_greedy.py. Skipped where the model file has not been fetched.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/model/golden.h"

namespace sluice {
namespace {

constexpr float kBound = 5e-3f;

TEST(EmbeddedModel, GreedyTextEqualsTransformers) {
  const std::string path = std::string(SLUICE_CACHE_DIR) + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not there: run packaging/fetch.sh";
  std::ifstream in(test::data_path("golden/smollm2_greedy.json"));
  const auto golden = nlohmann::json::parse(in);
  auto loaded = load_model(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  auto context = loaded->model->make_context({.kv_tokens = 8192, .threads = 1});
  SamplingParams params;
  params.temperature = 0;
  const std::vector<TokenId> none;

  struct Live {
    SequenceHandle handle;
    std::vector<TokenId> prompt, tokens;
    std::vector<float> lp, margin;
  };
  std::vector<Live> live;
  for (const auto& c : golden["cases"]) {
    Live l;
    l.prompt = c["prompt"].get<std::vector<TokenId>>();
    l.tokens = c["tokens"].get<std::vector<TokenId>>();
    l.lp = c["lp"].get<std::vector<float>>();
    l.margin = c["margin"].get<std::vector<float>>();
    auto opened = context->open(nullptr, l.prompt, static_cast<int>(l.prompt.size() + l.tokens.size()));
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    l.handle = opened->handle;
    live.push_back(std::move(l));
  }
  ASSERT_EQ(live.size(), 20u);
  int ties = 0;
  float worst = 0;
  double sum = 0;
  const std::size_t length = live[0].tokens.size();
  // The golden token is fed whatever ours was: a near tie is reported and the comparison goes on behind it.
  for (std::size_t t = 0; t < length; ++t) {
    StepInput input;
    for (const Live& l : live) {
      const TokenId* fed = t == 0 ? l.prompt.data() : &l.tokens[t - 1];
      input.items.push_back({l.handle, fed, t == 0 ? static_cast<int>(l.prompt.size()) : 1, true, &params, &none});
    }
    auto output = context->step(input);
    ASSERT_TRUE(output.ok()) << output.status().message();
    for (std::size_t i = 0; i < live.size(); ++i) {
      const SampledToken& got = output->results[i].sampled;
      const float off = std::fabs(got.lp_raw - live[i].lp[t]);
      worst = std::max(worst, off);
      sum += static_cast<double>(off);
      EXPECT_LE(off, kBound) << "case " << i << " token " << t;
      if (got.token == live[i].tokens[t]) continue;
      ++ties;
      EXPECT_LE(live[i].margin[t], 2 * kBound) << "case " << i << " token " << t << ": " << got.token << " instead of " << live[i].tokens[t];
      std::printf("near tie: case %zu token %zu, margin %.5f\n", i, t, static_cast<double>(live[i].margin[t]));
    }
  }
  std::printf("log-probability differences over %zu tokens: mean %.2g, largest %.2g; near ties %d\n", live.size() * length,
              sum / static_cast<double>(live.size() * length), static_cast<double>(worst), ties);
  EXPECT_LE(ties, 5);
}

}  // namespace
}  // namespace sluice
