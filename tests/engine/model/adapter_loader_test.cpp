// SPDX-License-Identifier: GPL-3.0-or-later
// Rules of adapter folders: what is honoured, what is refused by name, and that writing is the inverse of reading.
#include <filesystem>
#include <fstream>
#include <functional>

#include "engine/model/golden.h"
#include "model/export.h"
#include "model/format/safetensors.h"
#include "model/peft_config.h"
#include "model/peft_folder.h"
#include "model/weights.h"
#include "support/temp_folder.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

const ModelConfig& tiny() {
  static const LoadedModel model = test::load("tiny-llama");
  return model_weights(*model.model)->config;
}

Json base_config() {
  return {{"peft_type", "LORA"}, {"r", 4}, {"lora_alpha", 8}, {"target_modules", {"q_proj", "v_proj"}}, {"task_type", "CAUSAL_LM"}};
}

Result<PeftConfig> parse(const Json& j) { return parse_peft_config(j.dump(), "adapter_config.json"); }

void expect_refused(const Json& change, const std::string& named) {
  Json j = base_config();
  j.update(change);
  const auto parsed = parse(j);
  ASSERT_FALSE(parsed.ok()) << j.dump();
  EXPECT_NE(parsed.status().message().find(named), std::string::npos) << parsed.status().message();
  EXPECT_NE(parsed.status().message().find("adapter_config.json"), std::string::npos);
}

TEST(PeftConfigTest, LRA8_RefusesDoraAndOthersByName) {
  for (const char* key : {"peft_type", "r", "lora_alpha"}) expect_refused({{key, nullptr}}, key);
  expect_refused({{"peft_type", "IA3"}}, "peft_type");
  expect_refused({{"r", 0}}, "\"r\"");
  expect_refused({{"r", 2.5}}, "\"r\"");
  expect_refused({{"lora_alpha", "8"}}, "lora_alpha");
  expect_refused({{"use_dora", true}}, "use_dora");
  expect_refused({{"lora_bias", true}}, "lora_bias");
  expect_refused({{"bias", "all"}}, "bias");
  expect_refused({{"modules_to_save", {"lm_head"}}}, "modules_to_save");
  expect_refused({{"fan_in_fan_out", true}}, "fan_in_fan_out");
  expect_refused({{"target_parameters", {"x"}}}, "target_parameters");
  expect_refused({{"trainable_token_indices", {1}}}, "trainable_token_indices");
  expect_refused({{"layer_replication", {{0, 2}}}}, "layer_replication");
  expect_refused({{"init_lora_weights", "pissa"}}, "init_lora_weights");
  expect_refused({{"some_new_method", true}}, "some_new_method");
  expect_refused({{"rank_pattern", {{"q_proj", 0}}}}, "rank_pattern");
  expect_refused({{"target_modules", 5}}, "target_modules");
  EXPECT_EQ(parse_peft_config("{", "x").code(), Code::kCorrupt);
  EXPECT_EQ(parse_peft_config("[1]", "x").code(), Code::kCorrupt);
}

TEST(PeftConfigTest, AcceptsWhatDoesNotMatter) {
  Json j = base_config();
  j.update({{"lora_dropout", 0.1}, {"inference_mode", false}, {"revision", "main"}, {"megatron_core", "megatron.core"},
            {"use_dora", false}, {"modules_to_save", nullptr}, {"bias", "none"}, {"init_lora_weights", true}, {"peft_version", "0.21"}});
  auto parsed = parse(j);
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_TRUE(parsed->warnings.empty());
  j["some_new_method"] = false;
  j["task_type"] = "SEQ_CLS";
  parsed = parse(j);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->warnings.size(), 2u);
}

std::vector<std::string> adapted(const Json& change) {
  Json j = base_config();
  j.update(change);
  const auto parsed = parse(j);
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  std::vector<std::string> out;
  for (int layer = 0; layer < 3; ++layer) {
    for (const Linear l : kAllLinears) {
      const auto s = module_settings(*parsed, layer, l);
      EXPECT_TRUE(s.ok());
      if (s->has_value()) {
        out.push_back(std::to_string(layer) + linear_name(l)[0] + std::to_string((*s)->rank));
      }
    }
  }
  return out;
}

