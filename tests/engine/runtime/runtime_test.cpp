// SPDX-License-Identifier: GPL-3.0-or-later
// The whole engine on the tiny model: sessions over restarts, freezing, busy ports, another model in the same workspace.
#include "runtime/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "engine/store/store_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeOptions options() const {
    RuntimeOptions o;
    o.data_folder = folder.path + "/ws";
    o.model_path = std::string(SLUICE_TEST_DATA) + "/tiny-llama.gguf";
    o.recipe_folder = std::string(SLUICE_SOURCE_DIR) + "/resources/recipes";
    o.port = 0;
    o.kv_tokens = 2048;
    return o;
  }
  std::unique_ptr<Runtime> open(const RuntimeOptions& o) {
    auto opened = Runtime::open(o, log);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    return opened.ok() ? std::move(opened).value() : nullptr;
  }
  std::unique_ptr<Runtime> ready() {
    auto runtime = open(options());
    const Status status = runtime->wait_ready(60);
    EXPECT_TRUE(status.ok()) << status.message();
    return runtime;
  }
  static StartSession live() {
    StartSession start;
    start.recipe = "be-brief";
    start.live_only = true;
    return start;
  }
  static SessionState state_of(Runtime& runtime, SessionId id) { return runtime.store().session(id)->state; }
  // The trainer takes notice on its own thread. False: not within a minute.
  static bool comes_to(Runtime& runtime, const std::string& doing) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (runtime.wait_ready(1).ok()) {  // puts out a new snapshot
      if (runtime.snapshot()->train.doing.find(doing) != std::string::npos) return true;
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return false;
  }
  // A candidate of an earlier session, without files.
  void add_candidate(VersionState state) {
    StoreOptions o;
    o.folder = folder.path + "/ws";
    auto store = std::move(Store::open(o)).value();
    VersionRow row;
    row.id = store->reserve_version().value();
    row.name = "be-brief";
    row.origin = "step";
    row.state = VersionState::kCandidate;
    ASSERT_TRUE(store->add_version(row).ok());
    if (state != VersionState::kCandidate) {
      ASSERT_TRUE(store->set_version_state(row.id, state).ok());
    }
  }

  TempFolder folder;
  Log log;
};

TEST_F(RuntimeTest, AnswersAndRunsOneSessionAtATime) {
  const auto runtime = ready();
  EXPECT_THAT(runtime->snapshot()->server_url, HasSubstr("http://127.0.0.1:"));
  Ask ask;
  ask.prompt = "hello";
  ask.max_tokens = 4;
  const CommandOutcome answer = runtime->run(ask);
  ASSERT_TRUE(answer.ok()) << answer.text;
  EXPECT_TRUE(answer.answers.front().record.valid());
  EXPECT_EQ(runtime->run(PauseSession{}).status.code(), Code::kConflict);
  const CommandOutcome started = runtime->run(live());
  ASSERT_TRUE(started.ok()) << started.text;
  EXPECT_EQ(runtime->snapshot()->session->id, *started.session);
  EXPECT_EQ(runtime->snapshot()->stream.max_requests, 0) << "a live session has no last request";
  EXPECT_EQ(runtime->run(live()).status.code(), Code::kConflict);
  EXPECT_EQ(runtime->run(LoadModel{}).status.code(), Code::kConflict);
  EXPECT_TRUE(runtime->run(EndSession{}).ok());
  EXPECT_FALSE(runtime->snapshot()->session);
  EXPECT_EQ(state_of(*runtime, *started.session), SessionState::kEnded);
  EXPECT_FALSE(runtime->wait_session_finished(0));
}

TEST_F(RuntimeTest, ASessionComesBackPausedAndGoesOn) {
  auto runtime = ready();
  const SessionId session = *runtime->run(live()).session;
  runtime.reset();
  runtime = ready();
  ASSERT_TRUE(runtime->snapshot()->session);
  EXPECT_EQ(runtime->snapshot()->session->id, session);
  EXPECT_EQ(state_of(*runtime, session), SessionState::kPaused);
  EXPECT_EQ(runtime->snapshot()->train.doing, "paused");
  EXPECT_TRUE(runtime->run(ResumeSession{}).ok());
  EXPECT_EQ(state_of(*runtime, session), SessionState::kRunning);
}

