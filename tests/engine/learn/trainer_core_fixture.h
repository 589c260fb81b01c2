// SPDX-License-Identifier: GPL-3.0-or-later
// The trainer's work over a real store and a StepRunner of four numbers: what its tests share.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/learn/fake_step_runner.h"
#include "engine/learn/labelled.h"
#include "learn/trainer_core.h"

namespace sluice::testing {

namespace fs = std::filesystem;

inline LearnSettings small() {
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
      RecordRow record = served(number_, 3 + number_ % 5, version);
      record.session = session_;
      const Result<RecordRow> stored = store_->add_record(record);
      ASSERT_TRUE(stored.ok()) << stored.status().message();
      const auto outcome = store_->add_feedback(label(stored->id, accept(number_)));
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

}  // namespace sluice::testing