TEST(PeftConfigTest, TargetsAreNamesSuffixesOrPatterns) {
  using L = std::vector<std::string>;
  EXPECT_EQ(adapted({{"target_modules", {"q_proj"}}}), (L{"0q4", "1q4", "2q4"}));
  EXPECT_EQ(adapted({{"target_modules", {"model.layers.1.self_attn.q_proj", "0.mlp.down_proj"}}}), (L{"0d4", "1q4"}));
  EXPECT_EQ(adapted({{"target_modules", {"proj"}}}), L{});
  EXPECT_EQ(adapted({{"target_modules", ".*\\.(0|2)\\..*(k|up)_proj"}}), (L{"0k4", "0u4", "2k4", "2u4"}));
  EXPECT_EQ(adapted({{"target_modules", nullptr}}), (L{"0q4", "0v4", "1q4", "1v4", "2q4", "2v4"}));
  EXPECT_EQ(adapted({{"target_modules", "all-linear"}}).size(), 21u);
  EXPECT_EQ(adapted({{"exclude_modules", {"v_proj"}}}), (L{"0q4", "1q4", "2q4"}));
  EXPECT_EQ(adapted({{"exclude_modules", ".*layers\\.1\\..*"}}), (L{"0q4", "0v4", "2q4", "2v4"}));
  EXPECT_EQ(adapted({{"layers_to_transform", {0, 2}}}), (L{"0q4", "0v4", "2q4", "2v4"}));
  EXPECT_EQ(adapted({{"layers_to_transform", 1}, {"layers_pattern", "layers"}}), (L{"1q4", "1v4"}));
  EXPECT_EQ(adapted({{"layers_to_transform", 1}, {"layers_pattern", "h"}}), L{});
  EXPECT_EQ(adapted({{"rank_pattern", {{"layers.1.self_attn.q_proj", 2}, {"v_proj", 9}}}}),
            (L{"0q4", "0v9", "1q2", "1v9", "2q4", "2v9"}));
  Json j = base_config();
  j["target_modules"] = "(";
  EXPECT_FALSE(module_settings(*parse(j), 0, Linear::kQ).ok());
  j["target_modules"] = "(a*)*(a*)*(a*)*(.*.*.*)*x";
  EXPECT_FALSE(module_settings(*parse(j), 0, Linear::kQ).ok() && module_settings(*parse(j), 0, Linear::kQ)->has_value());
}

TEST(PeftConfigTest, LRA5_LRA6_ScaleIsAlphaOverRankOrItsRoot) {
  EXPECT_DOUBLE_EQ(lora_scale(16, 32, false), 2);
  EXPECT_DOUBLE_EQ(lora_scale(16, 32, true), 8);
}

LoraData some_data() {
  auto data = read_peft_folder(test::data_path("golden/tiny-lora"), tiny());
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *data;
}

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(PeftFolder, SaveLoadSaveIsBitExact) {
  const sluice::testing::TempFolder folder;
  const std::string a = folder.path() + "/a", b = folder.path() + "/b";
  std::filesystem::create_directories(a);
  std::filesystem::create_directories(b);
  const LoraData data = some_data();
  auto hash = write_peft_folder(a, data, tiny(), "tiny-llama");
  ASSERT_TRUE(hash.ok()) << hash.status().message();
  auto again = read_peft_folder(a, tiny());
  ASSERT_TRUE(again.ok()) << again.status().message();
  EXPECT_EQ(again->content_hash, *hash);
  EXPECT_TRUE(again->warnings.empty());
  ASSERT_EQ(again->modules.size(), data.modules.size());
  for (std::size_t i = 0; i < data.modules.size(); ++i) {
    EXPECT_EQ(again->modules[i].a, data.modules[i].a);
    EXPECT_EQ(again->modules[i].b, data.modules[i].b);
    EXPECT_EQ(again->modules[i].scale, data.modules[i].scale);
  }
  ASSERT_TRUE(write_peft_folder(b, *again, tiny(), "tiny-llama").ok());
  for (const char* name : {"/adapter_config.json", "/adapter_model.safetensors"}) EXPECT_EQ(bytes_of(a + name), bytes_of(b + name));
}

// Nothing in the format aligns tensors: one more space in the header and every one lies at an odd address.
TEST(PeftFolder, ReadsTensorsAtOddAddresses) {
  const sluice::testing::TempFolder folder;
  const LoraData data = some_data();
  ASSERT_TRUE(write_peft_folder(folder.path(), data, tiny(), "tiny-llama").ok());
  const std::string path = folder.path() + "/adapter_model.safetensors";
  std::string bytes = bytes_of(path);
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes.insert(sizeof header + header, 1, ' ');
  ++header;
  std::memcpy(bytes.data(), &header, sizeof header);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto again = read_peft_folder(folder.path(), tiny());
  ASSERT_TRUE(again.ok()) << again.status().message();
  ASSERT_EQ(again->modules.size(), data.modules.size());
  for (std::size_t i = 0; i < data.modules.size(); ++i) {
    EXPECT_EQ(again->modules[i].a, data.modules[i].a);
    EXPECT_EQ(again->modules[i].b, data.modules[i].b);
  }
}

