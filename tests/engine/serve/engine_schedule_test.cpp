// SPDX-License-Identifier: GPL-3.0-or-later
// Who runs: shared prefills, short requests behind long ones, room that grows and is taken back, live work first.
#include <gmock/gmock.h>

#include <numeric>
#include <thread>

#include "engine/serve/serve_fixture.h"
#include "serve/prefill_budget.h"
#include "support/test_store.h"

namespace sluice::testing {
namespace {

struct Held {
  StepGate gate;
  StepLog log;
  FakeModelOptions options;
  Held() {
    options.on_step = [this](const FakeStep& step) {
      log.add(step);
      return gate.pass();
    };
  }
  int prefilled() const {
    int sum = 0;
    for (const FakeStep& s : log.steps()) sum += s.prefill_tokens;
    return sum;
  }
};

std::string some_text(int length, int salt = 0) {
  std::string text;
  for (int i = 0; i < length; ++i) text.push_back(static_cast<char>('a' + (i * i + 3 * i * salt + salt) % 26));
  return text;
}

Request drawn(const std::string& prompt, int max_tokens, std::uint64_t seed) {
  Request r = request(prompt, max_tokens);
  r.sampling.temperature = 1;
  r.sampling.seed = seed;
  return r;
}

TEST(EngineSchedule, EqualPromptsShareOnePrefill) {
  for (const Priority priority : {Priority::kLive, Priority::kGate}) {
    Held held;
    EngineOptions options;
    options.prefill_chunk = 16;
    EngineUnderTest t(held.options, options);
    const std::string prompt = some_text(100);
    std::vector<ResponseHandle> handles;
    for (int i = 0; i < 8; ++i) {  // as the choices of one exchange, or a rollout group
      Request r = drawn(prompt, 10, static_cast<std::uint64_t>(i));
      r.priority = priority;
      handles.push_back(t.submit(std::move(r)));
      held.gate.wait_arrived(1);
    }
    held.gate.open();
    for (std::size_t i = 0; i < handles.size(); ++i) {
      const Result<StartInfo> start = handles[i]->wait_started(far());
      ASSERT_TRUE(start.ok());
      EXPECT_EQ(start->cached_tokens, i == 0 ? 0 : 96) << i;
      EXPECT_EQ(drain(handles[i]).ids, fake_answer(kBaseVersion, fake_tokens(prompt), 10, 1, i));
    }
    EXPECT_EQ(held.prefilled(), 100 + 7 * 4) << "the prompt once, and of each other choice what no whole block held";
    const GeneratorStats stats = t.engine->stats();
    EXPECT_EQ(stats.cached_tokens, 7 * 96);
    EXPECT_EQ(stats.prefix_queries, 8);
    EXPECT_EQ(stats.prefix_hits, 7);
    EXPECT_EQ(stats.batch_tokens.steps, static_cast<std::int64_t>(held.log.steps().size()));
  }
}

TEST(EngineSchedule, WhoWaitsForAnothersPrefillHoldsUpNobodyAndOutlivesIt) {
  Held held;
  EngineOptions options;
  options.prefill_chunk = 16;
  EngineUnderTest t(held.options, options);
  const std::string prompt = some_text(200);
  ResponseHandle leader = t.submit(request(prompt, 10));
  held.gate.wait_arrived(1);
  ResponseHandle follower = t.submit(request(prompt + "x", 10));
  ResponseHandle other = t.submit(request("other", 3));
  held.gate.allow(3);
  held.gate.wait_arrived(4);
  EXPECT_EQ(t.engine->stats().waiting, 1);
  leader->cancel();
  held.gate.open();
  EXPECT_EQ(drain(other).ids, fake_answer(kBaseVersion, fake_tokens("other"), 3));
  EXPECT_EQ(drain(leader).finish, FinishReason::kCancelled);
  const Result<StartInfo> start = follower->wait_started(far());
  ASSERT_TRUE(start.ok());
  EXPECT_GT(start->cached_tokens, 0) << "takes what the other had got to";
  EXPECT_EQ(drain(follower).ids, fake_answer(kBaseVersion, fake_tokens(prompt + "x"), 10));
}

TEST(EngineSchedule, LRA2_APrefillOfAnotherVersionIsNotWaitedFor) {
  Held held;
  EngineOptions options;
  options.prefill_chunk = 16;
  EngineUnderTest t(held.options, options);
  ASSERT_TRUE(t.slots.prepare(VersionId(1), "").ok());
  t.slots.set_pinnable({VersionId(1)});
  const std::string prompt = some_text(100);
  ResponseHandle base = t.submit(request(prompt, 5));
  held.gate.wait_arrived(1);
  Request r = request(prompt, 5);
  r.adapter = AdapterChoice::pinned(VersionId(1));
  ResponseHandle adapted = t.submit(std::move(r));
  held.gate.allow(1);
  held.gate.wait_arrived(2);
  EXPECT_EQ(t.engine->stats().running, 2);
  held.gate.open();
  EXPECT_EQ(drain(base).ids, fake_answer(kBaseVersion, fake_tokens(prompt), 5));
  EXPECT_EQ(adapted->wait_started(far())->cached_tokens, 0);
  EXPECT_EQ(drain(adapted).ids, fake_answer(VersionId(1), fake_tokens(prompt), 5));
}

TEST(EngineSchedule, AShortRequestBehindALongPromptBeginsWithinThreeSteps) {
  Held held;
  EngineOptions options;
  options.prefill_chunk = 32;
  EngineUnderTest t(held.options, options);
  ResponseHandle wide = t.submit(request(some_text(450), 3));
  held.gate.wait_arrived(1);
  ResponseHandle quick = t.submit(request(some_text(40, 5), 3));  // while a step runs
  held.gate.allow(3);
  EXPECT_TRUE(quick->next(far()).has_value());
  const std::vector<FakeStep> steps = held.log.steps();
  EXPECT_LE(steps.size(), 4u);
  for (const FakeStep& step : steps) EXPECT_LE(step.prefill_tokens, 32);
  held.gate.open();
  EXPECT_EQ(drain(wide).ids, fake_answer(kBaseVersion, fake_tokens(some_text(450)), 3));
}

TEST(EngineSchedule, ShortRequestsWithoutEndDoNotStarveALongPrompt) {
  Held held;
  EngineOptions options;
  options.prefill_chunk = 20;
  EngineUnderTest t(held.options, options);
  ResponseHandle wide = t.submit(request(some_text(200), 3));
  held.gate.wait_arrived(1);
  std::vector<ResponseHandle> quick;
  for (int i = 0; i < 200; ++i) quick.push_back(t.submit(request(some_text(20, i + 2), 1)));
  held.gate.allow(60);  // the short ones alone would fill 200
  held.gate.wait_arrived(61);
  EXPECT_EQ(drain(wide).finish, FinishReason::kLength) << "it comes to its end before all the short ones have";
  EXPECT_GT(t.engine->stats().waiting, 0);
  held.gate.open();
  for (ResponseHandle& h : quick) EXPECT_EQ(drain(h).finish, FinishReason::kLength);
}

TEST(EngineSchedule, RoomGrowsWithTheAnswerAndTheYoungestGivesItsUp) {
  for (const Priority priority : {Priority::kLive, Priority::kGate}) {
    EngineOptions options;
    options.context.kv_tokens = 400;
    EngineUnderTest t({}, options);
    std::vector<ResponseHandle> handles;
    std::vector<Request> requests;
    for (int i = 0; i < 6; ++i) {  // each may fill more than half of the cache
      Request r = drawn("prompt number " + std::to_string(i), 200, static_cast<std::uint64_t>(i));
      r.priority = priority;
      requests.push_back(r);
      handles.push_back(t.submit(std::move(r)));
    }
    for (std::size_t i = 0; i < handles.size(); ++i) {
      const Answer answer = drain(handles[i]);
      EXPECT_EQ(answer.finish, FinishReason::kLength);
      EXPECT_EQ(answer.ids, fake_answer(kBaseVersion, requests[i].prompt, 200, 1, i)) << i;
    }
    EXPECT_GT(t.engine->stats().preemptions, 0);
    EXPECT_EQ(t.engine->stats().prompt_tokens, 6 * 15) << "counted once, however often they began again";
    EXPECT_EQ(t.engine->stats().kv.tokens_used, 0);
  }
}

TEST(EngineSchedule, APreemptedSequenceKeepsItsVersionAcrossASwap) {
  Held held;
  EngineOptions options;
  options.context.kv_tokens = 200;
  EngineUnderTest t(held.options, options);
  TestStore store;
  ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  const VersionId old = t.slots.serving();
  ResponseHandle a = t.submit(request("aaaa", 150)), b = t.submit(request("bbbb", 150));
  held.gate.wait_arrived(1);
  ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  held.gate.open();
  EXPECT_EQ(drain(a).ids, fake_answer(old, fake_tokens("aaaa"), 150));
  EXPECT_EQ(drain(b).ids, fake_answer(t.started(b), fake_tokens("bbbb"), 150));
  EXPECT_GT(t.engine->stats().preemptions, 0);
}

TEST(EngineSchedule, AnAnswerThatOutgrowsTheCacheEndsForLength) {
  FakeModelOptions model;
  model.context_length = 500;
  EngineOptions options;
  options.context.kv_tokens = 100;
  EngineUnderTest t(model, options);
  const Answer answer = t.ask(request("grow", 400));
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(answer.ids.size(), 96u);
}

TEST(EngineSchedule, LiveWorkTakesThePlaceOfOtherWork) {
  Held held;
  EngineUnderTest t(held.options, places(2));
  std::vector<Request> requests;
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < 2; ++i) {
    Request r = drawn("work " + std::to_string(i), 40, static_cast<std::uint64_t>(i));
    r.priority = i == 0 ? Priority::kGate : Priority::kBackground;
    requests.push_back(r);
    handles.push_back(t.submit(std::move(r)));
  }
  held.gate.allow(9);
  held.gate.wait_arrived(10);
  ResponseHandle live = t.submit(request("live", 4));
  held.gate.allow(1);
  held.gate.wait_arrived(11);
  EXPECT_EQ(t.started(live), kBaseVersion) << "in the very next step";
  EXPECT_EQ(t.engine->stats().preemptions, 1);
  held.gate.open();
  EXPECT_EQ(drain(live).ids, fake_answer(kBaseVersion, fake_tokens("live"), 4));
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(drain(handles[i]).ids, fake_answer(kBaseVersion, requests[i].prompt, 40, 1, i)) << "goes on where it was";
  }
}

