// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's thread: wakes on events, follows commands between steps, pauses, fails and goes on.
#include "learn/trainer.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>

#include "engine/learn/fake_step_runner.h"
#include "engine/learn/labelled.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trainer_test." + RecordId::make().text);
    StoreOptions options;
    options.folder = folder_;
    store_ = Store::open(options).value();
    store_->add_listener([this](const StoreEvent& event) {
      Trainer* trainer = listening_.load();
      if (trainer != nullptr && event.kind == EventKind::kFeedback) trainer->notify();
      if (event.kind == EventKind::kStep) {
        MutexLock lock(mu_);
        ++announced_steps_;
        stepped_.notify_all();
      }
    });
    session_ = store_->add_session({}).value();
    TrainerOptions trainer;
    trainer.session = session_;
    trainer.adapter_name = "test";
    trainer.settings.batch_size = 4;
    trainer.settings.candidate_every = 1;
    trainer.settings.max_ahead = 3;
    TrainerCallbacks callbacks;
    callbacks.on_notice = [this](const std::string& text, const std::string&) {
      MutexLock lock(mu_);
      notices_.push_back(text);
    };
    trainer_ = Trainer::open(*store_, runner_, trainer, callbacks).value();
    listening_ = trainer_.get();
  }
  void TearDown() override {
    listening_ = nullptr;
    trainer_.reset();
    store_.reset();
    fs::remove_all(folder_);
  }
  void serve(int count) {
    for (int i = 0; i < count; ++i, ++number_) {
      RecordRow record = testing::served(number_);
      record.session = session_;
      const RecordRow stored = store_->add_record(record).value();
      ASSERT_TRUE(store_->add_feedback(testing::label(stored.id, number_ % 2 == 0)).ok());
    }
  }
  // The store may announce a row after its write returned: look once more, whatever was announced.
  bool idle() {
    trainer_->notify();
    return trainer_->wait_idle(std::chrono::steady_clock::now() + std::chrono::seconds(60));
  }
  bool wait_for_steps(int count) {
    MutexLock lock(mu_);
    while (announced_steps_ < count) {
      if (!stepped_.wait_until(mu_, std::chrono::steady_clock::now() + std::chrono::seconds(60))) return false;
    }
    return true;
  }
  std::size_t steps() { return store_->steps(session_, 0, 100).size(); }

  fs::path folder_;
  std::unique_ptr<Store> store_;
  SessionId session_;
  testing::FakeStepRunner runner_;
  std::unique_ptr<Trainer> trainer_;
  std::atomic<Trainer*> listening_{nullptr};
  Mutex mu_;
  CondVar stepped_;
  int announced_steps_ SLUICE_GUARDED_BY(mu_) = 0;
  std::vector<std::string> notices_ SLUICE_GUARDED_BY(mu_);
  int number_ = 0;
};

TEST_F(TrainerTest, StepsWhenLabelsArrive) {
  trainer_->start(false);
  serve(9);
  ASSERT_TRUE(wait_for_steps(2)) << "the feedback's events alone wake it";
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 2u);
  EXPECT_EQ(trainer_->status().state, TrainerState::kWaiting);
  EXPECT_EQ(trainer_->status().step_samples_waiting, 1);
}

TEST_F(TrainerTest, APauseStandsStillAndResumeGoesOn) {
  trainer_->start(true);
  serve(4);
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 0u);
  EXPECT_EQ(trainer_->status().state, TrainerState::kPaused);
  trainer_->resume();
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 1u);
}

TEST_F(TrainerTest, TheBoundEndsByDiscardOrExtension) {
  trainer_->start(false);
  serve(20);
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 3u);
  EXPECT_EQ(trainer_->status().state, TrainerState::kAtBound);
  trainer_->extend(1);
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 4u);
  trainer_->discard();
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 5u);
  EXPECT_EQ(trainer_->status().head_step, 1);
}

TEST_F(TrainerTest, AFailureIsToldAndResumeTriesAgain) {
  std::atomic<bool> broken{true};
  runner_.before_step = [&](int) { return broken ? internal_error("out of memory") : Status(); };
  trainer_->start(false);
  serve(4);
  ASSERT_TRUE(idle());
  EXPECT_EQ(trainer_->status().state, TrainerState::kFailed);
  EXPECT_NE(trainer_->status().message.find("out of memory"), std::string::npos);
  serve(4);
  trainer_->on_decision(VersionId(9), Verdict::kHold, kBaseVersion);
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 0u);
  EXPECT_EQ(trainer_->status().state, TrainerState::kFailed);
  EXPECT_NE(trainer_->status().message.find("out of memory"), std::string::npos) << "also after a decision came";
  broken = false;
  trainer_->resume();
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 2u);
}

TEST_F(TrainerTest, AThrowingRunnerFailsTheStepOnly) {
  std::atomic<bool> broken{true};
  runner_.before_step = [&](int) -> Status {
    if (broken) throw std::runtime_error("thrown");
    return Status();
  };
  trainer_->start(false);
  serve(4);
  ASSERT_TRUE(idle());
  EXPECT_EQ(trainer_->status().state, TrainerState::kFailed);
  broken = false;
  trainer_->resume();
  ASSERT_TRUE(idle());
  EXPECT_EQ(steps(), 1u);
}

TEST_F(TrainerTest, AnInvertedCandidateAndARollbackAreCommands) {
  trainer_->start(false);
  trainer_->train_inverted_candidate("deliberately bad");
  ASSERT_TRUE(idle());
  {
    MutexLock lock(mu_);
    EXPECT_EQ(notices_.size(), 1u) << "nothing to invert yet";
  }
  serve(4);
  ASSERT_TRUE(idle());
  trainer_->train_inverted_candidate("deliberately bad");
  ASSERT_TRUE(idle());
  EXPECT_EQ(store_->versions().back().label, "deliberately bad");
  trainer_->rollback(kBaseVersion);
  ASSERT_TRUE(idle());
  EXPECT_EQ(trainer_->status().head_version, kBaseVersion);
}

TEST_F(TrainerTest, StopFinishesTheStepInHand) {
  trainer_->start(false);
  serve(4);
  ASSERT_TRUE(idle());
  trainer_->stop();
  EXPECT_EQ(trainer_->status().state, TrainerState::kStopped);
  EXPECT_EQ(steps(), 1u);
}

}  // namespace
}  // namespace sluice