TEST(PeftFolder, KeepsRanksAndScalesOfPatterns) {
  const sluice::testing::TempFolder folder;
  auto data = read_peft_folder(test::data_path("golden/tiny-lora-patterns"), tiny());
  ASSERT_TRUE(data.ok()) << data.status().message();
  ASSERT_EQ(data->modules.size(), 4u);  // q and down of two layers; v is excluded
  ASSERT_TRUE(write_peft_folder(folder.path(), *data, tiny(), "tiny-llama").ok());
  auto again = read_peft_folder(folder.path(), tiny());
  ASSERT_TRUE(again.ok()) << again.status().message();
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(again->modules[i].rank, data->modules[i].rank);
    EXPECT_EQ(again->modules[i].scale, data->modules[i].scale);
    EXPECT_EQ(again->modules[i].a, data->modules[i].a);
  }
  EXPECT_EQ(data->modules[2].rank, 2);
  EXPECT_FLOAT_EQ(data->modules[1].scale, 1.5f);  // alpha 3 / sqrt(4)
}

// Writes the golden folder with its tensors changed.
void broken(const std::string& to, const std::function<void(std::vector<SafeTensorToWrite>&)>& change) {
  std::filesystem::copy_file(test::data_path("golden/tiny-lora/adapter_config.json"), to + "/adapter_config.json",
                             std::filesystem::copy_options::overwrite_existing);
  auto file = SafetensorsFile::open(test::data_path("golden/tiny-lora/adapter_model.safetensors"));
  ASSERT_TRUE(file.ok());
  std::vector<SafeTensorToWrite> tensors;
  for (const SafeTensor& t : (*file)->tensors()) tensors.push_back({t.name, t.dtype, t.shape, t.bytes});
  change(tensors);
  ASSERT_TRUE(write_safetensors(to + "/adapter_model.safetensors", tensors).ok());
}

TEST(PeftConfigTest, LRA7_RankAboveTheLimitIsRefused) {
  expect_refused({{"r", 257}}, "\"r\" is 257; Sluice takes ranks up to 256");
  expect_refused({{"rank_pattern", {{"q_proj", 300}}}}, "\"rank_pattern\" is 300");
  Json j = base_config();
  j["r"] = 256;
  EXPECT_TRUE(parse(j).ok());
}

// Keys of another prefix (saved without PEFT's wrapper), of another architecture, and one left over.
TEST(PeftFolder, LRA4_WrongPrefixOrArchitectureOrLeftoverIsRefusedWithTheList) {
  const sluice::testing::TempFolder folder;
  const std::string to = folder.path();
  std::vector<std::string> names;
  const auto refused = [&](const std::string& from, const std::string& with) {
    names.clear();
    broken(to, [&](auto& tensors) {
      for (auto& t : tensors) {
        if (const auto at = t.name.find(from); at != std::string::npos) t.name.replace(at, from.size(), with);
        names.push_back(t.name);
      }
    });
    const auto data = read_peft_folder(to, tiny());
    EXPECT_FALSE(data.ok());
    return data.ok() ? std::string() : data.status().message();
  };
  for (const auto& [from, with] : {std::pair("base_model.model.", "base_model."), std::pair("self_attn.", "attn."), std::pair("layers.", "h.")}) {
    const std::string message = refused(from, with);
    int listed = 0;
    for (const std::string& name : names) {
      if (name.find(with) == std::string::npos) continue;
      EXPECT_NE(message.find(name), std::string::npos) << name;
      ++listed;
    }
    EXPECT_GT(listed, 0);
  }
  const std::string leftover = refused("layers.1.mlp.up_proj", "layers.7.mlp.up_proj");
  EXPECT_NE(leftover.find("layers.7.mlp.up_proj.lora_A"), std::string::npos) << leftover;
}