TEST(EngineSchedule, LiveWorkTakesTheRoomOfOtherWork) {
  Held held;
  EngineOptions options;
  options.context.kv_tokens = 128;
  EngineUnderTest t(held.options, options);
  Request gate = request("gate", 60), background = request("back", 60);
  gate.priority = Priority::kGate;
  background.priority = Priority::kBackground;
  ResponseHandle g = t.submit(gate), b = t.submit(background);
  held.gate.wait_arrived(1);
  ResponseHandle live = t.submit(request("live", 60));
  held.gate.allow(1);
  EXPECT_TRUE(live->wait_started(far()).ok());
  held.gate.open();
  for (auto* h : {&live, &g, &b}) EXPECT_EQ(drain(*h).ids.size(), 60u);
}

TEST(EngineSchedule, AFullQueueSaysWhenToComeBack) {
  Held held;
  EngineUnderTest t(held.options, places(1, 4));
  EXPECT_EQ(t.engine->stats().retry_after_s, 1);
  std::vector<ResponseHandle> handles;
  handles.push_back(t.submit(request("a", 3)));
  held.gate.wait_arrived(1);
  for (int i = 0; i < 4; ++i) handles.push_back(t.submit(request("b", 3)));
  const Result<ResponseHandle> refused = t.engine->submit(request("c"));
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_NE(refused.status().message().find("try again in 60 s"), std::string::npos) << "nothing has ended yet";
  held.gate.open();
  for (ResponseHandle& h : handles) EXPECT_EQ(drain(h).finish, FinishReason::kLength);
  EXPECT_EQ(t.engine->stats().retry_after_s, 1);
}

