// SPDX-License-Identifier: GPL-3.0-or-later
// The driver against a small HTTP server that answers like ours: what it sends, how it paces, how it stops.
#include "tasks/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <httplib.h>

#include <atomic>
#include <nlohmann/json.hpp>
#include <set>

#include "tasks/driver_json.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using nlohmann::json;

std::chrono::steady_clock::time_point soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

class FakeServer {
 public:
  FakeServer() {
    server_.new_task_queue = [] { return new httplib::ThreadPool(32); };
    server_.Post("/v1/chat/completions", [this](const httplib::Request& q, httplib::Response& a) { chat(q, a); });
    server_.Post("/sluice/v1/feedback", [this](const httplib::Request& q, httplib::Response& a) { feedback(q, a); });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~FakeServer() {
    release();
    server_.stop();
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

  // Chat answers wait until release().
  void hold() {
    MutexLock lock(mu_);
    held_ = true;
  }
  void release() {
    MutexLock lock(mu_);
    held_ = false;
    changed_.notify_all();
  }
  void wait_chats(int count) {
    MutexLock lock(mu_);
    while (static_cast<int>(chats_.size()) < count) changed_.wait(mu_);
  }
  std::vector<json> chats() const {
    MutexLock lock(mu_);
    return chats_;
  }
  std::vector<json> verdicts() const {
    MutexLock lock(mu_);
    return verdicts_;
  }
  int most_at_once() const {
    MutexLock lock(mu_);
    return most_at_once_;
  }
  std::set<std::string> conversations() const {
    MutexLock lock(mu_);
    return conversations_;
  }

  std::atomic<int> busy_answers{0};      // so many 429 first
  std::atomic<int> open_records{0};      // so many 409 record_open first
  std::atomic<int> chat_status{200};
  std::atomic<int> feedback_status{200};

 private:
  void chat(const httplib::Request& q, httplib::Response& a) {
    if (busy_answers.fetch_sub(1) > 0) {
      a.status = 429;
      return;
    }
    if (chat_status != 200) {
      a.status = chat_status;
      a.set_content(R"({"error": {"message": "no such model"}})", "application/json");
      return;
    }
    MutexLock lock(mu_);
    chats_.push_back(json::parse(q.body));
    conversations_.insert(q.get_header_value("X-Session-Id"));
    auth_ = q.get_header_value("Authorization");
    most_at_once_ = std::max(most_at_once_, ++at_once_);
    changed_.notify_all();
    while (held_) changed_.wait(mu_);
    --at_once_;
    const std::size_t n = chats_.size();
    const std::string text = json::parse(q.body)["messages"].back()["content"].get<std::string>().size() % 2 == 0
                                 ? "An answer of some words." : "Short.";
    a.set_content(json{{"choices", {{{"message", {{"content", text}}}, {"finish_reason", "stop"}}}},
                       {"sluice", {{"record_id", "rec_" + std::to_string(n)}, {"adapter", "tiny@3"}, {"version", 3}}}}
                      .dump(),
                  "application/json");
  }
  void feedback(const httplib::Request& q, httplib::Response& a) {
    if (open_records.fetch_sub(1) > 0) {
      a.status = 409;
      a.set_content(R"({"error": {"message": "record_open"}})", "application/json");
      return;
    }
    if (feedback_status != 200) {
      a.status = feedback_status;
      return;
    }
    MutexLock lock(mu_);
    verdicts_.push_back(json::parse(q.body));
    a.set_content(R"({"state": "waiting"})", "application/json");
  }

  httplib::Server server_;
  std::thread thread_;
  int port_ = 0;
  mutable Mutex mu_;
  CondVar changed_;
  bool held_ SLUICE_GUARDED_BY(mu_) = false;
  int at_once_ SLUICE_GUARDED_BY(mu_) = 0, most_at_once_ SLUICE_GUARDED_BY(mu_) = 0;
  std::vector<json> chats_ SLUICE_GUARDED_BY(mu_), verdicts_ SLUICE_GUARDED_BY(mu_);
  std::set<std::string> conversations_ SLUICE_GUARDED_BY(mu_);
  std::string auth_ SLUICE_GUARDED_BY(mu_);
};

TaskRecipe tiny_recipe() {
  TaskRecipe r;
  r.name = "tiny";
  r.system_prompt = "Be brief.";
  for (int i = 0; i < 40; ++i) {
    const std::string id = "p" + std::to_string(i);
    r.train.push_back({id, "Question " + std::to_string(i) + (i % 2 == 0 ? "?" : "!?"), "topic", {"topic"}, id});
  }
  r.user = {"reader", "", {{RuleKind::kWords, 3, 10, {}}}};
  return r;
}

struct Fixture {
  FakeServer server;
  DriverOptions options;
  std::vector<DriverEvent> events;  // callbacks come one at a time
  std::unique_ptr<Driver> driver;

  Fixture() {
    options.base_url = server.url();
    options.model = "tiny";
    options.seed = 4;
    options.concurrency = 4;
    options.on_event = [this](const DriverEvent& e) { events.push_back(e); };
  }
  ~Fixture() {
    server.release();
    driver.reset();
  }
  Driver& make() {
    auto made = Driver::create(tiny_recipe(), options);
    EXPECT_TRUE(made.ok()) << made.status().message();
    driver = std::move(made).value();
    return *driver;
  }
};

TEST(Driver, SendsPromptsAndVerdictsLikeAClient) {
  Fixture f;
  f.options.max_requests = 20;
  f.make().start();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  const DriverCounts counts = f.driver->counts();
  EXPECT_EQ(counts.finished, 20);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(counts.accepted + counts.rejected, 20);
  EXPECT_GT(counts.accepted, 0);
  EXPECT_GT(counts.rejected, 0);
  ASSERT_EQ(f.events.size(), 20u);
  ASSERT_EQ(f.server.verdicts().size(), 20u);
  EXPECT_EQ(f.server.conversations().size(), 20u) << "each prompt is a conversation of its own";
  const json chat = f.server.chats()[0];
  EXPECT_EQ(chat["model"], "tiny");
  EXPECT_EQ(chat["messages"][0]["role"], "system");
  EXPECT_EQ(chat["max_tokens"], 96);
  EXPECT_EQ(chat["stream"], false);
  EXPECT_TRUE(chat["seed"].is_number_unsigned());
  EXPECT_EQ(chat["metadata"]["stream"], "tiny");
  std::set<std::string> rated;
  for (const json& v : f.server.verdicts()) {
    EXPECT_EQ(v["source"], "persona");
    EXPECT_EQ(v["labeller"], "reader");
    EXPECT_TRUE(rated.insert(v["record_id"]).second);
    EXPECT_EQ(v["key"], "persona:" + v["record_id"].get<std::string>());
    EXPECT_EQ(v["kind"] == "reject", v.contains("reason"));
  }
  for (const DriverEvent& e : f.events) {
    EXPECT_EQ(e.error, "");
    EXPECT_EQ(e.version, 3);
    EXPECT_EQ(e.feedback_state, "waiting");
    EXPECT_EQ(e.accepted, e.completion != "Short.");
    EXPECT_EQ(e.reason, e.accepted ? "" : "words");
  }
}

TEST(Driver, TheSeedFixesPromptsAndTheirSeeds) {
  const auto prompts = [](std::uint64_t seed, std::int64_t skip) {
    Fixture f;
    f.options.seed = seed;
    f.options.concurrency = 1;
    f.options.already_sent = skip;
    f.options.max_requests = 10;
    f.make().start();
    EXPECT_TRUE(f.driver->wait_done(soon()));
    std::vector<std::string> out;
    for (const json& c : f.server.chats()) out.push_back(c["messages"][1]["content"].get<std::string>() + c["seed"].dump());
    return out;
  };
  const auto a = prompts(1, 0);
  EXPECT_EQ(a, prompts(1, 0));
  EXPECT_NE(a, prompts(2, 0));
  EXPECT_EQ(prompts(1, 4), std::vector<std::string>(a.begin() + 4, a.end())) << "a resumed session goes on behind the first four";
}

TEST(Driver, KeepsSeveralInFlightAndNoMore) {
  Fixture f;
  f.server.hold();
  f.options.max_requests = 12;
  f.make().start();
  f.server.wait_chats(4);
  EXPECT_EQ(f.driver->counts().in_flight, 4);
  f.server.release();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.server.most_at_once(), 4);
}

TEST(Driver, WaitsWhileTheTrainerHasEnough) {
  Fixture f;
  std::atomic<std::int64_t> labelled{0};
  f.options.max_requests = 30;
  f.options.max_waiting = 8;
  f.options.waiting = [&] { return labelled.load(); };
  f.options.on_event = [&](const DriverEvent&) { ++labelled; };
  f.make().start();
  while (!f.driver->counts().waiting || f.driver->counts().in_flight > 0) std::this_thread::yield();
  EXPECT_GE(f.driver->counts().finished, 8);
  EXPECT_LE(f.driver->counts().finished, 8 + 4);
  while (!f.driver->wait_done(std::chrono::steady_clock::now() + std::chrono::milliseconds(1))) {
    labelled = 0;  // a step took them
    f.driver->notify();
  }
  EXPECT_EQ(f.driver->counts().finished, 30);
}

TEST(Driver, PauseFinishesWhatIsInFlightAndResumeGoesOn) {
  Fixture f;
  f.server.hold();
  f.options.max_requests = 10;
  f.make().start();
  f.server.wait_chats(4);
  f.driver->pause();
  f.server.release();
  while (f.driver->counts().in_flight > 0) std::this_thread::yield();
  EXPECT_EQ(f.driver->counts().finished, 4);
  EXPECT_TRUE(f.driver->counts().paused);
  f.driver->resume();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.driver->counts().finished, 10);
  f.driver->set_max_requests(13);
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.driver->counts().finished, 13);
}