TEST_F(RuntimeTest, ABusyPortKeepsASessionOutOnlyUntilAnotherPortIsChosen) {
  auto runtime = ready();
  StartSession start = live();
  start.live_only = false;
  start.max_requests = 1;
  const CommandOutcome started = runtime->run(start);
  ASSERT_TRUE(started.ok()) << started.text;
  ASSERT_TRUE(runtime->run(PauseSession{}).ok());
  runtime.reset();

  TempFolder other;
  RuntimeOptions first = options();
  first.data_folder = other.path + "/ws";
  const auto holder = open(first);
  ASSERT_TRUE(holder->wait_ready(60).ok());
  const std::string url = holder->snapshot()->server_url;
  RuntimeOptions second = options();
  second.port = std::stoi(url.substr(url.rfind(':') + 1));
  runtime = open(second);
  ASSERT_TRUE(runtime->wait_ready(60).ok()) << "a busy port is no failure";
  EXPECT_NE(runtime->snapshot()->server_error, "");
  EXPECT_FALSE(runtime->snapshot()->session);
  const CommandOutcome moved = runtime->run(StartServer{"127.0.0.1", 0});
  ASSERT_TRUE(moved.ok()) << moved.text;
  ASSERT_TRUE(runtime->snapshot()->session);
  EXPECT_EQ(runtime->snapshot()->session->id, *started.session);
}

TEST_F(RuntimeTest, FreezingStopsLearningUntilUnfrozenAlsoOverARestart) {
  auto runtime = ready();
  ASSERT_TRUE(runtime->run(live()).ok());
  ASSERT_TRUE(runtime->run(ServeBaseAndFreeze{"test", "to be safe"}).ok());
  EXPECT_TRUE(runtime->snapshot()->frozen);
  EXPECT_TRUE(comes_to(*runtime, "paused"));
  EXPECT_TRUE(runtime->run(ResumeSession{}).ok());
  EXPECT_EQ(runtime->snapshot()->train.doing, "paused") << "resuming is not unfreezing";
  runtime.reset();
  runtime = ready();
  EXPECT_TRUE(runtime->snapshot()->frozen);
  EXPECT_TRUE(runtime->run(ResumeSession{}).ok());
  EXPECT_EQ(runtime->snapshot()->train.doing, "paused");
  ASSERT_TRUE(runtime->run(Decide{"unfreeze", VersionId(), "test", "all is well"}).ok());
  EXPECT_FALSE(runtime->snapshot()->frozen);
  EXPECT_TRUE(comes_to(*runtime, "waiting for 16 labels"));
}

TEST_F(RuntimeTest, CandidatesOfAnEarlierSessionAreLeftBehind) {
  ready().reset();
  add_candidate(VersionState::kEvaluating);
  add_candidate(VersionState::kCandidate);
  const auto runtime = ready();
  ASSERT_TRUE(runtime->run(live()).ok());
  EXPECT_EQ(runtime->store().version(VersionId(1))->state, VersionState::kSuperseded);
  EXPECT_EQ(runtime->store().version(VersionId(2))->state, VersionState::kSuperseded);
}

TEST_F(RuntimeTest, AnotherModelDoesNotTakeOverAWorkspaceWithAdapters) {
  ready().reset();
  add_candidate(VersionState::kCandidate);
  RuntimeOptions o = options();
  o.model_path = std::string(SLUICE_TEST_DATA) + "/tiny-qwen2.gguf";
  auto runtime = open(o);
  const Status status = runtime->wait_ready(60);
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(status.message(), HasSubstr("belong to the model"));
  runtime.reset();
  EXPECT_TRUE(ready()->snapshot()->server_error.empty()) << "its own model still loads";
}

TEST_F(RuntimeTest, AMissingModelIsNamedAndAnotherCanBeLoaded) {
  RuntimeOptions o = options();
  o.model_path = "/nowhere/model.gguf";
  const auto runtime = open(o);
  const Status status = runtime->wait_ready(60);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/model.gguf"));
  EXPECT_FALSE(runtime->run(live()).ok());
  const CommandOutcome loaded = runtime->run(LoadModel{options().model_path});
  EXPECT_TRUE(loaded.ok()) << loaded.text;
  EXPECT_TRUE(runtime->run(live()).ok());
}

TEST_F(RuntimeTest, ExportNamesWhatIsNotThere) {
  const auto runtime = ready();
  EXPECT_EQ(runtime->run(ExportAdapter{VersionId(7), folder.path + "/out"}).status.code(), Code::kNotFound);
  EXPECT_EQ(runtime->run(ExportAdapter{kBaseVersion, folder.path + "/out"}).status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