TEST(PrefillBudget, FindsTheNumberOfTokensThatTakesTheTimeWanted) {
  PrefillBudget budget(512, 0.1);
  const auto seconds = [](int tokens) { return 0.02 + 0.001 * tokens; };  // 80 tokens take 100 ms
  for (int i = 0; i < 20; ++i) budget.took(budget.tokens(0), seconds(budget.tokens(0)));
  EXPECT_NEAR(budget.tokens(0), 80, 4);
  budget.took(10, seconds(10));
  EXPECT_NEAR(budget.tokens(0), 80, 4) << "a step that had less to feed says nothing about more";
  budget.took(0, 5);
  EXPECT_NEAR(budget.tokens(0), 80, 4) << "nor does one without";
  for (int i = 0; i < 20; ++i) budget.took(budget.tokens(0), 3);
  EXPECT_EQ(budget.tokens(0), 32) << "some always get on";
  for (int i = 0; i < 20; ++i) budget.took(budget.tokens(0), 0);
  EXPECT_EQ(budget.tokens(0), 512);
  EXPECT_EQ(PrefillBudget(5, 0.1).tokens(0), 5);
  PrefillBudget slow(512, 0.1);
  for (int i = 0; i < 20; ++i) slow.took(slow.tokens(0), 3);
  EXPECT_EQ(slow.tokens(8), 32);
  EXPECT_EQ(slow.tokens(64), 128) << "beside many that decode prompts keep their share of a step";
  EXPECT_EQ(slow.tokens(400), 512);
}

