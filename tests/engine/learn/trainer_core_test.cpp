// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's work over a real store: batches, candidates, stops at every point of the path.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/learn/trainer_core_fixture.h"
#include "store/database.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::FakeStepRunner;
using testing::TrainerCoreTest;

TEST_F(TrainerCoreTest, TrainsOnceOnEachBatchInServingOrder) {
  serve_mixed(7);
  EXPECT_EQ(work(), Work::kDone);
  EXPECT_EQ(work(), Work::kNothing);
  const std::vector<BatchRow> batches = store_->batches(session_, 0, 10);
  ASSERT_EQ(batches.size(), 1u);
  EXPECT_EQ(batches[0].state, "trained");
  const std::vector<RecordRow> records = store_->records_after(0, 10);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(batches[0].records[i], records[i].id);
  const std::vector<StepRow> steps = store_->steps(session_, 0, 10);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].number, 1);
  EXPECT_EQ(store_->record(records[0].id)->used_in_step, steps[0].id);
  const std::vector<MetricRow> loss = store_->metrics(session_, "loss", 0, 10);
  ASSERT_EQ(loss.size(), 1u);
  EXPECT_EQ(loss[0].x, 7) << "x counts the live requests of the session";
  for (const char* name : {"kl_base", "reward_mean", "entropy", "clip_fraction", "truncated_fraction", "length", "grad_norm",
                           "train_tokens_per_s"}) {
    EXPECT_EQ(store_->metrics(session_, name, 0, 10).size(), 1u) << name;
  }
  serve_mixed(1);
  EXPECT_EQ(work(), Work::kDone);
  EXPECT_EQ(store_->batches(session_, 0, 10)[1].records[0], records[4].id);
}

TEST_F(TrainerCoreTest, AllAcceptAndAllRejectMoveTheHeadApart) {
  serve(4, [](int) { return true; });
  ASSERT_EQ(work(), Work::kDone);
  const auto up = runner_.head.theta;
  ASSERT_TRUE(core_->move_head(kBaseVersion).ok());
  number_ = 0;
  serve(4, [](int) { return false; });
  ASSERT_EQ(work(), Work::kDone);
  for (int i = 0; i < 4; ++i) EXPECT_LT(runner_.head.theta[i] * up[i], 0) << i;
}

TEST_F(TrainerCoreTest, WritesADurableCandidateEverySecondStep) {
  serve_mixed(16);
  work_all();
  ASSERT_EQ(candidates_.size(), 2u);
  const VersionRow first = store_->version(candidates_[0]).value(), second = store_->version(candidates_[1]).value();
  EXPECT_EQ(first.parent, kBaseVersion);
  EXPECT_EQ(second.parent, first.id);
  EXPECT_EQ(first.head_step, 2);
  EXPECT_EQ(second.head_step, 4);
  EXPECT_EQ(first.state, VersionState::kCandidate);
  const std::vector<StepRow> steps = store_->steps(session_, 0, 10);
  EXPECT_EQ(steps[1].candidate, first.id);
  EXPECT_FALSE(steps[0].candidate.valid());
  EXPECT_EQ(first.step, steps[1].id);
  EXPECT_TRUE(fs::exists(store_->adapter_folder(first.id) + "/trainer.safetensors"));
  EXPECT_FALSE(fs::exists(store_->adapter_folder(first.id) + ".part"));
}

TEST_F(TrainerCoreTest, AgesCountStepsBetweenVersionAndHead) {
  serve_mixed(8);
  work_all();
  serve_mixed(2);                    // from the base
  serve_mixed(2, candidates_.at(0));  // as if it had been in service
  ASSERT_EQ(work(), Work::kDone);
  EXPECT_EQ(runner_.batches.back().age, (std::vector<std::int32_t>{2, 2, 0, 0}));
}

TEST_F(TrainerCoreTest, WaitsAtTheBoundUntilAPromotionOrAnExtension) {
  serve_mixed(40);
  work_all();
  EXPECT_EQ(core_->status().head_step, 6);
  EXPECT_EQ(work(), Work::kAtBound);
  EXPECT_EQ(bounds_, 1) << "announced once";
  core_->extend(1);
  EXPECT_EQ(work(), Work::kDone);
  EXPECT_EQ(work(), Work::kAtBound);
  promote(candidates_.at(1));
  ASSERT_TRUE(core_->decision(candidates_[1], Verdict::kPromote, candidates_[1]).ok());
  EXPECT_EQ(work(), Work::kDone);
  EXPECT_EQ(core_->status().head_step, 8) << "the head went on from where it was";
}

TEST_F(TrainerCoreTest, EqualRewardsAreDroppedWithTheirReason) {
  settings_.skip_equal_rewards = true;
  ASSERT_TRUE(restart().ok());
  serve(4, [](int) { return true; });
  EXPECT_EQ(work(), Work::kDone);
  EXPECT_EQ(work(), Work::kNothing);
  EXPECT_EQ(runner_.steps, 0);
  EXPECT_EQ(store_->counts(session_).dropped.at("no_spread"), 4);
  EXPECT_EQ(store_->batches(session_, 0, 10)[0].state, "discarded");
}

