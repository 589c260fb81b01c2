// SPDX-License-Identifier: GPL-3.0-or-later
// Pause, resume, flush, sleep and wake (serving.md §3.2.7), and slow readers.
#include <gmock/gmock.h>

#include <thread>

#include "engine/serve/serve_fixture.h"
#include "support/test_store.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

struct Gated {
  StepGate gate;
  FakeModelOptions options;
  Gated() {
    options.on_step = [this](const FakeStep&) { return gate.pass(); };
  }
};

int cached(EngineUnderTest& t, const std::string& prompt, Priority priority = Priority::kLive) {
  Request r = request(prompt, 3);
  r.priority = priority;
  ResponseHandle handle = t.submit(std::move(r));
  const Result<StartInfo> start = handle->wait_started(far());
  EXPECT_EQ(drain(handle).ids, fake_answer(start->version, fake_tokens(prompt), 3));
  return start.ok() ? start->cached_tokens : -1;
}

TEST(EngineControl, PauseRefusesNewRequestsAndLetsTheOthersGoOn) {
  Gated g;
  EngineUnderTest t(g.options, places(1));
  ResponseHandle running = t.submit(request("runs", 5));
  g.gate.wait_arrived(1);
  ResponseHandle waiting = t.submit(request("waits", 5));
  ASSERT_TRUE(t.engine->pause().ok());
  ASSERT_TRUE(t.engine->pause().ok()) << "twice is no error";
  EXPECT_EQ(t.engine->state(), ServeState::kPaused);
  const Result<ResponseHandle> refused = t.engine->submit(request("new"));
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("paused"));
  g.gate.open();
  EXPECT_EQ(drain(running).ids, fake_answer(kBaseVersion, fake_tokens("runs"), 5));
  EXPECT_EQ(waiting->wait_started(std::chrono::steady_clock::now()).code(), Code::kDeadline) << "keeps its place";
  EXPECT_EQ(t.engine->stats().waiting, 1);
  ASSERT_TRUE(t.engine->resume().ok());
  EXPECT_EQ(drain(waiting).ids, fake_answer(kBaseVersion, fake_tokens("waits"), 5));
  EXPECT_EQ(t.ask(request("new")).finish, FinishReason::kLength);
}

TEST(EngineControl, ARequestThatWaitsInAPauseCanBeCancelled) {
  Gated g;
  EngineUnderTest t(g.options, places(1));
  ResponseHandle running = t.submit(request("runs", 2));
  g.gate.wait_arrived(1);
  ResponseHandle waiting = t.submit(request("waits", 5));
  ASSERT_TRUE(t.engine->pause().ok());
  g.gate.open();
  EXPECT_EQ(drain(running).finish, FinishReason::kLength);
  waiting->cancel();
  EXPECT_EQ(drain(waiting).finish, FinishReason::kCancelled);
}

TEST(EngineControl, AfterAFlushNothingOlderIsFound) {
  Gated g;
  EngineUnderTest t(g.options);
  const std::string prompt(40, 'p');
  ResponseHandle open = t.submit(request(prompt, 30));
  g.gate.wait_arrived(1);
  std::thread flusher([&] { EXPECT_TRUE(t.engine->flush().ok()); });
  g.gate.open();
  flusher.join();
  EXPECT_EQ(drain(open).ids, fake_answer(kBaseVersion, fake_tokens(prompt), 30)) << "what runs is not disturbed";
  EXPECT_EQ(cached(t, prompt), 0) << "not even what was written by a sequence that was open at the flush";
  EXPECT_EQ(cached(t, prompt), 32);
  ASSERT_TRUE(t.engine->flush().ok());
  EXPECT_EQ(cached(t, prompt), 0);
}

