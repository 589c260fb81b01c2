// SPDX-License-Identifier: GPL-3.0-or-later
// Hugging Face folders and the less common block types against transformers: decode, batches, prefill and the training
// forward. Rows of serving.md 4.2 and 4.3 carry their id.
#include <ATen/ops/from_blob.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cmath>
#include <limits>

#include "engine/model/folder_golden.h"
#include "model/format/safetensors.h"
#include "model/train_forward_at.h"
#include "model/weights.h"

namespace sluice {
namespace {

using test::CopiedFolder;
using Json = nlohmann::json;

LoadedModel load(const std::string& path) {
  auto model = load_model(path);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

std::string load_error(const std::string& path) {
  const auto model = load_model(path);
  EXPECT_FALSE(model.ok()) << path;
  return model.ok() ? "" : model.status().message();
}

void expect_says(const std::string& message, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' in: " << message;
}

std::unique_ptr<ModelContext> context_of(const LoadedModel& model) {
  ContextOptions options;
  options.kv_tokens = 2048;
  return model.model->make_context(options);
}

// Logits relative to the best one, of the token after `ids`.
void expect_last_logits(ModelContext& context, const std::vector<TokenId>& ids, const std::vector<float>& want) {
  context.flush();
  auto opened = context.open(nullptr, ids, static_cast<int>(ids.size()) + 1);
  ASSERT_TRUE(opened.ok());
  SamplingParams params;
  params.temperature = 0;
  params.top_logprobs = static_cast<int>(want.size());
  const std::vector<TokenId> none;
  auto output = context.step({{{opened->handle, ids.data(), static_cast<int>(ids.size()), true, &params, &none, &ids}}});
  ASSERT_TRUE(output.ok()) << output.status().message();
  const SampledToken& sampled = output->results[0].sampled;
  ASSERT_EQ(sampled.top.size(), want.size());
  const float best = sampled.top[0].logprob, want_best = *std::max_element(want.begin(), want.end());
  for (const TopLogprob& t : sampled.top) {
    EXPECT_NEAR(t.logprob - best, want[static_cast<std::size_t>(t.token)] - want_best, 5e-3f) << t.token;
  }
  context.close(opened->handle);
}

// Both sequences fed token by token in the same steps.
void expect_batch(ModelContext& context, const Json& cases) {
  context.flush();
  std::vector<std::vector<TokenId>> ids;
  std::vector<std::vector<float>> got;
  std::vector<SequenceHandle> handles;
  for (const auto& item : cases) {
    ids.push_back(item["ids"].get<std::vector<TokenId>>());
    auto opened = context.open(nullptr, ids.back(), static_cast<int>(ids.back().size()));
    ASSERT_TRUE(opened.ok());
    handles.push_back(opened->handle);
    got.emplace_back();
  }
  for (std::size_t t = 0;; ++t) {
    StepInput input;
    std::vector<std::size_t> fed;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      if (t + 1 >= ids[i].size()) continue;
      StepItem item{handles[i], &ids[i][t], 1};
      item.score = true;
      item.score_targets = &ids[i][t + 1];
      input.items.push_back(item);
      fed.push_back(i);
    }
    if (fed.empty()) break;
    auto output = context.step(input);
    ASSERT_TRUE(output.ok()) << output.status().message();
    for (std::size_t k = 0; k < fed.size(); ++k) got[fed[k]].push_back(output->results[k].scores[0]);
  }
  for (std::size_t i = 0; i < ids.size(); ++i) {
    test::expect_near(got[i], cases[i]["lp"].get<std::vector<float>>(), 5e-3f, "batch");
    context.close(handles[i]);
  }
}

void expect_training_forward(const TransformerWeights& weights, const std::vector<TokenId>& ids, const std::vector<float>& want) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  std::vector<std::int32_t> positions, starts{0, static_cast<std::int32_t>(ids.size())};
  std::vector<std::int64_t> targets(ids.begin() + 1, ids.end());
  for (std::size_t i = 0; i < ids.size(); ++i) positions.push_back(static_cast<std::int32_t>(i));
  std::vector<float> tau(targets.size(), 1.0f);
  const auto n = static_cast<std::int64_t>(targets.size());
  auto hidden = train_forward(weights, nullptr, {ids, positions, starts});
  ASSERT_TRUE(hidden.ok()) << hidden.status().message();
  auto out = chunked_logprob(weights, hidden->narrow(0, 0, n), at::from_blob(targets.data(), {n}, at::kLong),
                             at::from_blob(tau.data(), {n}, at::kFloat));
  ASSERT_TRUE(out.ok()) << out.status().message();
  const float* lp = out->lp.const_data_ptr<float>();
  test::expect_near({lp, lp + n}, want, 5e-4f, "training forward");
}

// `whole` bounds the log-probs of a prompt fed in one piece: tight where it runs in f32, that of 16-bit activations where the
// blocks are multiplied as integers.
void expect_golden(const LoadedModel& model, const Json& cases, float whole = 5e-4f) {
  const auto context = context_of(model);
  for (const auto& item : cases) {
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    const auto lp = item["lp"].get<std::vector<float>>();
    SCOPED_TRACE(std::to_string(ids.size()) + " tokens");
    test::expect_near(test::score(*context, nullptr, ids, 512), lp, ids.size() > 50 ? whole : 5e-3f, "whole");
    test::expect_near(test::score(*context, nullptr, ids, 7), lp, 5e-3f, "chunks of 7");
    test::expect_near(test::score(*context, nullptr, ids, 1), lp, 5e-3f, "token by token");
    expect_last_logits(*context, ids, item["last_logits"].get<std::vector<float>>());
    expect_training_forward(*model_weights(*model.model), ids, lp);
  }
  expect_batch(*context, cases);
}

void expect_variant(const std::string& name) {
  SCOPED_TRACE(name);
  const Json& v = test::variant(name);
  const CopiedFolder folder(v["folder"].get<std::string>(), v["patch"]);
  expect_golden(load(folder.path()), v["cases"]);
}

TEST(ModelFolder, LlamaShardedBf16EqualsTransformers) { expect_variant("llama"); }
TEST(ModelFolder, Qwen2UntiedF16WithBiasesEqualsTransformers) { expect_variant("qwen2"); }

TEST(ModelFolder, LinearRopeScalingEqualsTransformers) { expect_variant("llama, linear"); }

TEST(ModelFolder, CFG1_YarnByTypeByRopeTypeByBoth) {
  for (const char* name : {"llama, yarn", "llama, yarn by both", "llama, yarn with all keys", "qwen2, yarn by type", "qwen3, yarn"}) {
    expect_variant(name);
  }
}

TEST(ModelFolder, CFG1_ConflictingTypesAreRefused) {
  const CopiedFolder folder("llama", {{"rope_parameters", {{"type", "linear"}, {"rope_type", "yarn"}, {"factor", 4.0}}}});
  expect_says(load_error(folder.path()), {"config.json", "rope_parameters.rope_type", "yarn", "linear"});
}

TEST(ModelFolder, CFG2_Llama3RopeRule) {
  expect_variant("llama, llama3");
  expect_variant("llama, llama3 by type");
}

// cos and sin are position times these frequencies, so the tables agree when they do.
TEST(ModelFolder, CFG2_FrequenciesOfEveryRule) {
  for (const auto& v : test::folder_golden()["variants"]) {
    SCOPED_TRACE(v["name"].get<std::string>());
    const CopiedFolder folder(v["folder"].get<std::string>(), v["patch"]);
    const auto file = open_model_file(folder.path());
    ASSERT_TRUE(file.ok()) << file.status().message();
    const RopeFrequencies rope = rope_frequencies(file->config, {});
    const auto want = v["rope"]["inverse"].get<std::vector<float>>();
    ASSERT_EQ(rope.inverse.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(rope.inverse[i], want[i], 2e-6f * want[i]) << i;
    EXPECT_NEAR(rope.magnitude, v["rope"]["magnitude"].get<float>(), 1e-6f);
  }
}

TEST(ModelFolder, CFG3_RopeThetaFromTheConfigElseTenThousand) {
  for (const char* name : {"llama, no theta", "llama, theta of version 4", "qwen2"}) expect_variant(name);
}

TEST(ModelFolder, CFG4_ExplicitHeadDimWins) { expect_variant("qwen3"); }

TEST(ModelFolder, CFG4_NullHeadDimIsComputed) {
  const CopiedFolder folder("llama", {{"head_dim", nullptr}}, /*keep_null=*/true);
  expect_golden(load(folder.path()), test::variant("llama")["cases"]);
}

TEST(ModelFolder, CFG5_WindowIsOffWhenTheFlagSaysSo) { expect_variant("qwen2, window off"); }

TEST(ModelFolder, CFG5_WindowOnIsRefusedUnlessNoLayerHasIt) {
  const Json on = {{"use_sliding_window", true}, {"sliding_window", 16}, {"layer_types", nullptr}, {"max_window_layers", 1}};
  expect_says(load_error(CopiedFolder("qwen2", on).path()), {"config.json", "sliding_window", "16"});
  Json none = on;
  none["max_window_layers"] = 2;
  expect_golden(load(CopiedFolder("qwen2", none).path()), test::variant("qwen2")["cases"]);
}

TEST(ModelFolder, CFG6_QwenThreeNormsHeadsBeforeRope) { expect_variant("qwen3"); }

TEST(ModelFolder, CFG7_ProductsBeyondHalfPrecisionStayFinite) { expect_variant("qwen2, huge queries and keys"); }

TEST(ModelFolder, FMT9_TiedWithoutStoredHead) {
  expect_variant("llama");
  const CopiedFolder silent("llama", {{"tie_word_embeddings", nullptr}});  // no key, no stored head
  expect_golden(load(silent.path()), test::variant("llama")["cases"]);
  const CopiedFolder untied("llama", {{"tie_word_embeddings", false}});
  expect_says(load_error(untied.path()), {untied.path(), "lm_head.weight"});
}

TEST(ModelFolder, FMT10_TiedWithStoredHeadBias) { expect_variant("llama with biases"); }

TEST(ModelFolder, AFileOfTheFolderStandsForIt) {
  for (const char* name : {"config.json", "model.safetensors.index.json", "model-00001-of-00003.safetensors"}) {
    const CopiedFolder folder("llama");
    EXPECT_EQ(load(folder.file(name)).model->info().name, "llama");
  }
}

TEST(ModelFolder, HashCoversConfigAndEveryShard) {
  const CopiedFolder folder("llama");
  const std::string first = load(folder.path()).model->info().content_hash;
  EXPECT_EQ(load(folder.path()).model->info().content_hash, first);
  std::string shard = test::read_file(folder.file("model-00003-of-00003.safetensors"));
  shard[shard.size() - 2] ^= 1;
  test::write_file(folder.file("model-00003-of-00003.safetensors"), shard);
  EXPECT_NE(load(folder.path()).model->info().content_hash, first);
}

TEST(ModelFolder, WrongFoldersGiveErrorsThatNameThem) {
  struct Case {
    const char* name;
    Json patch;
    std::vector<std::string> says;
  };
  const Case cases[] = {
      {"no layers", {{"num_hidden_layers", 0}}, {"num_hidden_layers", "is 0"}},
      {"many layers", {{"num_hidden_layers", 16777216}}, {"16777216 layers"}},
      {"hidden", {{"hidden_size", 64}, {"head_dim", 8}}, {"model.embed_tokens.weight", "320 x 32", "320 x 64"}},
      {"gptq", {{"quantization_config", {{"quant_method", "gptq"}}}}, {"quantization_config", "gptq"}},
      {"family", {{"model_type", "mixtral"}}, {"model_type", "mixtral"}},
      {"activation", {{"hidden_act", "gelu"}}, {"hidden_act", "gelu"}},
      {"rope", {{"rope_parameters", {{"rope_type", "dynamic"}, {"factor", 2.0}}}}, {"rope_type", "dynamic"}},
      {"factor", {{"rope_parameters", {{"rope_type", "linear"}, {"factor", -1.0}}}}, {"factor", "-1"}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const CopiedFolder folder("llama", c.patch);
    const std::string message = load_error(folder.path());
    expect_says(message, c.says);
    expect_says(message, {folder.path()});
  }
  const CopiedFolder empty("qwen3");
  std::filesystem::remove(empty.file("config.json"));
  expect_says(load_error(empty.path()), {empty.path(), "config.json"});
  test::write_file(empty.file("config.json"), "{\"model_type\":");
  expect_says(load_error(empty.path()), {"config.json", "JSON"});
}

TEST(ModelFolder, NotANumberInTheWeightsIsRefused) {
  const CopiedFolder folder("qwen3");
  const std::string path = folder.file("model.safetensors");
  std::size_t at = 0;
  {
    const auto file = SafetensorsFile::open(path);
    ASSERT_TRUE(file.ok());
    const SafeTensor* t = (*file)->find("model.layers.1.mlp.up_proj.weight");
    ASSERT_NE(t, nullptr);
    const std::string bytes = test::read_file(path);
    at = bytes.find(std::string(reinterpret_cast<const char*>(t->bytes.data()), t->bytes.size()));
    ASSERT_NE(at, std::string::npos);
  }
  std::string bytes = test::read_file(path);
  bytes[at] = '\xc0';  // the bfloat16 NaN
  bytes[at + 1] = '\x7f';
  test::write_file(path, bytes);
  expect_says(load_error(folder.path()), {folder.path(), "model.layers.1.mlp.up_proj.weight", "not finite"});
}

// Q2_K, Q3_K, Q4_K, Q5_1, Q5_K, Q6_K and IQ4_NL matrices in one layer, Q8_0 embedding.
TEST(BlockTypes, EveryTypeDecodesBatchesPrefillsAndTrains) {
  expect_golden(load(test::data_path("tiny-blocks.gguf")), test::folder_golden()["blocks"], 5e-3f);
}

}  // namespace
}  // namespace sluice