TEST_F(TrainerCoreTest, RecordsThatCannotTrainDoNotHideThoseThatCan) {
  for (int i = 0; i < 9; ++i) {
    RecordRow record = testing::served(i);
    record.session = session_;
    record.temperature = 0;
    const RecordRow stored = store_->add_record(record).value();
    ASSERT_TRUE(store_->add_feedback(testing::label(stored.id, true)).ok());
  }
  serve_mixed(4);
  work_all();
  EXPECT_EQ(runner_.steps, 1);
  EXPECT_EQ(store_->counts(session_).dropped.at("greedy"), 9);
}

// A stream holds its next question back while a batch's worth of labels waits: one that can't train must not count for long.
TEST_F(TrainerCoreTest, WhatCannotTrainHoldsNoStreamBack) {
  RecordRow record = testing::served(0);
  record.session = session_;
  record.temperature = 0;
  const RecordRow stored = store_->add_record(record).value();
  ASSERT_TRUE(store_->add_feedback(testing::label(stored.id, true)).ok());
  serve_mixed(2);
  EXPECT_EQ(work(), Work::kNothing);
  EXPECT_EQ(store_->counts(session_).waiting, 3) << "it may ride along with a batch";
  serve_mixed(1);
  work_all();
  EXPECT_EQ(store_->counts(session_).waiting, 3);
  EXPECT_EQ(store_->counts(session_).dropped.at("greedy"), 1);
}

TEST_F(TrainerCoreTest, ABrakeStopsWithANotice) {
  runner_.on_stats = [](int, StepStats& s) {
    s.fresh_tokens = 600;
    s.fresh_abs_kl = 2;
  };
  serve_mixed(8);
  EXPECT_EQ(work(), Work::kBraked);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_EQ(store_->steps(session_, 0, 10).size(), 1u) << "the step is durable";
}

TEST_F(TrainerCoreTest, ASkippedStepIsToldAndDoesNotCount) {
  runner_.on_stats = [](int step, StepStats& s) {
    s.skipped = step == 0;
    s.skipped_tensors = "model.layers.0.self_attn.q_proj";
    s.grad_norm = NAN;
  };
  serve_mixed(8);
  work_all();
  EXPECT_EQ(core_->status().head_step, 1);
  ASSERT_EQ(notices_.size(), 1u);
  EXPECT_NE(notices_[0].find("q_proj"), std::string::npos);
}

// Stops after every number of steps: the rest in a new process gives the head of a run that never stopped.
TEST_F(TrainerCoreTest, RestartAnywhereGivesTheSameHeadToTheBit) {
  serve_mixed(24);
  work_all();
  const FakeStepRunner::Head straight = runner_.head;
  const std::size_t versions = store_->versions().size();
  for (int stop = 0; stop <= 6; ++stop) {
    TearDown();
    number_ = 0;
    SetUp();
    serve_mixed(24);
    for (int i = 0; i < stop; ++i) ASSERT_EQ(work(), Work::kDone);
    core_.reset();
    open_store();
    ASSERT_TRUE(restart().ok());
    work_all();
    EXPECT_EQ(runner_.head.theta, straight.theta) << "stopped after " << stop;
    EXPECT_EQ(store_->steps(session_, 0, 100).size(), 6u);
    EXPECT_EQ(store_->versions().size(), versions);
    EXPECT_TRUE(store_->verify().empty());
  }
}

// Somebody had a record forgotten that a step since the last checkpoint had used.
TEST_F(TrainerCoreTest, ForgottenRecordsAreLeftOutOfWhatIsRepeated) {
  serve_mixed(4);
  ASSERT_EQ(work(), Work::kDone);
  const TrainBatch whole = runner_.batches.back();
  const std::vector<RecordId> used = store_->batches(session_, 0, 10).at(0).records;
  ASSERT_TRUE(store_->redact_record(used[0]).ok());
  ASSERT_TRUE(store_->delete_record(used[1]).ok());
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(core_->status().head_step, 1);
  const TrainBatch& rest = runner_.batches.back();
  ASSERT_EQ(rest.samples(), 2);
  const auto from = whole.advantage.begin() + whole.resp_start[2];
  EXPECT_EQ(rest.advantage, std::vector<float>(from, whole.advantage.end())) << "each keeps its own";
  ASSERT_TRUE(core_->train_inverted("deliberately bad").ok());
  ASSERT_TRUE(store_->redact_record(used[2]).ok());
  ASSERT_TRUE(store_->redact_record(used[3]).ok());
  ASSERT_TRUE(restart().ok()) << "nothing is left to repeat";
  EXPECT_EQ(core_->status().head_step, 0);
  EXPECT_EQ(core_->train_inverted("deliberately bad").code(), Code::kUnavailable);
  serve_mixed(8);
  work_all();
  EXPECT_EQ(core_->status().head_step, 2);
}

