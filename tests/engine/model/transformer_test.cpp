// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/transformer.h"

#include "engine/model/golden.h"

namespace sluice {
namespace {

using test::golden;

ContextOptions small_context(int threads = 1) {
  ContextOptions options;
  options.kv_tokens = 4096;
  options.threads = threads;
  return options;
}

SamplingParams greedy(int top) {
  SamplingParams p;
  p.temperature = 0;
  p.top_logprobs = top;
  return p;
}

// Log-probabilities against transformers, through the GEMM (one chunk; in f32 where the type has no integer kernel) and
// through the decode kernels (small chunks).
class Golden : public testing::TestWithParam<const char*> {};

TEST_P(Golden, LogprobsEqualTransformers) {
  const LoadedModel model = test::load(GetParam());
  auto context = model.model->make_context(small_context());
  const bool integers = model.model->info().quantisation == "Q4_1";
  for (const auto& item : golden()["models"][GetParam()]) {
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    const auto lp = item["lp"].get<std::vector<float>>(), lp_t06 = item["lp_t06"].get<std::vector<float>>();
    test::expect_near(test::score(*context, nullptr, ids, 512), lp, ids.size() > 50 && !integers ? 5e-5f : 3e-3f, "whole");
    test::expect_near(test::score(*context, nullptr, ids, 512, 0.6f), lp_t06, ids.size() > 50 && !integers ? 1e-4f : 5e-3f, "whole, T 0.6");
    test::expect_near(test::score(*context, nullptr, ids, 7), lp, 3e-3f, "chunks of 7");
    test::expect_near(test::score(*context, nullptr, ids, 1), lp, 3e-3f, "token by token");
    test::expect_near(test::score(*context, nullptr, ids, 60), lp, 3e-3f, "chunks of 60");
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::Values("tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-llama-q4_1"));

TEST(Transformer, LastLogitsEqualTransformers) {
  const LoadedModel model = test::load("tiny-llama");
  auto context = model.model->make_context(small_context());
  for (const auto& item : golden()["models"]["tiny-llama"]) {
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    const auto want = item["last_logits"].get<std::vector<float>>();
    auto opened = context->open(nullptr, ids, static_cast<int>(ids.size()) + 1);
    ASSERT_TRUE(opened.ok());
    const SamplingParams params = greedy(320);
    const std::vector<TokenId> none;
    StepItem step{opened->handle, ids.data() + opened->cached_tokens, static_cast<int>(ids.size()) - opened->cached_tokens, true,
                  &params, &none, &ids};
    auto output = context->step({{step}});
    ASSERT_TRUE(output.ok()) << output.status().message();
    const SampledToken& sampled = output->results[0].sampled;
    ASSERT_EQ(sampled.top.size(), 320u);
    const float best = sampled.top[0].logprob, want_best = *std::max_element(want.begin(), want.end());
    for (const TopLogprob& t : sampled.top) {
      EXPECT_NEAR(t.logprob - best, want[static_cast<std::size_t>(t.token)] - want_best, 3e-3f) << t.token;
    }
    context->close(opened->handle);
  }
}

TEST(Transformer, LRA5_LRA6_LoraEqualsPeft) {
  const LoadedModel model = test::load("tiny-llama");
  auto context = model.model->make_context(small_context());
  for (const char* name : {"lora", "lora_patterns"}) {
    const auto adapter = test::load_adapter(
        model, test::data_path(std::string("golden/") + (std::string(name) == "lora" ? "tiny-lora" : "tiny-lora-patterns")), 5);
    for (const auto& item : golden()[name]) {
      const auto ids = item["ids"].get<std::vector<TokenId>>();
      const auto lp = item["lp"].get<std::vector<float>>();
      // The weights are f32 here: what is left is the rounding of the adapter to 16 bit.
      test::expect_near(test::score(*context, adapter, ids, 512), lp, ids.size() > 50 ? 1e-3f : 5e-3f, name);
      test::expect_near(test::score(*context, adapter, ids, 5), lp, 5e-3f, name);
    }
  }
}

struct Task {
  std::shared_ptr<const Adapter> adapter;
  std::vector<TokenId> prompt;
};

// Greedy text of several sequences decoded together; every log-probability is kept to its last bit.
std::vector<std::vector<SampledToken>> decode_together(const Model& model, const std::vector<Task>& runs, int tokens, int threads) {
  auto context = model.make_context(small_context(threads));
  const SamplingParams params = greedy(5);
  std::vector<std::vector<SampledToken>> out(runs.size());
  std::vector<std::vector<TokenId>> generated(runs.size());
  std::vector<SequenceHandle> handles;
  for (const Task& run : runs) {
    auto opened = context->open(run.adapter, run.prompt, static_cast<int>(run.prompt.size()) + tokens);
    EXPECT_TRUE(opened.ok());
    handles.push_back(opened->handle);
    // Prefill one by one with pieces that stay on the integer kernels.
    for (std::size_t t = static_cast<std::size_t>(opened->cached_tokens); t + 1 < run.prompt.size(); ++t) {
      StepItem item{handles.back(), &run.prompt[t], 1};
      EXPECT_TRUE(context->step({{item}}).ok());
    }
  }
  for (int t = 0; t < tokens; ++t) {
    StepInput input;
    std::vector<TokenId> fed(runs.size());
    for (std::size_t i = 0; i < runs.size(); ++i) {
      fed[i] = generated[i].empty() ? runs[i].prompt.back() : generated[i].back();
      input.items.push_back({handles[i], &fed[i], 1, true, &params, &generated[i], &runs[i].prompt});
    }
    auto output = context->step(input);
    EXPECT_TRUE(output.ok()) << output.status().message();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      out[i].push_back(output->results[i].sampled);
      generated[i].push_back(out[i].back().token);
    }
  }
  return out;
}

void expect_same_bits(const std::vector<SampledToken>& a, const std::vector<SampledToken>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].token, b[i].token);
    EXPECT_EQ(a[i].lp_full, b[i].lp_full);
    EXPECT_EQ(a[i].lp_raw, b[i].lp_raw);
    for (std::size_t k = 0; k < a[i].top.size(); ++k) EXPECT_EQ(a[i].top[k].logprob, b[i].top[k].logprob);
  }
}