TEST(Driver, StartsPaused) {
  Fixture f;
  f.options.max_requests = 2;
  f.make().start(true);
  EXPECT_FALSE(f.driver->wait_done(std::chrono::steady_clock::now()));
  EXPECT_TRUE(f.server.chats().empty());
  f.driver->resume();
  EXPECT_TRUE(f.driver->wait_done(soon()));
}

TEST(Driver, AStreamThatWasThroughIsDoneAtOnce) {
  Fixture f;
  f.options.max_requests = 4;
  f.options.already_sent = 4;
  f.make().start();
  EXPECT_TRUE(f.driver->wait_done(soon())) << "killed behind its last request, a session still comes to its end";
  EXPECT_TRUE(f.server.chats().empty());
}

TEST(Driver, StopCancelsWhatIsInFlight) {
  Fixture f;
  f.server.hold();
  f.make().start();
  f.server.wait_chats(4);
  f.driver->stop();
  EXPECT_TRUE(f.driver->wait_done(soon()));
  EXPECT_TRUE(f.events.empty()) << "a request cut short by stop is no event";
  f.driver->stop();
}

TEST(Driver, ABusyServerIsAskedAgain) {
  Fixture f;
  f.server.busy_answers = 3;
  f.server.open_records = 2;
  f.options.max_requests = 6;
  f.make().start();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.driver->counts().failed, 0);
  EXPECT_EQ(f.server.verdicts().size(), 6u);
}

