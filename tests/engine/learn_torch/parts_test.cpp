// SPDX-License-Identifier: GPL-3.0-or-later
// Micro-batches and the trainer's file.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <numeric>

#include "engine/learn/labelled.h"
#include "learn_torch/checkpoint.h"
#include "learn_torch/micro_batch.h"
#include "model/train_forward_at.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

// The sheet's bound for training is 0.8 GB in all; the activations of a piece are most of it.
TEST(MicroBatch, ActivationsOfTheEmbeddedModelFitTheBudget) {
  ModelConfig config;
  config.layers = 30, config.hidden = 576, config.ffn = 1536, config.heads = 9, config.kv_heads = 3, config.head_dim = 64;
  LoraConfig lora;
  lora.rank = LearnSettings().lora.rank;
  EXPECT_LT(activation_bytes(config, lora, LearnSettings().micro_batch_tokens, false), 560 << 20);
}

TEST(MicroBatch, CutsByLengthAndLosesNothing) {
  std::vector<RecordRow> records;
  std::vector<PackItem> items;
  for (int i = 0; i < 9; ++i) records.push_back(testing::served(i, 1 + (i * 5) % 11));
  for (const RecordRow& r : records) items.push_back({&r, 1, 1, 0});
  const TrainBatch batch = pack(items).value();
  for (std::int64_t limit : {1, 14, 20, 100000}) {
    std::vector<int> seen(static_cast<std::size_t>(batch.response_tokens()), 0);
    std::size_t tokens = 0;
    for (const MicroBatch& piece : cut(batch, limit)) {
      EXPECT_TRUE(piece.samples.size() == 1 || static_cast<std::int64_t>(piece.ids.size()) <= limit);
      EXPECT_EQ(piece.seq_start.back(), static_cast<std::int32_t>(piece.ids.size()));
      tokens += piece.ids.size();
      for (std::size_t j = 0; j < piece.token.size(); ++j) {
        const auto t = static_cast<std::size_t>(piece.token[j]);
        ++seen[t];
        EXPECT_EQ(piece.target[j], batch.target[t]);
        const auto row = static_cast<std::size_t>(piece.resp_index[j]), old = static_cast<std::size_t>(batch.resp_index[t]);
        EXPECT_EQ(piece.ids[row], batch.ids[old]);
        EXPECT_EQ(piece.pos[row], batch.pos[old]);
      }
    }
    EXPECT_EQ(tokens, batch.ids.size());
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
  }
  EXPECT_EQ(cut(batch, 100000).size(), 1u);
  EXPECT_EQ(cut(batch, 1).size(), 9u);
}

class TrainerFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trainer_file_test." + RecordId::make().text);
    fs::create_directories(folder_);
    path_ = folder_ / "trainer.safetensors";
    adamw_.t = 7;
    std::iota(adamw_.m.begin(), adamw_.m.end(), 0.1f);
    std::iota(adamw_.v.begin(), adamw_.v.end(), 0.3f);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path folder_;
  std::string path_;
  AdamW adamw_{5};
};

TEST_F(TrainerFileTest, ReadsBackToTheBit) {
  const CheckpointNotes notes = {{"baseline", "baseline1 0x1p+0"}, {"parent", "3"}};
  ASSERT_TRUE(write_trainer_file(path_, adamw_, notes).ok());
  const TrainerFile back = read_trainer_file(path_, 5).value();
  EXPECT_EQ(back.optimiser.t, 7);
  EXPECT_EQ(back.optimiser.m, adamw_.m);
  EXPECT_EQ(back.optimiser.v, adamw_.v);
  EXPECT_EQ(back.notes, notes);
}

TEST_F(TrainerFileTest, AnotherSizeOrADamagedFileIsNamed) {
  EXPECT_EQ(read_trainer_file(path_, 5).code(), Code::kNotFound);
  ASSERT_TRUE(write_trainer_file(path_, adamw_, {}).ok());
  const auto wrong = read_trainer_file(path_, 6);
  EXPECT_EQ(wrong.code(), Code::kCorrupt);
  EXPECT_NE(wrong.status().message().find("moment1"), std::string::npos);
  fs::resize_file(path_, fs::file_size(path_) - 4);
  EXPECT_EQ(read_trainer_file(path_, 5).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace sluice