TEST(Transformer, DecodeRowsAreBitEqualAloneAndInAnyBatch) {
  const LoadedModel model = test::load("tiny-llama-q4_1");
  const auto a = test::load_adapter(model, test::data_path("golden/tiny-lora"), 1);
  const auto b = test::load_adapter(model, test::data_path("golden/tiny-lora-patterns"), 2);
  std::vector<Task> runs;
  for (int i = 0; i < 7; ++i) {
    Task run;
    run.adapter = i % 3 == 0 ? nullptr : i % 3 == 1 ? a : b;
    for (int t = 0; t < 5 + 11 * i; ++t) run.prompt.push_back(3 + (t * 37 + i * 13) % 317);
    runs.push_back(std::move(run));
  }
  const auto together = decode_together(*model.model, runs, 24, 1);
  const auto two_threads = decode_together(*model.model, runs, 24, 2);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    expect_same_bits(together[i], two_threads[i]);
    expect_same_bits(together[i], decode_together(*model.model, {runs[i]}, 24, 2)[0]);
  }
}

TEST(Transformer, LRA1_LRA2_VersionsDifferAndReuseOnlyTheirOwnPrefix) {
  const LoadedModel model = test::load("tiny-llama");
  const auto v1 = test::load_adapter(model, test::data_path("golden/tiny-lora"), 1);
  const auto v2 = test::load_adapter(model, test::data_path("golden/tiny-lora-patterns"), 2);
  const auto ids = golden()["lora"][2]["ids"].get<std::vector<TokenId>>();
  auto warm = model.model->make_context(small_context());
  const auto last = [&](ModelContext& context, std::shared_ptr<const Adapter> adapter, int* cached) {
    auto opened = context.open(std::move(adapter), ids, static_cast<int>(ids.size()) + 1);
    EXPECT_TRUE(opened.ok());
    *cached = opened->cached_tokens;
    const SamplingParams params = greedy(3);
    const std::vector<TokenId> none;
    StepItem item{opened->handle, ids.data() + *cached, static_cast<int>(ids.size()) - *cached, true, &params, &none, &ids};
    const SampledToken t = context.step({{item}})->results[0].sampled;
    context.close(opened->handle);
    return t;
  };
  int cached = 0;
  for (const auto& adapter : {v1, v2, v1, std::shared_ptr<const Adapter>()}) {
    auto cold = model.model->make_context(small_context());
    int cold_cached = 0;
    const SampledToken want = last(*cold, adapter, &cold_cached), got = last(*warm, adapter, &cached);
    EXPECT_EQ(cold_cached, 0);
    EXPECT_EQ(got.token, want.token);
    EXPECT_NEAR(got.lp_raw, want.lp_raw, 3e-3);
  }
  last(*warm, v2, &cached);
  EXPECT_EQ(cached, static_cast<int>(ids.size()) - 1);
  warm->flush();
  last(*warm, v2, &cached);
  EXPECT_EQ(cached, 0);
}

