// SPDX-License-Identifier: GPL-3.0-or-later
// What is kept of an exchange, when, and what happens when it can't be kept.
#include <gmock/gmock.h>

#include <thread>

#include "chat/json_text.h"
#include "chat/record_builder.h"
#include "engine/chat/chat_fixture.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

RecordRow record_of(ChatUnderTest& t, const RecordId& id) {
  const auto row = t.store->record(id);
  EXPECT_TRUE(row.has_value()) << "no record " << id.text;
  return row.value_or(RecordRow());
}

TEST(Record, HoldsWhatTrainingNeeds) {
  ChatUnderTest t(answering("The answer. More"));
  const VersionId version = t.publish_new();
  CompletionRequest r = chat_request("What is a \"valve\"?", 40);
  ChatMessage system;
  system.role = "system";
  system.content = "Be brief.";
  r.messages->insert(r.messages->begin(), system);
  r.sampling.temperature = 0.5f;
  r.sampling.top_p = 0.9f;
  r.sampling.min_p = 0.05f;
  r.sampling.top_k = 7;
  r.sampling.seed = 77;
  r.sampling.presence_penalty = 0.25f;
  r.sampling.logit_bias = {{65, -1.5f}};
  r.stop = {" More"};
  r.split = Split::kHeldOut;
  r.purpose = Purpose::kGate;
  r.conversation = "conv";
  r.group_key = "valves";
  r.user = "someone";
  const auto exchange = t.start(r);
  (void)drain(*exchange);
  const RecordRow row = record_of(t, exchange->record_id());
  EXPECT_EQ(row.version, version);
  EXPECT_EQ(row.adapter_name, TestStore::name_of(version));
  EXPECT_EQ(row.prompt_text, "What is a \"valve\"?");
  EXPECT_EQ(row.prompt_json,
            R"([{"role":"system","content":"Be brief."},{"role":"user","content":"What is a \"valve\"?"}])");
  EXPECT_EQ(row.completion_text, "The answer.");
  EXPECT_EQ(row.prompt_ids, exchange->prompt_ids());
  EXPECT_EQ(fake_text(row.token_ids), "The answer. More");
  EXPECT_EQ(row.lp_full.size(), row.token_ids.size());
  EXPECT_EQ(row.lp_mu.size(), row.token_ids.size());
  EXPECT_EQ(row.temperature, 0.5f);
  EXPECT_EQ(row.top_p, 0.9f);
  EXPECT_EQ(row.min_p, 0.05f);
  EXPECT_EQ(row.top_k, 7);
  EXPECT_EQ(row.seed, 77u);
  EXPECT_EQ(row.max_tokens, 40);
  EXPECT_EQ(row.finish_reason, "stop");
  EXPECT_TRUE(row.complete);
  EXPECT_EQ(row.split, Split::kHeldOut);
  EXPECT_EQ(row.purpose, Purpose::kGate);
  EXPECT_EQ(row.route, "chat");
  EXPECT_EQ(row.conversation, "conv");
  EXPECT_EQ(row.group_key, "valves");
  EXPECT_GT(row.received_us, 0);
  EXPECT_GE(row.served_us, row.received_us);
  EXPECT_EQ(row.sampling_json, R"({"presence_penalty":0.25,"frequency_penalty":0,"repetition_penalty":1,)"
                               R"("logit_bias":{"65":-1.5},"stop":[" More"],"stop_reason":" More","user":"someone"})");
}

// What is drawn as argmax is not trained on, so the record must not claim a distribution that nothing was drawn from.
TEST(Record, SMP1_ATemperatureTooSmallToDivideByIsRecordedAsZero) {
  ChatUnderTest t;
  CompletionRequest r = text_request("p", 4);
  for (const float temperature : {1e-45f, 1e-38f, 1e-7f, 1e-6f}) {
    r.sampling.temperature = temperature;
    const auto exchange = t.start(r);
    drain(*exchange);
    EXPECT_EQ(t.store->record(exchange->record_id())->temperature, temperature < 1e-6f ? 0.0f : temperature);
  }
}

