// SPDX-License-Identifier: GPL-3.0-or-later
// Order, room, cancellation and stop. A StepGate holds the model, so that each test decides what meets what.
#include <thread>

#include "engine/serve/serve_fixture.h"

namespace sluice::testing {
namespace {

// First byte of each prompt in the order of first draws.
class OrderLog {
 public:
  void draw(char name) {
    MutexLock lock(mu_);
    if (order_.find(name) == std::string::npos) order_.push_back(name);
  }
  std::string order() const {
    MutexLock lock(mu_);
    return order_;
  }

 private:
  mutable Mutex mu_;
  std::string order_ SLUICE_GUARDED_BY(mu_);
};

struct Held {
  StepGate gate;
  StepLog log;
  OrderLog order;
  FakeModelOptions options;

  Held() {
    options.on_step = [this](const FakeStep& step) {
      log.add(step);
      return gate.pass();
    };
    options.answer = [this](VersionId, const std::vector<TokenId>& prompt) {
      order.draw(static_cast<char>(prompt[0]));
      return std::nullopt;
    };
  }
};

Request with(Request r, Priority priority) {
  r.priority = priority;
  return r;
}

TEST(EngineQueue, FullQueueIsBusy) {
  Held held;
  EngineUnderTest t(held.options, places(1, 2));
  ResponseHandle running = t.submit(request("a"));
  held.gate.wait_arrived(1);  // it left the queue
  ResponseHandle b = t.submit(request("b")), c = t.submit(request("c"));
  const Result<ResponseHandle> refused = t.engine->submit(request("d"));
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.code(), Code::kBusy);
  EXPECT_EQ(t.engine->stats().waiting, 2);
  held.gate.open();
  for (ResponseHandle* h : {&running, &b, &c}) EXPECT_EQ(drain(*h).finish, FinishReason::kLength);
  EXPECT_EQ(t.ask(request("d")).finish, FinishReason::kLength);
}

TEST(EngineQueue, LiveThenGateThenBackgroundEachInOrder) {
  Held held;
  EngineUnderTest t(held.options, places(1));
  std::vector<ResponseHandle> handles;
  handles.push_back(t.submit(request("0", 2)));
  held.gate.wait_arrived(1);
  handles.push_back(t.submit(with(request("1", 2), Priority::kBackground)));
  handles.push_back(t.submit(with(request("2", 2), Priority::kGate)));
  handles.push_back(t.submit(with(request("3", 2), Priority::kLive)));
  handles.push_back(t.submit(with(request("4", 2), Priority::kGate)));
  handles.push_back(t.submit(with(request("5", 2), Priority::kLive)));
  held.gate.open();
  for (ResponseHandle& h : handles) EXPECT_EQ(drain(h).finish, FinishReason::kLength);
  EXPECT_EQ(held.order.order(), "035241");
}

TEST(EngineQueue, PlacesAreKeptFreeForLiveTraffic) {
  Held held;
  EngineOptions options = places(3);
  options.reserved_for_live = 1;
  EngineUnderTest t(held.options, options);
  std::vector<ResponseHandle> handles;
  handles.push_back(t.submit(with(request("1"), Priority::kGate)));
  held.gate.wait_arrived(1);
  handles.push_back(t.submit(with(request("2"), Priority::kGate)));
  handles.push_back(t.submit(with(request("3"), Priority::kBackground)));
  held.gate.allow(1);
  held.gate.wait_arrived(2);
  EXPECT_EQ(t.engine->stats().running, 2);
  EXPECT_EQ(t.engine->stats().waiting, 1);
  handles.push_back(t.submit(with(request("4"), Priority::kLive)));
  held.gate.allow(1);
  held.gate.wait_arrived(3);
  EXPECT_EQ(t.engine->stats().running, 3);
  EXPECT_EQ(t.engine->stats().waiting, 1);
  held.gate.open();
  for (ResponseHandle& h : handles) EXPECT_EQ(drain(h).finish, FinishReason::kLength);
}

TEST(EngineQueue, LongPromptDelaysNoRunningAnswerByMoreThanAChunk) {
  Held held;
  EngineOptions options = places(4);
  options.prefill_chunk = 10;
  EngineUnderTest t(held.options, options);
  ResponseHandle talker = t.submit(request("t", 60));
  held.gate.wait_arrived(1);
  ResponseHandle reader = t.submit(request(std::string(200, 'r'), 5));
  held.gate.open();
  EXPECT_EQ(drain(reader).ids, fake_answer(kBaseVersion, fake_tokens(std::string(200, 'r')), 5));
  EXPECT_EQ(drain(talker).ids.size(), 60u);
  int with_prefill = 0;
  for (const FakeStep& step : held.log.steps()) {
    EXPECT_LE(step.prefill_tokens, 10);
    if (step.number == 1 || step.prefill_tokens == 0) continue;
    ++with_prefill;
    EXPECT_EQ(step.decode_items, 1) << "the running answer went on in step " << step.number;
  }
  EXPECT_EQ(with_prefill, 20);
}

TEST(EngineQueue, WaitsForKvRoomWithoutBeingOvertaken) {
  Held held;
  EngineOptions options = places(8);
  options.context.kv_tokens = 100;
  EngineUnderTest t(held.options, options);
  ResponseHandle big = t.submit(request("a" + std::string(9, ' '), 50));   // 60 positions
  held.gate.wait_arrived(1);
  ResponseHandle wide = t.submit(request("b" + std::string(9, ' '), 50));  // 60 more do not fit
  ResponseHandle small = t.submit(request("c", 4));                       // would fit, but came later
  held.gate.allow(3);
  held.gate.wait_arrived(4);
  const GeneratorStats stats = t.engine->stats();
  EXPECT_EQ(stats.running, 1);
  EXPECT_EQ(stats.waiting, 2);
  EXPECT_EQ(stats.kv.tokens_used, 60);
  held.gate.open();
  EXPECT_EQ(drain(big).ids.size(), 50u);
  EXPECT_EQ(drain(wide).ids.size(), 50u);
  EXPECT_EQ(drain(small).ids.size(), 4u);
  EXPECT_EQ(held.order.order(), "abc");
  EXPECT_EQ(t.engine->context_length(), 100) << "no longer than the cache can hold";
}

TEST(EngineQueue, CancelledWhileWaiting) {
  Held held;
  EngineUnderTest t(held.options, places(1));
  ResponseHandle running = t.submit(request("a", 30));
  held.gate.wait_arrived(1);
  ResponseHandle waiting = t.submit(request("b"));
  waiting->cancel();
  held.gate.allow(1);
  const Answer answer = drain(waiting);  // told although the one before it still runs
  EXPECT_EQ(answer.finish, FinishReason::kCancelled);
  EXPECT_TRUE(answer.ids.empty());
  EXPECT_EQ(waiting->wait_started(far()).code(), Code::kCancelled);
  held.gate.open();
  EXPECT_EQ(drain(running).ids.size(), 30u);
  EXPECT_EQ(held.order.order(), "a");
}

// Cancelled while step `during` runs: the step after it is without the sequence.
void cancel_during(int during, bool drop_handle) {
  SCOPED_TRACE("step " + std::to_string(during) + (drop_handle ? ", dropped" : ", cancelled"));
  Held held;
  EngineOptions options = places(4);
  options.prefill_chunk = 8;  // the prompt of 20 takes three steps
  EngineUnderTest t(held.options, options);
  ResponseHandle victim = t.submit(request(std::string(20, 'x'), 100));
  held.gate.allow(during - 1);
  held.gate.wait_arrived(during);
  ResponseHandle other = t.submit(request("other", 10));
  if (drop_handle) {
    victim = ResponseHandle();
  } else {
    victim->cancel();
  }
  held.gate.open();
  EXPECT_EQ(drain(other).ids, fake_answer(kBaseVersion, fake_tokens("other"), 10));
  const std::vector<FakeStep> steps = held.log.steps();
  for (std::size_t i = static_cast<std::size_t>(during); i < steps.size(); ++i) EXPECT_EQ(steps[i].versions.size(), 1u) << i;
  if (!drop_handle) {
    const Answer answer = drain(victim);
    EXPECT_EQ(answer.finish, FinishReason::kCancelled);
    EXPECT_EQ(answer.ids.size(), during < 3 ? 0u : static_cast<std::size_t>(during - 2));
  }
  EXPECT_EQ(t.engine->stats().kv.tokens_used, 0);
}

TEST(EngineQueue, CON1_CancelledInPrefillAndInDecode) {
  for (const int during : {1, 2, 3, 4, 9}) {
    cancel_during(during, false);
    cancel_during(during, true);
  }
}

TEST(EngineQueue, CancelAfterTheEndChangesNothing) {
  EngineUnderTest t;
  ResponseHandle handle = t.submit(request("a", 3));
  const Answer answer = drain(handle);
  handle->cancel();
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(t.ask(request("b", 3)).finish, FinishReason::kLength);
}

TEST(EngineQueue, CancelAllEndsRunningAndWaitingAndServesOn) {
  Held held;
  EngineUnderTest t(held.options, places(2));
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < 5; ++i) handles.push_back(t.submit(request("a", 100)));
  held.gate.wait_arrived(1);
  t.engine->cancel_all();
  ResponseHandle after = t.submit(request("z", 5));
  held.gate.open();
  for (ResponseHandle& h : handles) EXPECT_EQ(drain(h).finish, FinishReason::kCancelled);
  EXPECT_EQ(drain(after).finish, FinishReason::kLength) << "what came later is not touched";
}