TEST(EngineControl, LRA15_FlushBesidePromotionsUnderLoadIsAtomic) {
  EngineUnderTest t;
  TestStore store;
  std::atomic<bool> end = false;
  std::atomic<int> wrong = 0, failed = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 3; ++c) {
    clients.emplace_back([&] {
      const std::string prompt = "a prompt long enough to be cached as a prefix";
      while (!end) {
        Result<ResponseHandle> handle = t.engine->submit(request(prompt, 10));
        if (!handle.ok()) {
          ++failed;
          continue;
        }
        const Result<StartInfo> start = (*handle)->wait_started(far());
        const Answer answer = drain(*handle);
        if (!start.ok() || answer.finish != FinishReason::kLength) ++failed;
        else if (answer.ids != fake_answer(start->version, fake_tokens(prompt), 10)) ++wrong;
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    const CommittedDecision decision = store.promote(store.new_version());
    std::thread flusher([&] { EXPECT_TRUE(t.engine->flush().ok()); });
    EXPECT_TRUE(t.slots.publish(decision).ok());
    flusher.join();
    ResponseHandle handle = t.submit(request("after", 3));
    EXPECT_EQ(t.started(handle), decision.version());
  }
  end = true;
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
}

TEST(EngineControl, LRA14_AfterSleepAndWakeAnswersEqualThoseOfAColdEngine) {
  EngineUnderTest t;
  const std::string prompt(40, 'p');
  EXPECT_EQ(cached(t, prompt), 0);
  EXPECT_EQ(cached(t, prompt), 32) << "warm";
  ASSERT_TRUE(t.engine->sleep(false).ok());
  EXPECT_EQ(t.engine->state(), ServeState::kAsleep);
  EXPECT_EQ(t.engine->stats().kv.tokens_capacity, 0) << "no cache is held";
  const Result<ResponseHandle> refused = t.engine->submit(request("x"));
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("asleep"));
  EXPECT_EQ(t.engine->pause().code(), Code::kConflict);
  EXPECT_EQ(t.engine->resume().code(), Code::kConflict);
  EXPECT_TRUE(t.engine->flush().ok());
  EXPECT_TRUE(t.engine->sleep(false).ok()) << "twice is no error";
  ASSERT_TRUE(t.engine->wake().ok());
  EXPECT_TRUE(t.engine->wake().ok());
  EXPECT_EQ(t.engine->state(), ServeState::kReady);
  EXPECT_EQ(cached(t, prompt), 0) << "as at start";
  EXPECT_EQ(cached(t, prompt), 32);
}

TEST(EngineControl, WhatRunsWhenTheEngineFallsAsleepGoesOnAfterIt) {
  Gated g;
  EngineUnderTest t(g.options);
  Request r = request("dreams", 20);
  r.sampling.temperature = 1;
  r.sampling.seed = 4;
  ResponseHandle decoding = t.submit(r);
  g.gate.allow(3);
  g.gate.wait_arrived(4);
  ResponseHandle other = t.submit(request("comes late", 6));
  std::thread sleeper([&] { EXPECT_TRUE(t.engine->sleep(false).ok()); });
  while (t.engine->state() != ServeState::kAsleep) std::this_thread::yield();
  g.gate.open();
  sleeper.join();
  EXPECT_EQ(t.engine->stats().running, 0);
  EXPECT_EQ(t.engine->stats().waiting, 2);
  ASSERT_TRUE(t.engine->wake().ok());
  EXPECT_EQ(drain(decoding).ids, fake_answer(kBaseVersion, r.prompt, 20, 1, 4)) << "no token lost or drawn twice";
  EXPECT_EQ(drain(other).ids, fake_answer(kBaseVersion, fake_tokens("comes late"), 6));
}

TEST(EngineControl, SleepingWithTheWeightsSaysWhereItCannot) {
  EngineUnderTest t;
  EXPECT_EQ(t.engine->sleep(true).code(), Code::kUnavailable) << "the fake has no weights to let go of";
  EXPECT_EQ(t.engine->state(), ServeState::kAsleep) << "the rest was done";
  ASSERT_TRUE(t.engine->wake().ok());
  EXPECT_EQ(t.ask(request("x")).finish, FinishReason::kLength);
}

TEST(EngineControl, StopWhileAsleepOrPausedEndsWhatWaits) {
  for (const bool asleep : {false, true}) {
    Gated g;
    EngineUnderTest t(g.options, places(1));
    ResponseHandle a = t.submit(request("a", 300));
    g.gate.wait_arrived(1);
    ResponseHandle b = t.submit(request("b", 300));
    std::thread changer([&] { EXPECT_TRUE((asleep ? t.engine->sleep(false) : t.engine->pause()).ok()); });
    while (t.engine->state() == ServeState::kReady) std::this_thread::yield();
    g.gate.open();
    changer.join();
    t.engine->stop();
    const FinishReason end_of_a = drain(a).finish;  // in a pause it runs on, perhaps to its end
    EXPECT_TRUE(end_of_a == FinishReason::kCancelled || (!asleep && end_of_a == FinishReason::kLength));
    EXPECT_EQ(drain(b).finish, FinishReason::kCancelled);
    for (const Status& s : {t.engine->pause(), t.engine->resume(), t.engine->flush(), t.engine->sleep(false), t.engine->wake()}) {
      EXPECT_EQ(s.code(), Code::kUnavailable);
    }
  }
}

class HandClock final : public Clock {
 public:
  std::int64_t wall_us() const override { return 0; }
  SteadyTime steady() const override { return SteadyTime(std::chrono::milliseconds(ms_.load())); }
  void pass(std::chrono::seconds time) { ms_ += std::chrono::milliseconds(time).count(); }

 private:
  std::atomic<std::int64_t> ms_{1'000'000};
};

TEST(EngineControl, ALimitOfThreadsHoldsFromTheNextStepOn) {
  Gated g;
  StepLog log;
  g.options.on_step = [&](const FakeStep& step) {
    log.add(step);
    return g.gate.pass();
  };
  EngineOptions options;
  options.context.threads = 4;
  EngineUnderTest t(g.options, options);
  ResponseHandle answer = t.submit(request("works", 12));
  g.gate.wait_arrived(1);
  t.engine->limit_threads(2);
  g.gate.allow(2);
  g.gate.wait_arrived(3);
  t.engine->limit_threads(4);
  g.gate.open();
  EXPECT_EQ(drain(answer).ids, fake_answer(kBaseVersion, fake_tokens("works"), 12));
  std::vector<int> threads;
  for (const FakeStep& step : log.steps()) threads.push_back(step.threads);
  ASSERT_GE(threads.size(), 4u);
  EXPECT_EQ((std::vector<int>(threads.begin(), threads.begin() + 4)), (std::vector<int>{4, 2, 2, 4}));
}

TEST(EngineControl, AResponseThatNobodyReadsIsCancelledAndDelaysNobody) {
  HandClock clock;
  Gated g;
  EngineOptions options;
  options.clock = &clock;
  EngineUnderTest t(g.options, options);
  ResponseHandle unread = t.submit(request("unread", 200));
  ResponseHandle read = t.submit(request("read", 200));
  g.gate.allow(20);
  g.gate.wait_arrived(21);
  EXPECT_TRUE(read->next(far()).has_value());
  clock.pass(std::chrono::seconds(59));
  g.gate.allow(5);
  g.gate.wait_arrived(26);
  EXPECT_EQ(t.engine->stats().running, 2) << "not yet";
  while (read->try_next()) {
  }
  clock.pass(std::chrono::seconds(2));
  g.gate.allow(2);
  g.gate.wait_arrived(28);
  EXPECT_EQ(t.engine->stats().running, 1);
  EXPECT_EQ(t.engine->stats().slow_readers, 1);
  g.gate.open();
  EXPECT_EQ(drain(read).finish, FinishReason::kLength);
  EXPECT_EQ(drain(unread).finish, FinishReason::kCancelled);
}

TEST(EngineControl, NoMoreThanAMebibyteWaitsForAReader) {
  FakeModelOptions model;
  model.context_length = 100000;
  EngineOptions options;
  options.context.kv_tokens = 200000;
  EngineUnderTest t(model, options);
  Request r = request("long", 60000);
  r.sampling.top_logprobs = 20;
  ResponseHandle slow = t.submit(r);
  while (t.engine->stats().generated_tokens == 0) std::this_thread::yield();
  std::int64_t before = -1;  // until it stands still: a whole other request goes by without another token of this one
  while (before != t.engine->stats().generated_tokens) {
    EXPECT_EQ(t.ask(request("quick", 5)).finish, FinishReason::kLength) << "nobody is delayed";
    before = t.engine->stats().generated_tokens;
    EXPECT_EQ(t.ask(request("quick", 5)).finish, FinishReason::kLength);
    before += 5;
  }
  EXPECT_LT(before, 30000);
  const Answer answer = drain(slow);
  EXPECT_EQ(answer.ids.size(), 60000u) << "it goes on when it is read";
  EXPECT_EQ(answer.finish, FinishReason::kLength);
}

}  // namespace
}  // namespace sluice::testing