TEST(PeftFolder, LRA4_RefusesWhatDoesNotBindWithTheFullList) {
  const sluice::testing::TempFolder folder;
  const std::string to = folder.path();
  broken(to, [](auto& tensors) {
    tensors[0].name = "base_model.model.wrong.lora_A.weight";
    std::swap(tensors[5].shape[0], tensors[5].shape[1]);
  });
  const auto data = read_peft_folder(to, tiny());
  ASSERT_FALSE(data.ok());
  EXPECT_EQ(data.code(), Code::kInvalidArgument);
  const std::string& message = data.status().message();
  EXPECT_NE(message.find("wrong.lora_A"), std::string::npos) << message;
  EXPECT_NE(message.find("has no lora_A"), std::string::npos) << message;
  EXPECT_NE(message.find("instead of"), std::string::npos) << message;

  broken(to, [](auto& tensors) { tensors.erase(tensors.begin(), tensors.end()); });
  EXPECT_FALSE(read_peft_folder(to, tiny()).ok());  // nothing bound
  broken(to, [](auto& tensors) { tensors.erase(tensors.begin(), tensors.begin() + 2); });
  const auto missing = read_peft_folder(to, tiny());  // both halves of one module: no effect there
  ASSERT_TRUE(missing.ok()) << missing.status().message();
  EXPECT_EQ(missing->warnings.size(), 1u);
  std::vector<std::byte> infinite(64 * 4 * sizeof(float), std::byte{0xff});
  broken(to, [&](auto& tensors) {
    for (auto& t : tensors) {
      if (t.bytes.size() == infinite.size()) t.bytes = infinite;
    }
  });
  EXPECT_FALSE(read_peft_folder(to, tiny()).ok());
  std::filesystem::resize_file(to + "/adapter_model.safetensors", 1000);
  EXPECT_EQ(read_peft_folder(to, tiny()).code(), Code::kCorrupt);
  EXPECT_EQ(read_peft_folder(to + "/none", tiny()).code(), Code::kNotFound);
}

TEST(PeftFolder, ReadsHalfPrecision) {
  const sluice::testing::TempFolder folder;
  std::vector<std::vector<std::uint16_t>> kept;
  broken(folder.path(), [&](auto& tensors) {
    for (auto& t : tensors) {  // bf16: the upper half of each float
      std::vector<std::uint16_t> half(t.bytes.size() / 4);
      for (std::size_t i = 0; i < half.size(); ++i) std::memcpy(&half[i], t.bytes.data() + i * 4 + 2, 2);
      kept.push_back(std::move(half));
      t.dtype = SafeDtype::kBF16;
      t.bytes = std::as_bytes(std::span(kept.back()));
    }
  });
  const auto data = read_peft_folder(folder.path(), tiny());
  ASSERT_TRUE(data.ok()) << data.status().message();
  const LoraData full = some_data();
  EXPECT_NEAR(data->modules[3].a[7], full.modules[3].a[7], 0.01f * std::fabs(full.modules[3].a[7]) + 1e-6f);
}

TEST(PeftFolder, ProvenanceTiesAnAdapterToItsBase) {
  const sluice::testing::TempFolder folder;
  const LoadedModel model = test::load("tiny-llama"), other = test::load("tiny-llama-q4_1");
  ASSERT_TRUE(write_peft_folder(folder.path(), some_data(), tiny(), "tiny-llama").ok());
  ASSERT_TRUE(write_provenance(folder.path(), model.model->info().content_hash, {{"step", "3"}, {"parent", "2"}}).ok());
  auto loaded = model.model->adapter_loader().load(folder.path(), VersionId(3));
  ASSERT_TRUE(loaded.ok()) << loaded.status().message();
  EXPECT_EQ((*loaded)->version(), VersionId(3));
  EXPECT_EQ((*loaded)->rank(), 4);
  EXPECT_EQ((*loaded)->content_hash().size(), 64u);
  EXPECT_GT((*loaded)->bytes(), 0);
  EXPECT_EQ(other.model->adapter_loader().load(folder.path(), VersionId(3)).code(), Code::kInvalidArgument);
  EXPECT_EQ(model.model->adapter_loader().load(folder.path(), kBaseVersion).code(), Code::kInvalidArgument);
  std::ofstream(folder.path() + "/adapter_config.json", std::ios::app) << " ";
  EXPECT_EQ(model.model->adapter_loader().load(folder.path(), VersionId(3)).code(), Code::kCorrupt);
}

TEST(PeftFolder, ExportWritesAPlainFolder) {
  const sluice::testing::TempFolder folder;
  const LoadedModel model = test::load("tiny-llama");
  const std::string out = folder.path() + "/out";
  ASSERT_TRUE(export_peft(test::data_path("golden/tiny-lora"), *model.model, "org/tiny", out).ok());
  EXPECT_TRUE(read_peft_folder(out, tiny()).ok());
  EXPECT_NE(bytes_of(out + "/adapter_config.json").find("org/tiny"), std::string::npos);
  EXPECT_EQ(export_peft(test::data_path("golden/tiny-lora"), *model.model, "org/tiny", out).code(), Code::kConflict);
  EXPECT_FALSE(export_peft(test::data_path("golden/none"), *model.model, "org/tiny", folder.path() + "/x").ok());
}

}  // namespace
}  // namespace sluice