// Between the trainer's look at the labels and its batch a client takes one back.
TEST_F(TrainerCoreTest, ALabelTakenBackWhileABatchFormsStopsNothing) {
  serve_mixed(4);
  const auto db = Database::open((folder_ / "sluice.db").string(), Database::Mode::kWrite).value();
  db->exec("CREATE TRIGGER meanwhile AFTER INSERT ON batch BEGIN UPDATE record SET fate = '' WHERE seq = 2; END");
  ASSERT_FALSE(db->failed());
  EXPECT_EQ(work(), Work::kDone) << "looks again";
  EXPECT_EQ(runner_.steps, 0);
  db->exec("DROP TRIGGER meanwhile");
  work_all();
  EXPECT_EQ(runner_.steps, 1);
}

TEST_F(TrainerCoreTest, AFormedBatchIsRepeatedFromItsRow) {
  serve_mixed(4);
  runner_.before_step = [](int) { return internal_error("stop here"); };
  EXPECT_FALSE(core_->work().ok());
  ASSERT_EQ(store_->batches(session_, 0, 10).at(0).state, "formed");
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(store_->batches(session_, 0, 10).at(0).state, "trained");
  EXPECT_EQ(store_->steps(session_, 0, 10).size(), 1u);
  EXPECT_EQ(core_->status().head_step, 1);
}

// A decision takes the head elsewhere while a batch is in hand: its labels are not lost with the head it was formed for.
TEST_F(TrainerCoreTest, AFormedBatchOutlivesTheHeadItWasFormedFor) {
  serve_mixed(8);
  work_all();
  const VersionId rejected = candidates_.at(0);
  for (const bool killed : {true, false}) {
    serve_mixed(4);
    runner_.before_step = [](int) { return unavailable("stopped in the midst of it"); };
    EXPECT_FALSE(core_->work().ok());
    runner_.before_step = nullptr;
    if (killed) {
      reject(rejected);
      ASSERT_TRUE(restart().ok());
    } else {
      ASSERT_TRUE(core_->move_head(kBaseVersion).ok());
      ASSERT_TRUE(core_->restore().ok());  // as resuming after a failure does
    }
    EXPECT_EQ(store_->batches(session_, 0, 100).back().state, "trained") << killed;
    EXPECT_EQ(store_->counts(session_).waiting, 0) << killed;
  }
}

TEST_F(TrainerCoreTest, AWrittenCandidateIsRegisteredAfterAStop) {
  serve_mixed(8);
  work_all();
  const VersionRow row = store_->version(candidates_.at(0)).value();
  // The state of the disk when the process dies between the rename and the row: a folder of a version without a row.
  const VersionId next = store_->reserve_version().value();
  const std::string from = store_->adapter_folder(row.id), to = store_->adapter_folder(next);
  fs::copy(from, to);
  std::ifstream in(to + "/trainer.safetensors");
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const std::string old_id = "version=" + std::to_string(row.id.value) + "\n";
  text.replace(text.find(old_id), old_id.size(), "version=" + std::to_string(next.value) + "\n");
  std::ofstream(to + "/trainer.safetensors") << text;
  ASSERT_TRUE(restart().ok());
  const std::optional<VersionRow> registered = store_->version(next);
  ASSERT_TRUE(registered);
  EXPECT_EQ(registered->parent, row.parent);
  EXPECT_EQ(registered->head_step, row.head_step);
  EXPECT_EQ(registered->state, VersionState::kCandidate);
}

TEST_F(TrainerCoreTest, HalfWrittenFoldersAreRemoved) {
  fs::create_directories(store_->adapter_folder(VersionId(9)) + ".part");
  ASSERT_TRUE(restart().ok());
  EXPECT_FALSE(fs::exists(store_->adapter_folder(VersionId(9)) + ".part"));
}

TEST_F(TrainerCoreTest, ADecisionThatTheTrainerMissedIsFollowedAtTheNextStart) {
  serve_mixed(20);
  work_all();
  reject(candidates_.at(0));  // and the process dies before the trainer hears of it
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(core_->status().head_version, kBaseVersion);
  EXPECT_EQ(core_->status().head_step, 0);
  EXPECT_EQ(work(), Work::kNothing);
}

TEST_F(TrainerCoreTest, ALostCheckpointFallsBackToTheVersionInService) {
  serve_mixed(8);
  work_all();
  fs::remove_all(store_->adapter_folder(candidates_.at(0)));
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(core_->status().head_version, kBaseVersion);
  EXPECT_FALSE(notices_.empty());
}

TEST_F(TrainerCoreTest, AnotherSessionStartsFromTheVersionInService) {
  serve_mixed(8);
  work_all();
  const auto promoted = runner_.head.theta;
  promote(candidates_.at(0));
  serve_mixed(8);
  work_all();
  SessionRow second;
  second.name = "second";
  session_ = store_->add_session(second).value();
  ASSERT_TRUE(restart().ok());
  EXPECT_EQ(runner_.head.theta, promoted);
  EXPECT_EQ(core_->status().head_step, 2);
}

}  // namespace
}  // namespace sluice