TEST(EngineQueue, StopWithStreamsOpenEndsThemAll) {
  Held held;
  EngineUnderTest t(held.options, places(3));
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < 6; ++i) handles.push_back(t.submit(request("a", 300)));
  held.gate.wait_arrived(1);
  std::thread stopper([&] { t.engine->stop(); });
  while (true) {  // until the stop is seen; what slips in before it must be ended too
    Result<ResponseHandle> extra = t.engine->submit(request("b", 300));
    if (extra.ok()) {
      handles.push_back(std::move(extra).value());
    } else if (extra.code() == Code::kUnavailable) {
      break;
    }
    std::this_thread::yield();
  }
  held.gate.open();
  stopper.join();
  for (ResponseHandle& h : handles) EXPECT_EQ(drain(h).finish, FinishReason::kCancelled);
  EXPECT_EQ(t.engine->submit(request("c")).code(), Code::kUnavailable);
  t.engine->stop();  // again: nothing happens
}

TEST(EngineQueue, DeadlinesOfTheCallerPassWithoutHarm) {
  Held held;
  EngineUnderTest t(held.options, places(1));
  ResponseHandle running = t.submit(request("a", 3));
  held.gate.wait_arrived(1);
  ResponseHandle waiting = t.submit(request("b", 3));
  EXPECT_EQ(waiting->wait_started(std::chrono::steady_clock::now()).code(), Code::kDeadline);
  EXPECT_FALSE(running->next(std::chrono::steady_clock::now()).has_value());
  held.gate.open();
  EXPECT_EQ(drain(running).finish, FinishReason::kLength);
  EXPECT_EQ(drain(waiting).finish, FinishReason::kLength);
}

TEST(EngineQueue, AWakeupTellsOfAnyOfSeveralResponses) {
  EngineUnderTest t;
  const auto wakeup = std::make_shared<Wakeup>();
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < 4; ++i) {
    Request r = request(std::string(1, static_cast<char>('a' + i)), 4 + i);
    r.wakeup = wakeup;
    handles.push_back(t.submit(std::move(r)));
  }
  std::vector<std::size_t> tokens(4);
  std::size_t ended = 0;
  while (ended < 4) {
    const std::uint64_t seen = wakeup->count();
    bool any = false;
    for (std::size_t i = 0; i < 4; ++i) {
      while (auto event = handles[i]->next(std::chrono::steady_clock::now())) {
        any = true;
        event->kind == TokenEvent::Kind::kToken ? ++tokens[i] : ++ended;
      }
    }
    if (any || ended == 4) continue;
    ASSERT_TRUE(wakeup->wait_past(seen, far()));
  }
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(tokens[i], 4 + i);
}

}  // namespace
}  // namespace sluice::testing
