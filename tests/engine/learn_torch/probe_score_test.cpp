// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's side of a probe on the tiny model: the numbers of a training step, without the trainer.
#include "learn_torch/probe_score.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "engine/learn/labelled.h"
#include "learn_torch/step_runner.h"
#include "model/transformer.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

std::string data(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/" + name; }
const std::string kLora = data("golden/tiny-lora");

class ProbeScoreTest : public ::testing::Test {
 protected:
  ProbeScoreTest() : model(load_model(data("tiny-llama.gguf")).value().model) {
    StepRunnerOptions options;
    options.lora.rank = 4;
    options.lora.alpha = 8;
    head = make_step_runner(model, options).value();
    EXPECT_TRUE(head->load(kLora).ok());
    record = testing::served(3, 17, VersionId(1));
    batch = pack({{&record, 1, 1, 0}}).value();
  }
  Result<std::vector<float>> score(const std::string& folder = kLora) const {
    return score_as_training(*model, folder, {record.prompt_ids, record.token_ids, record.temperature}, 1);
  }

  std::shared_ptr<const Model> model;
  std::unique_ptr<StepRunner> head;
  RecordRow record;
  TrainBatch batch;
};

TEST_F(ProbeScoreTest, IsWhatTheHeadComputes) {
  const std::vector<float> want = head->log_probs(batch).value();
  const auto got = score();
  ASSERT_TRUE(got.ok()) << got.status().message();
  ASSERT_EQ(got->size(), record.token_ids.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR((*got)[i], want[i], 1e-5) << i;
  ASSERT_TRUE(head->reset_to_base(0).ok());
  EXPECT_NE(head->log_probs(batch).value(), want) << "the adapter matters";
}

// The gate's thread scores while the trainer's is in a step; neither sees the other.
TEST_F(ProbeScoreTest, BesideATrainingStep) {
  const std::vector<float> alone = score().value();
  auto other = make_step_runner(model, {{4, 8}, 1}).value();
  ASSERT_TRUE(other->load(kLora).ok());
  for (int k = 0; k < 10; ++k) ASSERT_TRUE(other->step(batch, LearnSettings()).ok());
  std::atomic<bool> stop{false};
  std::thread gate([&] {
    while (!stop) EXPECT_EQ(score().value(), alone);
  });
  for (int k = 0; k < 10; ++k) EXPECT_TRUE(head->step(batch, LearnSettings()).ok());
  stop = true;
  gate.join();
  EXPECT_EQ(head->log_probs(batch).value(), other->log_probs(batch).value());
}

TEST_F(ProbeScoreTest, WhatCantBeScoredIsAnError) {
  EXPECT_EQ(score("/nowhere/adapter").code(), Code::kNotFound);
  RecordRow good = record;
  record.token_ids.clear();
  EXPECT_EQ(score().code(), Code::kInvalidArgument);
  record = good;
  record.prompt_ids.clear();
  EXPECT_EQ(score().code(), Code::kInvalidArgument);
  for (const std::int32_t token : {-1, 1 << 20}) {
    record = good;
    record.token_ids.back() = token;
    const auto refused = score();
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.status().message(), HasSubstr(std::to_string(token)));
  }
  record = good;
  record.temperature = 0;
  EXPECT_EQ(score().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
