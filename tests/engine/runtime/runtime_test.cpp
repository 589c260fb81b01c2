// SPDX-License-Identifier: GPL-3.0-or-later
// The whole engine on the tiny model: sessions over restarts, freezing, busy ports, another model in the same workspace.
#include "runtime/runtime.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/net/http_client.h"
#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RuntimeTest : public ::testing::Test {
 protected:
  RuntimeOptions options() const { return testing::tiny_runtime(folder.path); }
  std::unique_ptr<Runtime> open(const RuntimeOptions& o) { return testing::open_runtime(o, log); }
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

// Durable first, visible second: whoever no longer finds the session finds its row ended.
TEST_F(RuntimeTest, ASessionThatIsGoneHasEnded) {
  const auto runtime = ready();
  const SessionId session = *runtime->run(live()).session;
  std::atomic<bool> looking{false};
  std::thread reader([&] {
    while (runtime->wait_ready(1).ok()) {  // puts out a new snapshot
      const bool gone = !runtime->snapshot()->session;
      EXPECT_TRUE(!gone || state_of(*runtime, session) == SessionState::kEnded);
      looking = true;
      looking.notify_all();
      if (gone) break;
    }
  });
  looking.wait(false);
  EXPECT_TRUE(runtime->run(EndSession{}).ok());
  reader.join();
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

// A workspace whose session sends requests over HTTP, opened again while somebody else holds the port.
class BusyPortTest : public RuntimeTest {
 protected:
  static StartSession simulated() {
    StartSession start = live();
    start.live_only = false;
    start.max_requests = 1;
    return start;
  }
  void open_over_busy_port(bool with_session) {
    if (with_session) {
      runtime = ready();
      const CommandOutcome started = runtime->run(simulated());
      ASSERT_TRUE(started.ok()) << started.text;
      session = *started.session;
      runtime.reset();  // in the midst of it, as at a crash: the row says "running"
    }
    RuntimeOptions first = options();
    first.data_folder = other.path + "/ws";
    holder = open(first);
    ASSERT_TRUE(holder->wait_ready(60).ok());
    const std::string url = holder->snapshot()->server_url;
    RuntimeOptions second = options();
    second.port = std::stoi(url.substr(url.rfind(':') + 1));
    runtime = open(second);
    ASSERT_TRUE(runtime->wait_ready(60).ok()) << "a busy port is no failure";
    ASSERT_NE(runtime->snapshot()->server_error, "");
  }

  TempFolder other;
  std::unique_ptr<Runtime> holder, runtime;
  SessionId session;
};

TEST_F(BusyPortTest, TheSessionIsThereAndSaysWhatKeepsItOut) {
  ASSERT_NO_FATAL_FAILURE(open_over_busy_port(true));
  const auto state = runtime->snapshot();
  ASSERT_TRUE(state->session);
  EXPECT_EQ(state->session->id, session);
  EXPECT_EQ(state->session->state, SessionState::kPaused);
  EXPECT_THAT(state->session_problem, HasSubstr(state->server_error));
  EXPECT_THAT(state->session_problem, HasSubstr("choose a free port"));
  const CommandOutcome again = runtime->run(ResumeSession{});
  EXPECT_EQ(again.status.code(), Code::kConflict);
  EXPECT_THAT(again.text, HasSubstr(state->server_error));
  EXPECT_EQ(runtime->run(PauseSession{}).status.code(), Code::kConflict);
  EXPECT_THAT(runtime->run(live()).text, HasSubstr("end it first"));
  EXPECT_EQ(runtime->run(LoadModel{}).status.code(), Code::kConflict);
}

TEST_F(BusyPortTest, AnotherPortBringsTheSessionBack) {
  ASSERT_NO_FATAL_FAILURE(open_over_busy_port(true));
  const CommandOutcome moved = runtime->run(StartServer{"127.0.0.1", 0});
  ASSERT_TRUE(moved.ok()) << moved.text;
  ASSERT_TRUE(runtime->snapshot()->session);
  EXPECT_EQ(runtime->snapshot()->session->id, session);
  EXPECT_EQ(runtime->snapshot()->session_problem, "");
  EXPECT_TRUE(runtime->run(ResumeSession{}).ok());
  EXPECT_EQ(state_of(*runtime, session), SessionState::kRunning);
}

TEST_F(BusyPortTest, ResumingTriesThePortAgain) {
  ASSERT_NO_FATAL_FAILURE(open_over_busy_port(true));
  holder.reset();
  const CommandOutcome resumed = runtime->run(ResumeSession{});
  ASSERT_TRUE(resumed.ok()) << resumed.text;
  EXPECT_EQ(runtime->snapshot()->server_error, "");
  EXPECT_EQ(state_of(*runtime, session), SessionState::kRunning);
}

TEST_F(BusyPortTest, TheSessionCanBeEndedWithoutAServer) {
  ASSERT_NO_FATAL_FAILURE(open_over_busy_port(true));
  const CommandOutcome ended = runtime->run(EndSession{});
  ASSERT_TRUE(ended.ok()) << ended.text;
  EXPECT_FALSE(runtime->snapshot()->session);
  EXPECT_EQ(runtime->snapshot()->session_problem, "");
  EXPECT_EQ(state_of(*runtime, session), SessionState::kEnded);
  EXPECT_TRUE(runtime->run(live()).ok()) << "needs no server";
}

TEST_F(BusyPortTest, ARefusedSessionLeavesNoRow) {
  ASSERT_NO_FATAL_FAILURE(open_over_busy_port(false));
  const CommandOutcome out = runtime->run(simulated());
  EXPECT_FALSE(out.ok());
  EXPECT_THAT(out.text, HasSubstr("choose a free port"));
  EXPECT_THAT(runtime->store().sessions(), IsEmpty());
  EXPECT_FALSE(runtime->store().gate_settings()) << "nor did its gate settings take hold";
}

TEST_F(RuntimeTest, APausedSessionGoesWhereItsServerGoes) {
  const auto runtime = ready();
  StartSession start = live();
  start.live_only = false;
  start.max_requests = 1;
  const CommandOutcome started = runtime->run(start);
  ASSERT_TRUE(started.ok()) << started.text;
  EXPECT_EQ(runtime->run(StartServer{"127.0.0.1", 0}).status.code(), Code::kConflict) << "it runs";
  ASSERT_TRUE(runtime->run(PauseSession{}).ok());
  ASSERT_TRUE(runtime->run(StartServer{"127.0.0.1", 0}).ok());
  EXPECT_NE(runtime->snapshot()->server_url, "");
  EXPECT_EQ(runtime->snapshot()->session->id, *started.session);
  EXPECT_EQ(state_of(*runtime, *started.session), SessionState::kPaused);
  EXPECT_TRUE(runtime->run(ResumeSession{}).ok());
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
  EXPECT_TRUE(comes_to(*runtime, "waiting for 15 labels"));
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

TEST_F(RuntimeTest, AnEndedSessionLeavesNothingToMeasure) {
  auto runtime = ready();
  ASSERT_TRUE(runtime->run(live()).ok());
  runtime.reset();
  add_candidate(VersionState::kEvaluating);
  runtime = ready();  // paused: the gate stands still
  ASSERT_TRUE(runtime->run(EndSession{}).ok());
  EXPECT_EQ(runtime->store().version(VersionId(1))->state, VersionState::kSuperseded);
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

TEST_F(RuntimeTest, AModelThatCantBeUsedDoesNotCostTheOneThatServes) {
  const auto runtime = ready();
  const std::string name = runtime->snapshot()->model_name;
  const CommandOutcome out = runtime->run(LoadModel{std::string(SLUICE_TEST_DATA) + "/golden/losses.json"});
  EXPECT_FALSE(out.ok());
  EXPECT_THAT(out.text, HasSubstr("losses.json"));
  EXPECT_THAT(out.text, HasSubstr("serves on"));
  EXPECT_EQ(runtime->snapshot()->phase, EnginePhase::kReady);
  EXPECT_EQ(runtime->snapshot()->model_name, name);
  EXPECT_THAT(runtime->snapshot()->server_url, HasSubstr("http://"));
  Ask ask;
  ask.prompt = "hello";
  ask.max_tokens = 2;
  EXPECT_TRUE(runtime->run(ask).ok());
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

// On the way out: what runs ends as if nothing were, what comes anew is told to go elsewhere.
TEST_F(RuntimeTest, DrainingEndsWhatRunsAndTakesNothingNew) {
  const auto runtime = ready();
  ASSERT_TRUE(runtime->run(live()).ok());
  const std::string url = runtime->snapshot()->server_url;
  const std::string body = R"({"prompt":["a","b","c","d"],"n":4,"max_tokens":100,"ignore_eos":true,"temperature":1,"stream":true})";
  std::atomic<bool> begun{false};
  std::string last;
  std::size_t ends = 0;
  std::thread client([&] {
    const auto answer = HttpClient::create(url).value()->post_events("/v1/completions", body, "application/json", [&](std::string_view data) {
      begun = true;
      begun.notify_all();
      last = std::string(data);
      ends += last.find("\"finish_reason\":\"length\"") != std::string::npos;
      return true;
    });
    EXPECT_TRUE(answer.ok() && answer->status == 200);
    begun = true;
    begun.notify_all();
  });
  begun.wait(false);
  (void)runtime->drain(0);  // whether something still ran
  const auto other = HttpClient::create(url).value();
  const auto refused = other->post("/v1/completions", R"({"prompt":"a"})", "application/json");
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->status, 503);
  EXPECT_THAT(refused->body, HasSubstr("shutting_down"));
  EXPECT_NE(refused->header("Retry-After"), "");
  const auto health = other->get("/health");
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->status, 503);
  EXPECT_THAT(health->body, HasSubstr("stopping"));
  EXPECT_TRUE(runtime->drain(120));
  client.join();
  EXPECT_EQ(last, "[DONE]");
  EXPECT_EQ(ends, 16u);
  EXPECT_TRUE(comes_to(*runtime, "paused")) << "nor does the session go on";
}

TEST_F(RuntimeTest, ExportNamesWhatIsNotThere) {
  const auto runtime = ready();
  EXPECT_EQ(runtime->run(ExportAdapter{VersionId(7), folder.path + "/out"}).status.code(), Code::kNotFound);
  EXPECT_EQ(runtime->run(ExportAdapter{kBaseVersion, folder.path + "/out"}).status.code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
