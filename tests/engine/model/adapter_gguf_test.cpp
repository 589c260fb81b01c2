// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapters in GGUF files.
#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>

#include "engine/model/golden.h"
#include "model/export.h"
#include "model/peft_folder.h"
#include "model/weights.h"
#include "support/temp_folder.h"

namespace sluice {
namespace {

const ModelConfig& tiny() {
  static const LoadedModel model = test::load("tiny-llama");
  return model_weights(*model.model)->config;
}

LoraData some_data() {
  auto data = read_peft_folder(test::data_path("golden/tiny-lora"), tiny());
  EXPECT_TRUE(data.ok()) << data.status().message();
  return *data;
}

// The adapter as convert_lora_to_gguf.py would store it: rows of B of q and k interleaved by pairs.
struct GgufLora {
  std::vector<std::pair<std::string, GgufValue>> keys = {{"general.architecture", std::string("llama")},
                                                         {"general.type", std::string("adapter")},
                                                         {"adapter.type", std::string("lora")},
                                                         {"adapter.lora.alpha", 8.0f}};
  std::vector<std::vector<float>> values;
  std::vector<GgufTensorToWrite> tensors;

  explicit GgufLora(const LoraData& data) {
    const std::map<Linear, std::string> names = {{Linear::kQ, "attn_q"},      {Linear::kK, "attn_k"},   {Linear::kV, "attn_v"},
                                                 {Linear::kO, "attn_output"}, {Linear::kGate, "ffn_gate"}, {Linear::kUp, "ffn_up"},
                                                 {Linear::kDown, "ffn_down"}};
    for (const LoraFactors& f : data.modules) {
      const std::string name = "blk." + std::to_string(f.layer) + "." + names.at(f.linear) + ".weight";
      std::vector<float> b = f.b;
      const std::int64_t head = tiny().head_dim, rows = tiny().linear_rows(f.linear), rank = f.rank;
      for (std::int64_t r = 0; (f.linear == Linear::kQ || f.linear == Linear::kK) && r < rows; ++r) {
        const std::int64_t in_head = r % head, from = r - in_head + in_head % 2 * (head / 2) + in_head / 2;
        std::copy_n(f.b.begin() + from * rank, rank, b.begin() + r * rank);
      }
      add(name + ".lora_a", {tiny().linear_cols(f.linear), rank}, f.a);
      add(name + ".lora_b", {rank, rows}, std::move(b));
    }
  }
  void add(const std::string& name, std::vector<std::int64_t> shape, std::vector<float> v) {
    values.push_back(std::move(v));
    tensors.push_back({name, BlockType::kF32, std::move(shape), std::as_bytes(std::span(values.back()))});
  }
  Status write(const std::string& path) const { return write_gguf(path, keys, tensors); }
};

TEST(GgufAdapter, EqualsThePeftFolderItWasMadeFrom) {
  const sluice::testing::TempFolder folder;
  const std::string path = folder.path() + "/lora.gguf";
  const LoraData data = some_data();
  ASSERT_TRUE(GgufLora(data).write(path).ok());
  const auto read = read_adapter(path, tiny());
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(read->modules.size(), data.modules.size());
  for (std::size_t i = 0; i < data.modules.size(); ++i) {
    EXPECT_EQ(read->modules[i].a, data.modules[i].a) << i;
    EXPECT_EQ(read->modules[i].b, data.modules[i].b) << i;
    EXPECT_EQ(read->modules[i].scale, data.modules[i].scale) << i;
  }
  const LoadedModel model = test::load("tiny-llama");
  EXPECT_TRUE(model.model->adapter_loader().load(path, VersionId(4)).ok());
}

TEST(GgufAdapter, ImportWritesAPeftFolderThatComputesTheSame) {
  const sluice::testing::TempFolder folder;
  const std::string path = folder.path() + "/lora.gguf", to = folder.path() + "/imported";
  const LoraData data = some_data();
  ASSERT_TRUE(GgufLora(data).write(path).ok());
  const LoadedModel model = test::load("tiny-llama");
  const auto imported = import_adapter(path, *model.model, "tiny", to);
  ASSERT_TRUE(imported.ok()) << imported.status().message();
  EXPECT_EQ(imported->modules, static_cast<int>(data.modules.size()));
  EXPECT_EQ(imported->rank, 4);
  const auto read = read_peft_folder(to, tiny());
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->modules[0].b, data.modules[0].b);
  EXPECT_EQ(read->modules[0].scale, data.modules[0].scale);
  EXPECT_EQ(import_adapter(path, *model.model, "tiny", to).code(), Code::kConflict);
  EXPECT_EQ(import_adapter(folder.path() + "/none", *model.model, "tiny", folder.path() + "/x").code(), Code::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/x"));
}

TEST(GgufAdapter, LRA4_LRA7_RefusesWithTheList) {
  const sluice::testing::TempFolder folder;
  const std::string path = folder.path() + "/lora.gguf";
  const LoraData data = some_data();
  const auto refused = [&](const GgufLora& lora, const std::string& says) {
    ASSERT_TRUE(lora.write(path).ok());
    const auto read = read_adapter(path, tiny());
    ASSERT_FALSE(read.ok()) << says;
    EXPECT_NE(read.status().message().find(says), std::string::npos) << read.status().message();
    EXPECT_NE(read.status().message().find(path), std::string::npos) << read.status().message();
  };
  GgufLora lora(data);
  lora.keys[0].second = std::string("qwen2");
  refused(lora, "made for a qwen2 model");
  lora = GgufLora(data);
  lora.keys[1].second = std::string("model");
  refused(lora, "no LoRA adapter");
  lora = GgufLora(data);
  lora.keys[3].second = 0.0f;
  refused(lora, "adapter.lora.alpha");
  lora = GgufLora(data);
  lora.tensors[2].name = "blk.9.attn_q.weight.lora_a";
  refused(lora, "blk.9.attn_q.weight.lora_a belongs to no module");
  refused(lora, "has no lora_a");
  lora = GgufLora(data);
  lora.tensors.clear();
  refused(lora, "no module is adapted");
  lora.add("blk.0.attn_q.weight.lora_a", {64, 257}, std::vector<float>(64 * 257));
  lora.add("blk.0.attn_q.weight.lora_b", {257, 64}, std::vector<float>(64 * 257));
  refused(lora, "has rank 257; Sluice takes ranks up to 256");
  lora = GgufLora(data);
  lora.values[0][3] = std::numeric_limits<float>::quiet_NaN();
  refused(lora, "not finite");
}

}  // namespace
}  // namespace sluice