TEST(Transformer, LRA14_WeightsHandedBackAreReadAgain) {
  const LoadedModel model = test::load("tiny-llama");
  const auto ids = golden()["lora"][2]["ids"].get<std::vector<TokenId>>();
  const auto before = test::score(*model.model->make_context(small_context()), nullptr, ids, 512);
  ASSERT_TRUE(model.model->release_memory().ok());
  EXPECT_EQ(test::score(*model.model->make_context(small_context()), nullptr, ids, 512), before);
}

// SMP-12: pieces of at most exact_rows() tokens give the same bits however a prompt is cut, whatever of it was cached.
TEST(Transformer, SMP12_ExactPiecesDoNotDependOnHowAPromptIsCut) {
  const LoadedModel model = test::load("tiny-llama");
  const auto adapter = test::load_adapter(model, test::data_path("golden/tiny-lora"), 1);
  const auto ids = golden()["lora"][2]["ids"].get<std::vector<TokenId>>();
  const SamplingParams params = greedy(5);
  const std::vector<TokenId> none;
  auto context = model.model->make_context(small_context(2));
  const auto last = [&](int piece) {
    auto opened = context->open(adapter, ids, {static_cast<int>(ids.size()) + 1, true});
    EXPECT_TRUE(opened.ok());
    SampledToken drawn;
    for (int at = opened->cached_tokens; at < static_cast<int>(ids.size()); at += piece) {
      const int n = std::min(piece, static_cast<int>(ids.size()) - at);
      const bool end = at + n == static_cast<int>(ids.size());
      StepItem item{opened->handle, ids.data() + at, n, end, &params, &none, &ids};
      auto output = context->step({{item}});
      EXPECT_TRUE(output.ok());
      if (end) drawn = output->results[0].sampled;
    }
    context->close(opened->handle);
    return drawn;
  };
  const SampledToken want = last(context->exact_rows());
  expect_same_bits({last(context->exact_rows())}, {want});  // cached
  for (const int piece : {1, 7, 32}) {
    context->flush();
    expect_same_bits({last(piece)}, {want});
    expect_same_bits({last(piece)}, {want});
  }
}

TEST(Transformer, RefusesWhatItCannotRun) {
  const LoadedModel model = test::load("tiny-llama");
  auto context = model.model->make_context(small_context());
  EXPECT_EQ(context->open(nullptr, {}, 4).code(), Code::kInvalidArgument);
  EXPECT_EQ(context->open(nullptr, {320}, 4).code(), Code::kInvalidArgument);
  EXPECT_EQ(context->open(nullptr, {-1}, 4).code(), Code::kInvalidArgument);
  EXPECT_EQ(context->open(nullptr, {5}, 3000).code(), Code::kInvalidArgument);  // beyond the context of 2,048
  auto opened = context->open(nullptr, {5, 6}, 3);
  ASSERT_TRUE(opened.ok());
  const std::vector<TokenId> ids{5, 6, 7, 400};
  EXPECT_FALSE(context->step({{StepItem{opened->handle, ids.data(), 4}}}).ok());
  EXPECT_FALSE(context->step({{StepItem{opened->handle, ids.data(), 0}}}).ok());
  EXPECT_FALSE(context->step({{StepItem{opened->handle, ids.data(), 1, true}}}).ok());
  EXPECT_FALSE(context->step({{StepItem{SequenceHandle{99}, ids.data(), 1}}}).ok());
  EXPECT_FALSE(context->step({{StepItem{opened->handle, ids.data(), 1}, StepItem{opened->handle, ids.data(), 1}}}).ok());
  EXPECT_TRUE(context->step({{StepItem{opened->handle, ids.data(), 2}}}).ok());
  EXPECT_EQ(load_model(test::data_path("golden/dequant.bin")).code(), Code::kInvalidArgument);
  EXPECT_EQ(load_model(test::data_path("none.gguf")).code(), Code::kNotFound);
}

TEST(Transformer, DescribesTheModel) {
  const LoadedModel model = test::load("tiny-llama-q4_1");
  const ModelInfo& info = model.model->info();
  EXPECT_EQ(info.name, "tiny-llama");
  EXPECT_EQ(info.architecture, "llama");
  EXPECT_EQ(info.quantisation, "Q4_1");
  EXPECT_EQ(info.vocab_size, 320);
  EXPECT_EQ(info.context_length, 2048);
  EXPECT_EQ(info.hidden_size, 64);
  EXPECT_EQ(info.layers, 2);
  EXPECT_EQ(info.parameters, 320 * 64 + 2 * (4096 + 2048 + 2048 + 4096 + 3 * 8192 + 128) + 64);
  EXPECT_EQ(info.content_hash.size(), 64u);
}

}  // namespace
}  // namespace sluice
