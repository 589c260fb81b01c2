// SPDX-License-Identifier: GPL-3.0-or-later
// What becomes of a session whose candidates the gate neither promotes nor rejects, so that the trainer stands at max_ahead.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/guarded.h"
#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"
#include "held_recipe.h"
#include "runtime/runtime.h"

namespace sluice {
namespace {

// What its user likes, its protected metric forbids: whatever gains is held for the harm it does.
std::string harmful() {
  std::string out = testing::kHeldRecipe;
  const auto put = [&out](const std::string& what, const std::string& by) { out = testing::changed(out, what, by); };
  put(R"("name": "held")", R"("name": "harmful")");
  put(R"("max": 12)", R"("max": 9)");
  put(R"([{"rule": "not-empty"}])", R"([{"rule": "characters", "min": 10}])");
  std::string topics = R"("fog")";
  for (int i = 0; i < 40; ++i) topics += R"(, "thing )" + std::to_string(i) + R"(")";
  put(R"("fog")", topics);
  put(R"("lr": 0.001)", R"("lr": 0.02)");
  put(R"("batch_size": 8, "candidate_every": 1)", R"("batch_size": 16, "candidate_every": 4)");
  put(R"("max_ahead": 1,)", R"("max_ahead": 4,)");
  put(R"("alpha": 0.01, "beta": 0.01, "n_min": 2, "cap": 4)", R"("alpha": 0.1, "beta": 0.01, "n_min": 4, "cap": 32)");
  return out;
}

class PlateauTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(folder.path + "/recipes");
    std::ofstream(folder.path + "/recipes/held.json") << testing::kHeldRecipe;
    std::ofstream(folder.path + "/recipes/harmful.json") << harmful();
    log.set_sink([this](LogLevel, std::string_view, std::string_view text) { count(text); }, LogLevel::kInfo);
    RuntimeOptions o = testing::tiny_runtime(folder.path);
    o.recipe_folder = folder.path + "/recipes";
    runtime = testing::open_runtime(o, log);
    ASSERT_TRUE(runtime);
    ASSERT_TRUE(runtime->wait_ready(60).ok());
  }
  void count(std::string_view text) {
    MutexLock lock(mu);
    went_back += text.find("the head goes back to the version in service") != std::string_view::npos;
    asked += text.find("training waits until you promote or reject") != std::string_view::npos;
    changed.notify_all();
  }
  SessionId start(std::int64_t requests, const std::string& recipe = "held") {
    StartSession start;
    start.recipe = recipe;
    start.max_requests = requests;
    const CommandOutcome started = runtime->run(start);
    EXPECT_TRUE(started.ok()) << started.text;
    return started.session.value_or(SessionId());
  }

  TempFolder folder;
  Mutex mu;
  CondVar changed;
  int went_back SLUICE_GUARDED_BY(mu) = 0, asked SLUICE_GUARDED_BY(mu) = 0;
  Log log;
  std::unique_ptr<Runtime> runtime;
};

// The demo, in the window as in the terminal: no click is needed to come to its end.
TEST_F(PlateauTest, AStreamWithALastRequestGoesOnByItself) {
  const SessionId session = start(48);
  EXPECT_FALSE(runtime->snapshot()->session_through);
  EXPECT_TRUE(runtime->wait_session_finished(240)) << "stands at " << runtime->snapshot()->train.doing;
  EXPECT_EQ(runtime->store().counts(session).live_records, 48);
  ASSERT_TRUE(runtime->wait_ready(1).ok()) << "puts out a new snapshot";
  EXPECT_TRUE(runtime->snapshot()->session_through);
  MutexLock lock(mu);
  EXPECT_GE(went_back, 2) << "each held candidate takes one of six batches";
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(runtime->store().serving_version(), kBaseVersion);
}

TEST_F(PlateauTest, WhatIsHeldForItsHarmIsTriedAgainAtHalfStrength) {
  start(320, "harmful");
  EXPECT_TRUE(runtime->wait_session_finished(240)) << "stands at " << runtime->snapshot()->train.doing;
  std::map<VersionId, std::string> reason;
  for (const DecisionRow& d : runtime->store().decisions(0, 1000)) reason[d.version] = d.reason_code;
  const std::vector<VersionRow> versions = runtime->store().versions();
  int halves = 0;
  for (std::size_t i = 1; i < versions.size(); ++i) {
    const bool harmful = reason[versions[i].id] == "protected";  // also where the stream ended with it
    const bool half = i + 1 < versions.size() && versions[i + 1].label == "half strength";
    EXPECT_EQ(half, harmful) << "v" << versions[i].id.value;
    halves += half;
  }
  EXPECT_GE(halves, 1);
}

TEST_F(PlateauTest, AStreamWithoutEndAsksTheOperator) {
  start(0);
  {
    MutexLock lock(mu);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (asked == 0 && changed.wait_until(mu, end)) {
    }
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(went_back, 0);
  }
  ASSERT_TRUE(runtime->wait_ready(1).ok()) << "puts out a new snapshot";
  EXPECT_EQ(runtime->snapshot()->train.steps_ahead, 1) << "the held candidate stays the head";
}

// What the workbench offers then (gate.md §4); an answer that nobody waits for is refused.
TEST_F(PlateauTest, AnAnswerLetsTrainingGoOnOrBack) {
  EXPECT_FALSE(runtime->run(TrainOn{}).ok()) << "no session runs";
  start(0);
  const auto wait_asked = [this](int times) {
    MutexLock lock(mu);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    while (asked < times && changed.wait_until(mu, end)) {
    }
    return asked == times;
  };
  const auto now = [this] {
    EXPECT_TRUE(runtime->wait_ready(1).ok());
    return runtime->snapshot();
  };
  ASSERT_TRUE(wait_asked(1));
  EXPECT_TRUE(now()->train.asks);
  EXPECT_EQ(now()->train.phase, TrainPhase::kAtBound);
  ASSERT_EQ(now()->gate.held.size(), 1u);
  EXPECT_EQ(runtime->store().version(now()->gate.held.front())->state, VersionState::kHeld);

  EXPECT_TRUE(runtime->run(TrainOn{}).ok());
  ASSERT_TRUE(wait_asked(2)) << "one more step, one more candidate, and the same question";
  EXPECT_EQ(now()->train.steps_ahead, 2);
  EXPECT_EQ(now()->gate.held.size(), 2u);

  EXPECT_TRUE(runtime->run(DiscardTraining{}).ok());
  ASSERT_TRUE(wait_asked(3));
  EXPECT_EQ(now()->train.steps_ahead, 1) << "from the version in service again";
  EXPECT_EQ(runtime->store().serving_version(), kBaseVersion);

  EXPECT_TRUE(runtime->run(PauseSession{}).ok());
  EXPECT_EQ(runtime->run(TrainOn{}).status.code(), Code::kConflict) << "a pause stands still";
  EXPECT_EQ(runtime->run(DiscardTraining{}).status.code(), Code::kConflict);
}

}  // namespace
}  // namespace sluice