TEST(Record, FurtherChoicesAreKeptBeside) {
  ChatUnderTest t;
  CompletionRequest r = text_request("pick", 6);
  r.n = 2;
  r.sampling.temperature = 1;
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  const RecordRow row = record_of(t, exchange->record_id());
  EXPECT_EQ(row.completion_text, told.text.at(0));
  EXPECT_THAT(row.sampling_json, HasSubstr(R"("n":2,"choices":[{"text":")" + told.text.at(1) + '"'));
  EXPECT_THAT(row.sampling_json, HasSubstr(R"("finish_reason":"length"})"));
}

TEST(Record, WithoutTextWhenAskedSo) {
  ChatUnderTest t(answering("secret"));
  CompletionRequest r = chat_request("private", 20);
  r.store_text = false;
  const auto exchange = t.start(r);
  (void)drain(*exchange);
  const RecordRow row = record_of(t, exchange->record_id());
  EXPECT_THAT(row.prompt_text + row.prompt_json + row.completion_text, IsEmpty());
  EXPECT_EQ(row.token_ids.size(), 7u);
}

TEST(Record, NoneWhenTheRequestWantsNone) {
  ChatUnderTest t;
  CompletionRequest r = text_request("x");
  r.store_record = false;
  const auto exchange = t.start(r);
  EXPECT_EQ(drain(*exchange).finish.at(0).finish, FinishReason::kLength);
  EXPECT_FALSE(t.store->record(exchange->record_id()).has_value());
}

// Answers "short" by one letter and everything else by many; draws for "bad" fail at the sixth.
FakeModelOptions uneven() {
  FakeModelOptions options;
  options.answer = [](VersionId, const std::vector<TokenId>& prompt) {
    return std::optional<std::string>(fake_text(prompt) == "short" ? "a" : std::string(30, 'b'));
  };
  options.not_finite = [](VersionId, const std::vector<TokenId>& prompt, std::size_t drawn) {
    return fake_text(prompt) == "bad" && drawn == 5;
  };
  return options;
}

TEST(Record, CON6_IsCommittedBeforeAnyEndIsTold) {
  ChatUnderTest t(uneven());
  for (const bool list : {false, true}) {
    CompletionRequest r = text_request("short", 40);
    if (list) {
      r.more_prompts = {"long", "longer"};
    } else {
      r.n = 3;
      r.sampling.temperature = 1;  // a sequence each
    }
    const auto exchange = t.start(r);
    int ends = 0;
    while (ends < 3) {
      const auto event = exchange->next(far());
      ASSERT_TRUE(event.has_value());
      EXPECT_TRUE(ends == 0 || event->kind == TextEvent::Kind::kFinish);
      if (event->kind == TextEvent::Kind::kFinish) ++ends;
      EXPECT_EQ(t.store->record(exchange->record_id()).has_value(), ends > 0);
    }
    EXPECT_TRUE(exchange->done());
    EXPECT_TRUE(record_of(t, exchange->record_id()).complete);
  }
}

TEST(Record, AFailureOfOneChoiceWaitsForNoOther) {
  ChatUnderTest t(uneven());
  CompletionRequest r = text_request("bad", 40);
  r.more_prompts = {"long"};
  const auto exchange = t.start(r);
  std::string order;
  while (!exchange->done()) order += exchange->next(far()).value().kind == TextEvent::Kind::kFinish ? '!' : '.';
  EXPECT_EQ(order.size(), 5u + 30u + 2u);
  EXPECT_LT(order.find('!'), 15u) << order;
  EXPECT_FALSE(record_of(t, exchange->record_id()).complete);
}

TEST(Record, AFailureIsToldBeforeTheEndsOfTheOthers) {
  ChatUnderTest t(uneven());
  CompletionRequest r = text_request("short", 40);
  r.more_prompts = {"bad"};
  const auto exchange = t.start(r);
  std::vector<std::pair<int, FinishReason>> ends;
  while (!exchange->done()) {
    const auto event = exchange->next(far());
    ASSERT_TRUE(event.has_value());
    if (event->kind == TextEvent::Kind::kFinish) ends.emplace_back(event->choice, event->finish);
  }
  EXPECT_EQ(ends, (std::vector<std::pair<int, FinishReason>>{{1, FinishReason::kError}, {0, FinishReason::kStop}}));
  EXPECT_FALSE(record_of(t, exchange->record_id()).complete);
}

TEST(Record, CancelledExchangesAreKeptAsIncomplete) {
  StepGate gate(4);
  FakeModelOptions options;
  options.on_step = [&gate](const FakeStep&) { return gate.pass(); };
  for (const bool drop : {false, true}) {
    ChatUnderTest t(options);
    auto exchange = t.start(text_request("never mind", 100));
    const RecordId id = exchange->record_id();
    std::string text;
    for (int i = 0; i < 2; ++i) text += exchange->next(far())->text;
    if (drop) {
      exchange.reset();
      gate.open();
    } else {
      exchange->cancel();
      gate.open();
      const Told told = drain(*exchange);
      EXPECT_EQ(told.finish.at(0).finish, FinishReason::kCancelled);
      text += told.text.contains(0) ? told.text.at(0) : "";
    }
    const RecordRow row = record_of(t, id);
    EXPECT_FALSE(row.complete);
    EXPECT_EQ(row.finish_reason, "cancelled");
    EXPECT_EQ(row.completion_text, text);
    EXPECT_EQ(row.token_ids.size(), text.size());
  }
}

TEST(Record, AnEndNobodyTookIsNoCompleteAnswer) {
  ChatUnderTest t;
  auto exchange = t.start(text_request("x", 3));
  const RecordId id = exchange->record_id();
  for (int i = 0; i < 3; ++i) (void)exchange->next(far());  // all the text, but not the end
  exchange.reset();
  const RecordRow row = record_of(t, id);
  EXPECT_FALSE(row.complete);
  EXPECT_EQ(row.finish_reason, "cancelled");
}

TEST(Record, FailedGenerationIsKeptAndTold) {  // CFG-7
  FakeModelOptions options;
  options.not_finite = [](VersionId, const std::vector<TokenId>&, std::size_t drawn) { return drawn == 2; };
  ChatUnderTest t(options);
  const auto exchange = t.start(text_request("x", 20));
  const Told told = drain(*exchange);
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kError);
  EXPECT_EQ(told.finish.at(0).error.code(), Code::kInternal);
  EXPECT_EQ(told.finish.at(0).error.reason(), Reason::kNotFinite);
  const RecordRow row = record_of(t, exchange->record_id());
  EXPECT_FALSE(row.complete);
  EXPECT_EQ(row.finish_reason, "error");
  EXPECT_EQ(t.chat.complete(text_request("x", 20)).code(), Code::kInternal);
}