// Everything at once on a small cache; every answer is checked. Meant for the sanitizers (CON-3).
TEST(EngineSchedule, CON3_MixedUseOnASmallCacheIsClean) {
  EngineOptions options;
  options.context.kv_tokens = 700;
  options.max_running = 6;
  options.reserved_for_live = 2;
  options.prefill_chunk = 24;
  EngineUnderTest t({}, options, /*pool_bytes=*/3000);
  TestStore store;
  for (int v = 1; v <= 4; ++v) ASSERT_EQ(store.new_version(), VersionId(v));
  t.slots.set_pinnable({VersionId(1), VersionId(2), VersionId(3), VersionId(4)});
  std::atomic<bool> end = false;
  std::atomic<int> wrong = 0, ended = 0;
  std::vector<std::thread> clients;
  for (int c = 0; c < 5; ++c) {
    clients.emplace_back([&, c] {
      for (int i = 0; i < 60; ++i) {
        Request r = drawn(some_text(20 + (i * 37 + c * 11) % 200, i % 3), 5 + i % 60, static_cast<std::uint64_t>(i));
        r.priority = static_cast<Priority>((i + c) % 3);
        if (i % 4 == 0) r.adapter = AdapterChoice::pinned(VersionId(1 + (i + c) % 4));
        const std::vector<TokenId> prompt = r.prompt;
        const int budget = r.max_tokens;
        Result<ResponseHandle> handle = t.engine->submit(std::move(r));
        if (!handle.ok()) {
          if (handle.code() != Code::kUnavailable) ++wrong;  // paused or asleep just now
          continue;
        }
        if (i % 7 == 3) {
          (void)(*handle)->next(far());
          continue;  // the client goes away
        }
        if (i % 11 == 5) (*handle)->cancel();
        const Answer answer = drain(*handle);
        if (answer.finish == FinishReason::kCancelled && i % 11 == 5) continue;
        const Result<StartInfo> start = (*handle)->wait_started(far());
        if (!start.ok() || answer.ids != fake_answer(start->version, prompt, budget, 1, static_cast<std::uint64_t>(i))) ++wrong;
        ++ended;
      }
    });
  }
  std::thread operator_thread([&] {
    for (int i = 0; !end; ++i) {
      switch (i % 5) {
        case 0: EXPECT_TRUE(t.engine->flush().ok()); break;
        case 1: EXPECT_TRUE(t.slots.publish(store.promote(VersionId(1 + i % 4))).ok()); break;
        case 2: EXPECT_TRUE(t.engine->pause().ok()); break;
        case 3: EXPECT_TRUE(t.engine->sleep(false).ok()); break;
        case 4: EXPECT_TRUE(t.engine->wake().ok()); break;
      }
      std::this_thread::yield();
    }
    EXPECT_TRUE(t.engine->wake().ok());
    EXPECT_TRUE(t.engine->resume().ok());
  });
  std::this_thread::yield();
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(t.engine->flush().ok());
  end = true;
  operator_thread.join();
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(ended, 0);
  t.engine->cancel_all();
  t.engine->stop();
  EXPECT_EQ(t.engine->stats().kv.tokens_used, 0);
}

}  // namespace
}  // namespace sluice::testing
