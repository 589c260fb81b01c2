// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's work over a real store: batches, candidates, decisions, stops at every point of the path.
#include "learn/trainer_core.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "engine/learn/fake_step_runner.h"
#include "engine/learn/labelled.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using testing::FakeStepRunner;

LearnSettings small() {
  LearnSettings s;
  s.batch_size = 4;
  s.candidate_every = 2;
  s.max_ahead = 6;
  s.optimiser.lr = 0.01;
  s.inverted_steps = 3;
  return s;
}

class TrainerCoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("trainer_core_test." + RecordId::make().text);
    open_store();
    SessionRow session;
    session.name = "test";
    session_ = store_->add_session(session).value();
    const Status restored = restart();
    ASSERT_TRUE(restored.ok()) << restored.message();
  }
  void TearDown() override {
    core_.reset();
    store_.reset();
    fs::remove_all(folder_);
  }

  void open_store() {
    store_.reset();
    StoreOptions options;
    options.folder = folder_;
    auto opened = Store::open(options);
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store_ = std::move(opened).value();
  }

  // As a new process would: nothing but rows and files is left.
  Status restart() {
    core_.reset();
    runner_ = FakeStepRunner();
    candidates_.clear();
    TrainerOptions options;
    options.session = session_;
    options.adapter_name = "test";
    options.settings = settings_;
    TrainerCallbacks callbacks;
    callbacks.on_candidate = [this](VersionId v) { candidates_.push_back(v); };
    callbacks.on_notice = [this](const std::string& text, const std::string&) { notices_.push_back(text); };
    callbacks.on_bound = [this] { ++bounds_; };
    callbacks.on_step = [this](bool works) { told_ += works ? "(" : ")"; };
    core_ = std::make_unique<TrainerCore>(*store_, runner_, options, callbacks);
    return core_->restore();
  }

  void serve(int count, std::function<bool(int)> accept, VersionId version = kBaseVersion) {
    for (int i = 0; i < count; ++i) {
      RecordRow record = testing::served(number_, 3 + number_ % 5, version);
      record.session = session_;
      const Result<RecordRow> stored = store_->add_record(record);
      ASSERT_TRUE(stored.ok()) << stored.status().message();
      const auto outcome = store_->add_feedback(testing::label(stored->id, accept(number_)));
      ASSERT_TRUE(outcome.ok()) << outcome.status().message();
      ++number_;
    }
  }
  void serve_mixed(int count, VersionId version = kBaseVersion) {
    serve(count, [](int i) { return i % 3 != 0; }, version);
  }

  Work work() {
    const Result<Work> done = core_->work();
    EXPECT_TRUE(done.ok()) << done.status().message();
    return done.ok() ? *done : Work::kNothing;
  }
  void work_all() {
    while (work() == Work::kDone) {
    }
  }

  void decide(VersionId version, Verdict verdict, VersionState state) {
    DecisionWrite write;
    write.row.session = session_;
    write.row.version = version;
    write.row.incumbent = store_->serving_version();
    write.row.verdict = verdict;
    write.row.kind = "gate";
    write.row.actor = "gate";
    write.row.reason_code = "better";
    write.row.reason_text = "a test decided";
    write.row.scope = verdict == Verdict::kPromote ? "full" : "";
    const VersionId incumbent = store_->serving_version();
    ASSERT_TRUE(store_->set_version_state(version, VersionState::kEvaluating).ok());
    write.states = {{version, state}};
    if (verdict == Verdict::kPromote) {
      write.states.insert(write.states.begin(), {incumbent, VersionState::kRetired});
      write.serving = version;
    }
    const auto committed = store_->commit_decision(write);
    ASSERT_TRUE(committed.ok()) << committed.status().message();
  }
  void promote(VersionId version) { decide(version, Verdict::kPromote, VersionState::kServing); }
  void reject(VersionId version) { decide(version, Verdict::kReject, VersionState::kRejected); }

  fs::path folder_;
  std::unique_ptr<Store> store_;
  SessionId session_;
  LearnSettings settings_ = small();
  FakeStepRunner runner_;
  std::unique_ptr<TrainerCore> core_;
  std::vector<VersionId> candidates_;
  std::vector<std::string> notices_;
  int bounds_ = 0;
  std::string told_;  // of steps: ( begins, ) has ended
  int number_ = 0;
};

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