TEST(Driver, ARefusalIsCountedWithTheServersWords) {
  Fixture f;
  f.server.chat_status = 404;
  f.options.max_requests = 3;
  f.make().start();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.driver->counts().failed, 3);
  EXPECT_EQ(f.events[0].error, "HTTP 404: no such model");
}

TEST(Driver, FailedFeedbackIsAFailure) {
  Fixture f;
  f.server.feedback_status = 400;
  f.options.max_requests = 2;
  f.make().start();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_EQ(f.driver->counts().failed, 2);
  EXPECT_THAT(f.events[0].error, HasSubstr("feedback: HTTP 400"));
}

TEST(Driver, WithoutFeedbackPeopleLabel) {
  Fixture f;
  f.options.give_feedback = false;
  f.options.max_requests = 4;
  f.make().start();
  ASSERT_TRUE(f.driver->wait_done(soon()));
  EXPECT_TRUE(f.server.verdicts().empty());
  EXPECT_EQ(f.events[0].feedback_state, "");
}

TEST(Driver, BadOptionsAreRefused) {
  DriverOptions options;
  options.base_url = "nowhere";
  EXPECT_EQ(Driver::create(tiny_recipe(), options).code(), Code::kInvalidArgument);
  options.base_url = "http://127.0.0.1:1";
  EXPECT_EQ(Driver::create(TaskRecipe(), options).code(), Code::kInvalidArgument);
  options.concurrency = 0;
  EXPECT_EQ(Driver::create(tiny_recipe(), options).code(), Code::kInvalidArgument);
}

TEST(DriverJson, OddAnswersAreErrorsNotCrashes) {
  for (const char* body : {"", "null", "[]", "{}", R"({"sluice": 3})", R"({"sluice": {"record_id": 1}})",
                           R"({"sluice": {"record_id": "r"}})", R"({"sluice": {"record_id": "r"}, "choices": []})"}) {
    EXPECT_FALSE(parse_chat_reply(body).ok()) << body;
  }
  EXPECT_TRUE(parse_chat_reply(R"({"sluice": {"record_id": "r"}, "choices": [{}]})").ok());
  EXPECT_FALSE(parse_feedback_state("{}").ok());
  EXPECT_EQ(error_text(500, "boom"), "HTTP 500: boom");
  EXPECT_EQ(error_text(500, ""), "HTTP 500");
}

}  // namespace
}  // namespace sluice
