// SPDX-License-Identifier: GPL-3.0-or-later
// The embedded model against transformers in f32 on its dequantised weights: golden greedy continuations of
// tests/oracle/smollm2_greedy.py. Skipped where the model file has not been fetched.
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/model/golden.h"
#include "model/lora_at.h"
#include "model/train_forward_at.h"
#include "model/weights.h"

namespace sluice {
namespace {

constexpr float kBound = 5e-3f;

const std::string& model_path() {
  static const std::string path = std::string(SLUICE_CACHE_DIR) + "/models/SmolLM2-135M-Instruct.Q4_1.gguf";
  return path;
}

TEST(EmbeddedModel, GreedyTextEqualsTransformers) {
  const std::string& path = model_path();
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

// What the ratio of training rests on: a fresh record's log-probabilities, sampled by the integer kernels, are those the
// trainer's forward computes, at every temperature, with an adapter that matters.
TEST(EmbeddedModel, ServingAndTrainingAgree) {
  if (!std::filesystem::exists(model_path())) GTEST_SKIP() << model_path() << " is not there: run packaging/fetch.sh";
  at::set_num_threads(1);
  auto loaded = load_model(model_path());
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  const auto weights = model_weights(*loaded->model);
  auto lora = init_lora(weights->config, {.rank = 8, .alpha = 16}, 3);
  ASSERT_TRUE(lora.ok());
  float* flat = lora->flat.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < lora->parameters(); ++i) flat[i] += 0.01f * std::sin(static_cast<float>(i % 9973) * 0.7f);
  const auto adapter = std::make_shared<const LoraAdapter>(weights->config, lora_to_data(*lora), VersionId(1));
  std::ifstream in(test::data_path("golden/smollm2_greedy.json"));
  const auto prompt = nlohmann::json::parse(in)["cases"][2]["prompt"].get<std::vector<TokenId>>();

  auto context = loaded->model->make_context({.kv_tokens = 2048, .threads = 1});
  for (const float temperature : {0.3f, 0.6f, 1.0f, 1.5f}) {
    SamplingParams params;
    params.temperature = temperature;
    params.top_k = temperature > 1 ? 50 : 0;
    params.seed = 11;
    std::vector<TokenId> generated, ids = prompt;
    std::vector<float> lp_full;
    auto opened = context->open(adapter, prompt, static_cast<int>(prompt.size()) + 48);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    for (int t = 0; t < 48; ++t) {
      const int fed = t == 0 ? opened->cached_tokens : static_cast<int>(ids.size()) - 1;
      StepItem item{opened->handle, ids.data() + fed, static_cast<int>(ids.size()) - fed, true, &params, &generated, &prompt};
      auto output = context->step({{item}});
      ASSERT_TRUE(output.ok()) << output.status().message();
      generated.push_back(output->results[0].sampled.token);
      ids.push_back(generated.back());
      lp_full.push_back(output->results[0].sampled.lp_full);
    }
    context->close(opened->handle);
    std::vector<std::int32_t> positions(ids.size()), starts{0, static_cast<std::int32_t>(ids.size())};
    std::iota(positions.begin(), positions.end(), 0);
    std::vector<std::int64_t> targets(generated.begin(), generated.end());
    const at::NoGradGuard no_grad;
    auto hidden = train_forward(*weights, &*lora, {ids, positions, starts});
    ASSERT_TRUE(hidden.ok()) << hidden.status().message();
    const auto n = static_cast<std::int64_t>(generated.size());
    auto out = chunked_logprob(*weights, hidden->narrow(0, static_cast<std::int64_t>(prompt.size()) - 1, n),
                               at::from_blob(targets.data(), {n}, at::kLong), at::full({n}, temperature));
    ASSERT_TRUE(out.ok()) << out.status().message();
    double sum = 0;
    for (std::size_t i = 0; i < lp_full.size(); ++i) {
      sum += std::fabs(static_cast<double>(out->lp.const_data_ptr<float>()[i] - lp_full[i]));
    }
    std::printf("T %.1f: mean difference %.2g\n", static_cast<double>(temperature), sum / static_cast<double>(n));
    EXPECT_LT(sum / static_cast<double>(n), 1e-3) << temperature;
  }
}

}  // namespace
}  // namespace sluice