// A generator whose engine is the test itself.
class HandGenerator final : public Generator {
 public:
  Result<ResponseHandle> submit(Request request) override {
    MutexLock lock(mu_);
    stream_ = std::make_shared<ResponseStream>(request.wakeup);
    submitted_.notify_all();
    return ResponseHandle(stream_);
  }
  int context_length() const override { return 100; }
  GeneratorStats stats() const override { return {}; }

  std::shared_ptr<ResponseStream> wait_submitted() {
    MutexLock lock(mu_);
    while (!stream_) submitted_.wait(mu_);
    return stream_;
  }

 private:
  Mutex mu_;
  CondVar submitted_;
  std::shared_ptr<ResponseStream> stream_ SLUICE_GUARDED_BY(mu_);
};

TEST(Record, CancelOfAWholeCompletion) {
  TestStore store;
  HandGenerator generator;
  CompletionService chat(generator, byte_tokenizer(), plain_template(), &*store, TestStore::name_of, Clock::system());
  std::atomic<bool> cancel = false;
  Result<Completion> result = internal_error("not run");
  std::thread caller([&] { result = chat.complete(text_request("x", 50), &cancel); });
  const auto stream = generator.wait_submitted();
  StartInfo start;
  start.version = kBaseVersion;
  stream->start(start, {});
  SampledToken token;
  token.token = 'a';
  stream->push(token, {});
  cancel = true;
  while (!stream->cancelled()) std::this_thread::yield();
  stream->end(FinishReason::kCancelled, {}, {});
  caller.join();
  EXPECT_EQ(result.code(), Code::kCancelled);
  const auto rows = store->records({}, 0, 10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_FALSE(rows[0].complete);
  EXPECT_EQ(rows[0].completion_text, "a");
}

TEST(Record, AFailedCommitIsToldInsteadOfTheEnd) {
  ChatUnderTest t;
  CompletionRequest r = text_request("x", 5);
  r.session = SessionId(12345);  // the store refuses a record of a session it does not know
  EXPECT_EQ(t.chat.complete(r).code(), Code::kUnavailable);
  r.more_prompts = {"y"};
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  for (const int choice : {0, 1}) {
    EXPECT_EQ(told.text.at(choice).size(), 5u);
    EXPECT_EQ(told.finish.at(choice).finish, FinishReason::kError);
    EXPECT_EQ(told.finish.at(choice).error.code(), Code::kUnavailable);
    EXPECT_THAT(told.finish.at(choice).error.message(), HasSubstr("store unavailable"));
  }
}

TEST(Record, AClientThatGoesWhileWaitingLeavesTheQueue) {
  StepGate gate(0);
  FakeModelOptions options;
  options.on_step = [&gate](const FakeStep&) { return gate.pass(); };
  EngineOptions engine_options;
  engine_options.max_running = 1;
  ChatUnderTest t(options, engine_options);
  const auto running = t.start(text_request("first", 5));
  gate.wait_arrived(1);
  EXPECT_EQ(t.chat.start(text_request("second", 5), [] { return true; }).code(), Code::kCancelled);
  gate.open();
  EXPECT_EQ(drain(*running).finish.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(t.store->counts(SessionId()).records, 1);
}

TEST(JsonText, WritesWhatAnyParserReads) {
  std::string out;
  append_json(out, DataValue(DataValue::Dict{{"a\n\"", DataValue::List{1, 2.5, true, nullptr, "\x01\xFF"}},
                                             {"n", std::numeric_limits<double>::infinity()}}));
  EXPECT_EQ(out, "{\"a\\u000a\\\"\":[1,2.5,true,null,\"\\u0001\xEF\xBF\xBD\"],\"n\":null}");
}

TEST(RecordText, PromptIsTheLastUserMessage) {
  ChatMessage system, user, assistant;
  system.role = "system";
  system.content = "s";
  user.role = "user";
  user.content = DataValue::List{DataValue::Dict{{"type", "text"}, {"text", "part one, "}},
                                 DataValue::Dict{{"type", "text"}, {"text", "part two"}}};
  assistant.role = "assistant";
  assistant.content = "a";
  EXPECT_EQ(prompt_text_of({system, user, assistant}), "part one, part two");
  EXPECT_EQ(prompt_text_of({system}), "s");
  assistant.content = nullptr;
  EXPECT_EQ(prompt_text_of({assistant}), "");
}

}  // namespace
}  // namespace sluice::testing
