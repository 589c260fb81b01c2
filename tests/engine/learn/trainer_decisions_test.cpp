// SPDX-License-Identifier: GPL-3.0-or-later
// How the trainer's head follows decisions, and the candidates made on purpose: inverted, and at half strength.
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/learn/trainer_core_fixture.h"

namespace sluice {
namespace {

using testing::FakeStepRunner;
using testing::TrainerCoreTest;

TEST_F(TrainerCoreTest, RejectReturnsTheHeadToTheIncumbent) {
  serve_mixed(8);
  work_all();
  promote(candidates_.at(0));
  ASSERT_TRUE(core_->decision(candidates_[0], Verdict::kPromote, candidates_[0]).ok());
  const FakeStepRunner::Head incumbent = runner_.head;
  serve_mixed(12);
  work_all();
  ASSERT_EQ(core_->status().head_step, 5);
  reject(candidates_.at(1));
  ASSERT_TRUE(core_->decision(candidates_[1], Verdict::kReject, candidates_[0]).ok());
  EXPECT_EQ(runner_.head.theta, incumbent.theta);
  EXPECT_EQ(runner_.head.t, 2);
  EXPECT_EQ(core_->status().head_step, 2);
  EXPECT_EQ(work(), Work::kNothing) << "used records stay used";
  // What comes next descends from the incumbent.
  serve_mixed(8, candidates_[0]);
  work_all();
  EXPECT_EQ(store_->version(candidates_.at(2))->parent, candidates_[0]);
}

// A step may end, and write its candidate, after the decision that gave its line up and before the trainer hears of it.
TEST_F(TrainerCoreTest, ACandidateOfALineThatWasLeftIsNotMeasured) {
  for (const bool restarted : {false, true}) {
    TearDown();
    number_ = 0;
    SetUp();
    serve_mixed(12);
    work_all();
    ASSERT_EQ(candidates_.size(), 1u);
    const VersionId rejected = candidates_[0];
    serve_mixed(4);
    runner_.before_step = [&](int) {
      reject(rejected);
      runner_.before_step = nullptr;
      return Status();
    };
    ASSERT_EQ(work(), Work::kDone);
    ASSERT_EQ(candidates_.size(), 2u);
    const VersionId late = candidates_[1];
    ASSERT_EQ(store_->version(late)->parent, rejected);
    if (restarted) {
      ASSERT_TRUE(restart().ok());
    } else {
      ASSERT_TRUE(core_->decision(rejected, Verdict::kReject, kBaseVersion).ok());
    }
    EXPECT_EQ(store_->version(late)->state, VersionState::kSuperseded) << restarted;
    EXPECT_EQ(core_->status().head_version, kBaseVersion);
  }
}

TEST_F(TrainerCoreTest, WordOfAnOlderDecisionIsPassedOver) {
  serve_mixed(16);
  work_all();
  ASSERT_EQ(candidates_.size(), 2u);
  promote(candidates_[0]);
  promote(candidates_[1]);
  ASSERT_TRUE(core_->decision(candidates_[1], Verdict::kPromote, candidates_[0]).ok());
  const auto head = runner_.head.theta;
  ASSERT_TRUE(core_->rolled_back(candidates_[0]).ok());
  ASSERT_TRUE(core_->decision(candidates_[0], Verdict::kPromote, kBaseVersion).ok());
  EXPECT_EQ(core_->status().head_version, candidates_[1]);
  EXPECT_EQ(runner_.head.theta, head);
}

// The answers that follow are of the version in service; what its checkpoint knew of rewards is older than they are.
TEST_F(TrainerCoreTest, ARejectKeepsTheMeanOfTheRewards) {
  const auto mean = [](const BatchRow& batch, const std::string& when) {
    return nlohmann::json::parse(batch.baseline_json)[when].dump();
  };
  for (const bool restarted : {false, true}) {
    serve_mixed(8);
    work_all();
    reject(candidates_.back());
    ASSERT_TRUE(core_->decision(candidates_.back(), Verdict::kReject, kBaseVersion).ok());
    ASSERT_TRUE(core_->train_inverted("deliberately bad").ok());
    if (restarted) {
      ASSERT_TRUE(restart().ok());
    }
    serve_mixed(4);
    EXPECT_EQ(work(), Work::kDone);
    std::vector<BatchRow> batches = store_->batches(session_, 0, 100);
    std::erase_if(batches, [](const BatchRow& batch) { return batch.inverted; });
    ASSERT_GE(batches.size(), 3u);
    EXPECT_EQ(mean(batches.back(), "before"), mean(batches[batches.size() - 2], "after")) << restarted;
    serve_mixed(4);  // the next round begins with a candidate of its own
    work_all();
  }
}

// Cores go by it.
TEST_F(TrainerCoreTest, SaysWhenAStepBeginsAndThatItHasEnded) {
  serve_mixed(8);
  work_all();
  EXPECT_EQ(told_, "()()");
  ASSERT_TRUE(core_->train_inverted("deliberately bad").ok());
  EXPECT_EQ(told_, "()()()()()");
  serve_mixed(4);
  runner_.before_step = [this](int) {
    EXPECT_EQ(told_.back(), '(');
    return unavailable("a test fails it");
  };
  EXPECT_FALSE(core_->work().ok());
  EXPECT_EQ(told_, "()()()()()()");
}

TEST_F(TrainerCoreTest, DecisionsOfOtherLinesLeaveTheHeadAlone) {
  serve_mixed(8);
  work_all();
  ASSERT_TRUE(core_->train_inverted("deliberately bad").ok());
  const VersionId bad = candidates_.at(1);
  const auto head = runner_.head.theta;
  reject(bad);
  ASSERT_TRUE(core_->decision(bad, Verdict::kReject, kBaseVersion).ok());
  EXPECT_EQ(runner_.head.theta, head);
  ASSERT_TRUE(core_->decision(candidates_[0], Verdict::kHold, kBaseVersion).ok());
  EXPECT_EQ(runner_.head.theta, head);
}

TEST_F(TrainerCoreTest, RollbackMovesTheHeadToTheTarget) {
  serve_mixed(8);
  work_all();
  const auto first = runner_.head.theta;
  serve_mixed(8);
  work_all();
  ASSERT_NE(runner_.head.theta, first);
  ASSERT_TRUE(core_->move_head(candidates_.at(0)).ok());
  EXPECT_EQ(runner_.head.theta, first);
  EXPECT_EQ(core_->status().head_version, candidates_[0]);
  EXPECT_EQ(core_->move_head(VersionId(77)).code(), Code::kNotFound);
}

TEST_F(TrainerCoreTest, InvertedCandidateComesFromTheIncumbentOnOldRecords) {
  serve_mixed(8);
  work_all();
  const auto head = runner_.head.theta;
  const std::size_t steps_before = store_->steps(session_, 0, 100).size();
  ASSERT_TRUE(core_->train_inverted("deliberately bad").ok());
  EXPECT_EQ(runner_.head.theta, head) << "the head is left alone";
  EXPECT_EQ(core_->status().head_step, 2);
  const VersionRow bad = store_->version(candidates_.at(1)).value();
  EXPECT_EQ(bad.label, "deliberately bad");
  EXPECT_EQ(bad.parent, kBaseVersion);
  EXPECT_EQ(bad.head_step, 3);
  EXPECT_EQ(store_->steps(session_, 0, 100).size(), steps_before + 3);
  EXPECT_EQ(store_->metrics(session_, "loss", 0, 100).size(), steps_before) << "the curves show the head only";
  int inverted = 0;
  for (const BatchRow& batch : store_->batches(session_, 0, 100)) {
    if (!batch.inverted) continue;
    ++inverted;
    for (std::size_t i = 0; i < batch.records.size(); ++i) {
      const RecordRow record = store_->record(batch.records[i]).value();
      EXPECT_EQ(batch.rewards[i] > 0, store_->feedback_of(record.id)[0].kind == FeedbackKind::kReject);
    }
  }
  EXPECT_EQ(inverted, 3);
  // Nothing of it is repeated by the next start.
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(runner_.head.theta, head);
}

TEST_F(TrainerCoreTest, AnInvertedCandidateNeedsSomethingToInvert) {
  const Status none = core_->train_inverted("deliberately bad");
  EXPECT_EQ(none.code(), Code::kUnavailable);
  EXPECT_TRUE(candidates_.empty());
}

// Held for the harm it does: half way to it becomes the head, and is measured next.
TEST_F(TrainerCoreTest, ACandidateIsTriedAgainAtHalfStrength) {
  settings_.max_ahead = 2;
  ASSERT_TRUE(restart().ok());
  serve_mixed(16);
  work_all();
  ASSERT_EQ(candidates_.size(), 1u);
  const VersionId whole = candidates_[0];
  const auto far = runner_.head;
  ASSERT_TRUE(core_->backtrack(whole).ok());
  ASSERT_EQ(candidates_.size(), 2u) << "a candidate at once";
  const VersionRow half = store_->version(candidates_[1]).value();
  EXPECT_EQ(half.label, kHalfStrength);
  EXPECT_EQ(half.parent, kBaseVersion);
  EXPECT_EQ(half.head_step, 2);
  EXPECT_EQ(half.state, VersionState::kCandidate);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(runner_.head.theta[i], far.theta[i] / 2);
  EXPECT_EQ(runner_.head.t, far.t) << "moments and count stay";
  EXPECT_EQ(core_->status().head_version, half.id);
  EXPECT_EQ(work(), Work::kAtBound) << "until the gate has measured it";
  // A new process stands where this one did, and repeats no batch that is in it already.
  const auto head = runner_.head.theta;
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(runner_.head.theta, head);
  EXPECT_EQ(runner_.steps, 0);
  EXPECT_EQ(core_->status().head_version, half.id);
  // Promoted, it is what learning goes on from.
  promote(half.id);
  ASSERT_TRUE(core_->decision(half.id, Verdict::kPromote, kBaseVersion).ok());
  EXPECT_EQ(work(), Work::kDone);
  work_all();
  ASSERT_EQ(candidates_.size(), 1u);
  EXPECT_EQ(store_->version(candidates_[0])->parent, half.id);
  // Half of the next is half way from the version in service, not from the base.
  const auto next = runner_.head.theta;
  ASSERT_TRUE(core_->backtrack(candidates_[0]).ok());
  for (int i = 0; i < 4; ++i) EXPECT_EQ(runner_.head.theta[i], head[i] + (next[i] - head[i]) / 2);
  EXPECT_EQ(store_->version(candidates_[1])->parent, half.id);
}

TEST_F(TrainerCoreTest, HalfOfWhatTheHeadHasLeftChangesNothing) {
  serve_mixed(16);
  work_all();
  ASSERT_EQ(candidates_.size(), 2u);
  ASSERT_TRUE(core_->move_head(kBaseVersion).ok());
  const auto head = runner_.head.theta;
  for (const VersionId version : {candidates_[0], kBaseVersion, VersionId(77)}) {
    ASSERT_TRUE(core_->backtrack(version).ok());
    EXPECT_EQ(runner_.head.theta, head) << version.value;
  }
  EXPECT_EQ(candidates_.size(), 2u);
}

}  // namespace
}  // namespace sluice
