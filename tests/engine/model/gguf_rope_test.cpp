// SPDX-License-Identifier: GPL-3.0-or-later
// Rope scaling in GGUF files: the tiny Hugging Face folders, written as llama.cpp's converter writes them, against what
// transformers computes from the folders.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numbers>

#include "engine/model/folder_golden.h"
#include "model/weights.h"

namespace sluice {
namespace {

using test::CopiedFolder;
using Keys = std::map<std::string, GgufValue>;

// Rows of q and k in the pair order of llama GGUF files.
std::vector<std::byte> interleaved(const StoredTensor& t, std::int64_t head_dim) {
  std::vector<std::byte> out(t.bytes.size());
  const std::size_t stride = t.bytes.size() / static_cast<std::size_t>(t.shape[0]);
  for (std::int64_t r = 0; r < t.shape[0]; ++r) {
    const std::int64_t in_head = r % head_dim, from = r - in_head + in_head % 2 * (head_dim / 2) + in_head / 2;
    std::memcpy(out.data() + static_cast<std::size_t>(r) * stride, t.bytes.data() + static_cast<std::size_t>(from) * stride, stride);
  }
  return out;
}

// `rope`: keys below "<architecture>.rope."; `factors`: rope_freqs.weight, where not empty.
void write_as_gguf(const ModelFile& model, const std::string& path, const Keys& rope, std::vector<float> factors) {
  const ModelConfig& c = model.config;
  const auto u32 = [](int value) { return static_cast<std::uint32_t>(value); };
  Keys keys = {{"block_count", u32(c.layers)},
               {"context_length", u32(c.context)},
               {"embedding_length", u32(c.hidden)},
               {"feed_forward_length", u32(c.ffn)},
               {"attention.head_count", u32(c.heads)},
               {"attention.head_count_kv", u32(c.kv_heads)},
               {"attention.key_length", u32(c.head_dim)},
               {"attention.value_length", u32(c.head_dim)},
               {"attention.layer_norm_rms_epsilon", c.rms_eps},
               {"rope.freq_base", static_cast<float>(c.rope_base)}};
  for (const auto& [key, value] : rope) keys["rope." + key] = value;
  std::vector<std::pair<std::string, GgufValue>> metadata = {{"general.architecture", c.architecture}};
  for (const auto& [key, value] : keys) metadata.emplace_back(c.architecture + "." + key, value);

  const auto weights = model.weights();
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  std::vector<std::vector<std::byte>> owned;
  std::vector<GgufTensorToWrite> tensors;
  for (const StoredTensor& t : weights->tensors()) {
    const bool turned = t.name.find("q_proj") != std::string::npos || t.name.find("k_proj") != std::string::npos;
    const bool moved = turned && c.family == ModelFamily::kLlama;
    owned.push_back(moved ? interleaved(t, c.head_dim) : std::vector<std::byte>(t.bytes.begin(), t.bytes.end()));
    tensors.push_back({gguf_tensor_name(t.name), t.type, {t.shape.rbegin(), t.shape.rend()}, owned.back()});
  }
  if (!factors.empty()) {
    tensors.push_back({"rope_freqs.weight", BlockType::kF32, {static_cast<std::int64_t>(factors.size())}, std::as_bytes(std::span(factors))});
  }
  const Status written = write_gguf(path, metadata, tensors);
  ASSERT_TRUE(written.ok()) << written.message();
}

// The variant's folder under its config.json, as a GGUF file with these keys, computes what the golden entry says.
void expect_variant(const std::string& name, const Keys& rope, const std::vector<float>& factors = {}) {
  SCOPED_TRACE(name);
  const auto& v = test::variant(name);
  const CopiedFolder folder(v["folder"].get<std::string>(), v["patch"]);
  const auto source = open_model_file(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().message();
  const std::string path = folder.file("model.gguf");
  write_as_gguf(*source, path, rope, factors);
  const auto loaded = load_model(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();

  const RopeFrequencies& got = model_weights(*loaded->model)->rope;
  const auto want = v["rope"]["inverse"].get<std::vector<float>>();
  ASSERT_EQ(got.inverse.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got.inverse[i], want[i], 2e-6f * want[i]) << i;
  EXPECT_NEAR(got.magnitude, v["rope"]["magnitude"].get<float>(), 1e-6f);
  ContextOptions options;
  options.kv_tokens = 2048;
  const auto context = loaded->model->make_context(options);
  for (const auto& item : v["cases"]) {
    const auto ids = item["ids"].get<std::vector<TokenId>>();
    const auto lp = item["lp"].get<std::vector<float>>();
    test::expect_near(test::score(*context, nullptr, ids, 512), lp, ids.size() > 50 ? 5e-4f : 5e-3f, "whole");
    test::expect_near(test::score(*context, nullptr, ids, 1), lp, 5e-3f, "token by token");
  }
}

// The divisors that llama.cpp's converter stores for Llama 3.1's rule.
std::vector<float> llama3_factors(double base, int head_dim, double factor, double low, double high, double original) {
  std::vector<float> out;
  for (int i = 0; i < head_dim / 2; ++i) {
    const double wavelength = 2 * std::numbers::pi * std::pow(base, 2.0 * i / head_dim);
    const double smooth = (original / wavelength - low) / (high - low);
    out.push_back(static_cast<float>(smooth >= 1 ? 1 : smooth <= 0 ? factor : 1 / ((1 - smooth) / factor + smooth)));
  }
  return out;
}

TEST(GgufRope, CFG2_StoredFactorsAreLlama3sRule) {
  const std::vector<float> factors = llama3_factors(500000.0, 8, 8.0, 1.0, 4.0, 64);
  EXPECT_EQ(factors.front(), 1.0f);
  EXPECT_EQ(factors.back(), 8.0f);
  expect_variant("llama, llama3", {}, factors);
  // Larger heads have frequencies between the two bands, too: factors and config.json's rule agree there.
  ModelConfig c;
  c.head_dim = 64;
  c.rope_base = 500000.0;
  const std::vector<float> many = llama3_factors(c.rope_base, c.head_dim, 32.0, 1.0, 4.0, 8192);
  EXPECT_TRUE(std::any_of(many.begin(), many.end(), [](float f) { return f > 1.5f && f < 31.0f; }));
  const RopeFrequencies stored = rope_frequencies(c, many);
  c.rope_scaling = RopeScaling::kLlama3;
  c.rope_factor = 32;
  c.rope_original_context = 8192;
  const RopeFrequencies ruled = rope_frequencies(c, {});
  for (std::size_t i = 0; i < many.size(); ++i) EXPECT_NEAR(stored.inverse[i], ruled.inverse[i], 2e-6f * ruled.inverse[i]) << i;
}

TEST(GgufRope, CFG1_LinearAndYarnKeys) {
  expect_variant("llama", {{"scaling.type", std::string("none")}});
  expect_variant("llama, linear", {{"scaling.type", std::string("linear")}, {"scaling.factor", 2.5f}});
  Keys yarn = {{"scaling.type", std::string("yarn")}, {"scaling.factor", 4.0f}, {"scaling.original_context_length", std::uint32_t{32}}};
  for (const char* name : {"llama, yarn", "qwen2, yarn by type", "qwen3, yarn"}) expect_variant(name, yarn);
  // What a converter writes out though it is the default.
  yarn.insert({{"scaling.yarn_beta_fast", 32.0f}, {"scaling.yarn_beta_slow", 1.0f}, {"scaling.yarn_ext_factor", -1.0f},
               {"scaling.yarn_attn_factor", 1.0f}, {"scaling.yarn_log_multiplier", 0.0f}, {"scaling.attn_factor", 1.0f}});
  expect_variant("llama, yarn", yarn);
}

// config.json's beta_fast and beta_slow have golden files of their own; the same numbers in GGUF mean the same.
TEST(GgufRope, CFG1_YarnBetasAreRead) {
  nlohmann::json rope = test::variant("qwen3, yarn")["patch"]["rope_parameters"];
  rope["beta_fast"] = 3.0;
  rope["beta_slow"] = 0.1;
  const CopiedFolder folder("qwen3", {{"rope_parameters", rope}});
  const auto source = open_model_file(folder.path());
  ASSERT_TRUE(source.ok()) << source.status().message();
  const std::string path = folder.file("model.gguf");
  write_as_gguf(*source, path,
                {{"scaling.type", std::string("yarn")}, {"scaling.factor", 4.0f}, {"scaling.original_context_length", std::uint32_t{32}},
                 {"scaling.yarn_beta_fast", 3.0f}, {"scaling.yarn_beta_slow", 0.1f}},
                {});
  const auto gguf = open_model_file(path);
  ASSERT_TRUE(gguf.ok()) << gguf.status().message();
  const RopeFrequencies got = rope_frequencies(gguf->config, {});
  test::expect_near(got.inverse, rope_frequencies(source->config, {}).inverse, 1e-6f, "frequencies");
  EXPECT_GT(std::abs(got.inverse[1] - test::variant("qwen3, yarn")["rope"]["inverse"][1].get<float>()), 1e-3f);
}

}  // namespace
}  // namespace sluice
