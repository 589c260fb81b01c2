// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/config.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "model/weights.h"
#include "support/temp_folder.h"

namespace sluice {
namespace {

using Metadata = std::map<std::string, GgufValue>;

Metadata llama() {
  return {{"general.architecture", std::string("llama")},
          {"llama.block_count", std::uint32_t{1}},
          {"llama.context_length", std::uint32_t{4096}},
          {"llama.embedding_length", std::uint32_t{64}},
          {"llama.feed_forward_length", std::uint32_t{128}},
          {"llama.attention.head_count", std::uint32_t{4}},
          {"llama.attention.head_count_kv", std::uint32_t{2}},
          {"llama.attention.layer_norm_rms_epsilon", 1e-5f}};
}

// A file with these metadata and an embedding of 32 tokens.
std::shared_ptr<const GgufFile> file_with(const sluice::testing::TempFolder& folder, const Metadata& metadata,
                                          std::vector<std::string> more_tensors = {}) {
  const std::string path = folder.path() + "/model.gguf";
  static const std::vector<std::byte> bytes(32 * 64 * sizeof(float));
  std::vector<GgufTensorToWrite> tensors{{"token_embd.weight", BlockType::kF32, {64, 32}, bytes}};
  for (std::string& name : more_tensors) tensors.push_back({std::move(name), BlockType::kF32, {64, 32}, bytes});
  EXPECT_TRUE(write_gguf(path, {metadata.begin(), metadata.end()}, tensors).ok());
  auto file = GgufFile::open(path);
  EXPECT_TRUE(file.ok()) << file.status().message();
  return *file;
}

Result<ModelConfig> config_with(const Metadata& change) {
  const sluice::testing::TempFolder folder;
  Metadata m = llama();
  for (const auto& [k, v] : change) m[k] = v;
  return config_from_gguf(*file_with(folder, m));
}

void expect_refused(const Metadata& change, const std::string& key, const std::string& value) {
  const auto c = config_with(change);
  ASSERT_FALSE(c.ok()) << key;
  EXPECT_NE(c.status().message().find(key), std::string::npos) << c.status().message();
  EXPECT_NE(c.status().message().find(value), std::string::npos) << c.status().message();
}

TEST(Config, ReadsShapesAndDefaults) {
  const auto c = config_with({});
  ASSERT_TRUE(c.ok()) << c.status().message();
  EXPECT_EQ(c->head_dim, 16);
  EXPECT_EQ(c->vocab, 32);
  EXPECT_EQ(c->rope_base, 10000.0);
  EXPECT_EQ(c->linear_rows(Linear::kK), 32);
  EXPECT_EQ(c->linear_cols(Linear::kDown), 128);
  EXPECT_EQ(config_with({{"llama.rope.freq_base", 100000.0f}})->rope_base, 100000.0);
  EXPECT_EQ(config_with({{"llama.attention.key_length", std::uint32_t{24}}, {"llama.attention.value_length", std::uint32_t{24}}})->q_size(), 96);
  EXPECT_EQ(config_with({{"llama.attention.sliding_window", std::uint32_t{4096}}})->context, 4096);
}

TEST(Config, RefusesNamingKeyAndValue) {
  expect_refused({{"general.architecture", std::string("mamba")}}, "mamba", "llama, qwen2 and qwen3");
  expect_refused({{"split.count", std::uint16_t{3}}}, "split.count", "3");
  expect_refused({{"llama.attention.head_count", std::uint32_t{1u << 20}}, {"llama.attention.head_count_kv", std::uint32_t{1}},
                  {"llama.attention.key_length", std::uint32_t{1u << 12}}, {"llama.attention.value_length", std::uint32_t{1u << 12}}},
                 "key_length", "1048576");
  expect_refused({{"llama.attention.value_length", std::uint32_t{8}}}, "value_length", "8");
  expect_refused({{"llama.rope.dimension_count", std::uint32_t{8}}}, "rope.dimension_count", "8");
  expect_refused({{"llama.rope.scaling.type", std::string("longrope")}}, "rope.scaling.type", "longrope");
  expect_refused({{"llama.rope.scaling.attn_factor", 2.0f}}, "attn_factor", "2");
  const Metadata yarn = {{"llama.rope.scaling.type", std::string("yarn")}, {"llama.rope.scaling.factor", 4.0f}};
  const auto yarn_with = [&yarn](const std::string& key, float value) {
    Metadata change = yarn;
    change["llama.rope.scaling." + key] = value;
    return change;
  };
  expect_refused(yarn_with("yarn_attn_factor", 1.5f), "rope.scaling.yarn_attn_factor", "1.5");
  expect_refused(yarn_with("yarn_log_multiplier", 0.1f), "rope.scaling.yarn_log_multiplier", "0.1");
  expect_refused(yarn_with("yarn_ext_factor", 0.0f), "rope.scaling.yarn_ext_factor", "0");
  expect_refused(yarn_with("yarn_beta_fast", 0.5f), "rope.scaling.yarn_beta_fast", "yarn_beta_slow");
  expect_refused(yarn_with("yarn_beta_slow", 0.0f), "rope.scaling.yarn_beta_slow", "0");
  expect_refused({{"llama.rope.freq_base", 0.0f}}, "rope.freq_base", "0");
  expect_refused({{"llama.attention.sliding_window", std::uint32_t{512}}}, "sliding_window", "512");
  expect_refused({{"llama.expert_count", std::uint32_t{8}}}, "expert_count", "8");
}

TEST(Config, CFG9_NoLayersNoHeadsHeadsThatDontDivide) {
  expect_refused({{"llama.block_count", std::uint32_t{0}}}, "llama.block_count", "0");
  expect_refused({{"llama.attention.head_count", std::uint32_t{0}}}, "llama.attention.head_count", "0");
  expect_refused({{"llama.attention.head_count_kv", std::uint32_t{3}}}, "llama.attention.head_count_kv", "3");
  expect_refused({{"llama.attention.head_count", std::uint32_t{5}}}, "llama.attention.head_count", "5");
  const auto from_json = [](const std::string& change) {
    const std::string start = R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":64,"intermediate_size":128,"vocab_size":32,)";
    const auto c = config_from_json(start + R"("num_attention_heads":4,"num_key_value_heads":2,)" + change + "}", "config.json");
    return c.ok() ? std::string("accepted") : c.status().message();
  };
  EXPECT_EQ(from_json(R"("head_dim":16)"), "accepted");
  EXPECT_EQ(from_json(R"("num_hidden_layers":0)"), "config.json: num_hidden_layers is 0; a model needs 1 to 16777216");
  EXPECT_EQ(from_json(R"("num_attention_heads":0)"), "config.json: num_attention_heads is 0; a model needs 1 to 16777216");
  EXPECT_EQ(from_json(R"("num_key_value_heads":3)"), "config.json: num_key_value_heads is 3, which does not divide the 4 heads");
  EXPECT_EQ(from_json(R"("num_attention_heads":5)"), "config.json: num_attention_heads is 5, which does not divide hidden_size 64");
  for (const char* value : {"-1", "\"2\"", "true", "1e400", "2.5", "[]", "18446744073709551615", "-9223372036854775808"}) {
    const std::string message = from_json(std::string(R"("num_hidden_layers":)") + value);
    EXPECT_NE(message.find(value == std::string("1e400") ? "JSON" : "num_hidden_layers"), std::string::npos) << message;
  }
}

TEST(Config, DamagedConfigJsonIsRefused) {
  for (const std::string& text : {std::string(), std::string("null"), std::string("[]"), std::string("\"llama\""), std::string("{\"model_type\":\"llama\""),
                                  std::string("{\"model_type\":\"\xff\"}"), std::string(1000, '{'), std::string(100000, '[')}) {
    const auto c = config_from_json(text, "/m/config.json");
    ASSERT_FALSE(c.ok()) << text.substr(0, 40);
    EXPECT_NE(c.status().message().find("/m/config.json"), std::string::npos) << c.status().message();
  }
  for (const char* value : {"7", "null", "[\"llama\"]", "\"\"", "{}"}) {
    const auto c = config_from_json(std::string("{\"model_type\":") + value + "}", "/m/config.json");
    ASSERT_FALSE(c.ok()) << value;
    EXPECT_NE(c.status().message().find("model_type"), std::string::npos) << c.status().message();
  }
}

TEST(Config, RopeFrequenciesFollowTheirRule) {
  ModelConfig c;
  c.head_dim = 64;
  c.rope_base = 1e6;
  EXPECT_FLOAT_EQ(rope_frequencies(c, {}).inverse[16], 1e-3f);
  EXPECT_EQ(rope_frequencies(c, {}).magnitude, 1.0f);
  EXPECT_FLOAT_EQ(rope_frequencies(c, std::vector<float>(32, 8.0f)).inverse[16], 1e-3f / 8);
  c.rope_scaling = RopeScaling::kLinear;
  c.rope_factor = 4;
  EXPECT_FLOAT_EQ(rope_frequencies(c, {}).inverse[16], 1e-3f / 4);
  // transformers 5.24: head size 64, base 1e6, factor 4, original context 32768.
  c.rope_scaling = RopeScaling::kYarn;
  c.rope_original_context = 32768;
  c.rope_magnitude = yarn_magnitude(c.rope_factor);
  const RopeFrequencies yarn = rope_frequencies(c, {});
  const std::map<int, float> want = {{0, 1.0f},          {8, 0.031622779f},   {12, 0.0051547955f},
                                      {16, 0.00058333337f}, {20, 4.4456985e-05f}, {31, 3.8498163e-07f}};
  for (const auto& [i, f] : want) EXPECT_NEAR(yarn.inverse[static_cast<std::size_t>(i)] / f, 1.0f, 1e-5f) << i;
  EXPECT_NEAR(yarn.magnitude, 1.138629436f, 1e-6f);
}

TEST(Weights, RefuseWhatIsMissingMisshapenOrUnknown) {
  const sluice::testing::TempFolder folder;
  const auto load = [&](std::vector<std::string> more) {
    auto file = open_model_file(file_with(folder, llama(), std::move(more))->path());
    EXPECT_TRUE(file.ok()) << file.status().message();
    return load_weights(*file);
  };
  const auto missing = load({});
  ASSERT_FALSE(missing.ok());
  EXPECT_NE(missing.status().message().find("output_norm.weight"), std::string::npos) << missing.status().message();
  const auto misshapen = load({"output_norm.weight"});
  ASSERT_FALSE(misshapen.ok());
  EXPECT_NE(misshapen.status().message().find("32 x 64"), std::string::npos) << misshapen.status().message();
}

}  // namespace
}  // namespace sluice
