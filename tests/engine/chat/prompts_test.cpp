// SPDX-License-Identifier: GPL-3.0-or-later
// Several prompts in one exchange: order, scores, more than the queue holds, refusal as a whole.
#include <gmock/gmock.h>

#include <thread>

#include "engine/chat/chat_fixture.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

std::string expected(VersionId version, const std::vector<TokenId>& prompt, int count) {
  return fake_text(fake_answer(version, prompt, count));
}

TEST(Prompts, SeveralPromptsShareOneExchange) {
  ChatUnderTest t;
  const VersionId version = t.publish_new();
  CompletionRequest r = text_request("one", 10);
  r.more_prompts = {std::string("two"), fake_tokens("three")};
  r.n = 2;
  r.sampling.temperature = 1;
  r.sampling.seed = 7;
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 6u);
  const std::vector<std::string> prompts = {"one", "two", "three"};
  for (int i = 0; i < 6; ++i) {
    const std::string& prompt = prompts[static_cast<std::size_t>(i / 2)];
    EXPECT_EQ(told.text.at(i), fake_text(fake_answer(version, fake_tokens(prompt), 10, 1, 7 + static_cast<std::uint64_t>(i % 2))));
    EXPECT_EQ(exchange->choice(i).text, told.text.at(i));
  }
  EXPECT_EQ(exchange->prompt_ids(2), fake_tokens("three"));
  EXPECT_EQ(exchange->usage().prompt_tokens, 11);
  EXPECT_EQ(exchange->usage().completion_tokens, 60);
}

TEST(Prompts, ScoresOfSeveralPromptsComeBeforeTheirText) {
  ChatUnderTest t;
  CompletionRequest r = text_request("first", 3);
  r.more_prompts = {std::string("second one")};
  r.echo = true;
  r.want_logprobs = true;
  r.prompt_logprobs = 1;
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), "first" + expected(kBaseVersion, fake_tokens("first"), 3));
  EXPECT_EQ(told.text.at(1), "second one" + expected(kBaseVersion, fake_tokens("second one"), 3));
  EXPECT_EQ(exchange->prompt_logprobs(0).size(), 5u);
  ASSERT_EQ(exchange->prompt_logprobs(1).size(), 10u);
  EXPECT_EQ(exchange->prompt_logprobs(1)[7].piece, "o");
  EXPECT_EQ(exchange->prompt_logprobs(1)[7].offset, 7u);
}

// SentencePiece's bytes: the space is a token of its own, and one is put before every text.
std::shared_ptr<const Tokenizer> pieces_of_bytes(bool bos) {
  return byte_tokenizer([bos](Vocabulary& v) {
    v.model = "llama";
    v.pre_tokenizer.clear();
    for (int b = 0; b < 256; ++b) {
      char name[8];
      std::snprintf(name, sizeof name, "<0x%02X>", static_cast<unsigned>(b));
      v.tokens[static_cast<std::size_t>(b)] = b == ' ' ? "\xE2\x96\x81" : name;
      v.types[static_cast<std::size_t>(b)] = b == ' ' ? TokenType::kNormal : TokenType::kByte;
    }
    v.scores.assign(v.tokens.size(), 0);
    if (bos) v.bos = kFakeTurnStart, v.add_bos = true;
  });
}

// Ids stand for a text from its begin: the space that was put before it is no part of it.
TEST(Prompts, IdsGiveBackTheTextTheyWereMadeOf) {
  const auto tokenizer = pieces_of_bytes(false);
  ASSERT_EQ(*tokenizer->encode("ab c"), fake_tokens(" ab c"));
  ChatUnderTest t;
  CompletionService chat(t.engine, tokenizer, nullptr, &*t.store, TestStore::name_of, Clock::system());
  CompletionRequest r = text_request("", 3);
  r.prompt.reset();
  r.prompt_ids = fake_tokens(" ab c");
  r.echo = r.want_logprobs = true;
  r.prompt_logprobs = 0;
  const auto exchange = chat.start(r).value();
  const Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0).substr(0, 4), "ab c");
  EXPECT_EQ(told.text.at(0), "ab c" + expected(kBaseVersion, fake_tokens(" ab c"), 3));
  EXPECT_EQ(t.store->record(exchange->record_id())->prompt_text, "ab c");
  std::vector<std::size_t> offsets;
  for (const TokenLogprob& l : exchange->prompt_logprobs()) offsets.push_back(l.offset);
  EXPECT_EQ(offsets, (std::vector<std::size_t>{0, 0, 1, 2, 3}));
}

TEST(Prompts, OffsetsAreThoseOfTheEchoedText) {
  const struct {
    std::shared_ptr<const Tokenizer> tokenizer;
    std::string text;
    std::vector<std::size_t> offsets;
  } cases[] = {
      {byte_tokenizer(), "a<|im_end|>b", {0, 1, 11}},                       // the marker stands in the text as it was sent
      {byte_tokenizer(), "\xC3\xA9" "b", {0, 1, 1}},                        // a second byte counts its character
      {pieces_of_bytes(true), "ab", {0, 0, 0, 1}},                          // BOS and the put space have no text
      {pieces_of_bytes(false), " a", {0, 1, 1}},                            // of two spaces one is the text's
      {pieces_of_bytes(false), "a<|im_end|>b", {0, 0, 1, 11, 11}},          // a space is put behind the marker too
  };
  for (const auto& c : cases) {
    ChatUnderTest t;
    CompletionService chat(t.engine, c.tokenizer, nullptr, &*t.store, TestStore::name_of, Clock::system());
    CompletionRequest r = text_request(c.text, 0);
    r.echo = r.want_logprobs = true;
    r.prompt_logprobs = 0;
    const auto exchange = chat.start(r).value();
    EXPECT_EQ(drain(*exchange).text.at(0), c.text);
    std::vector<std::size_t> offsets;
    for (const TokenLogprob& l : exchange->prompt_logprobs()) offsets.push_back(l.offset);
    EXPECT_EQ(offsets, c.offsets) << c.text;
  }
}

TEST(Prompts, MoreChoicesThanTheQueueHoldsAreServedBitByBit) {
  EngineOptions options;
  options.queue_capacity = 4;
  options.max_running = 2;
  ChatUnderTest t({}, options);
  CompletionRequest r = text_request("p0", 4);
  for (int i = 1; i < 40; ++i) r.more_prompts.emplace_back("p" + std::to_string(i));
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 40u);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(told.text.at(i), expected(kBaseVersion, fake_tokens("p" + std::to_string(i)), 4)) << i;
  }
}

// serving.md 3.2: a pause stops admission, not what is being answered.
TEST(Prompts, APauseOnlyDelaysTheRestOfAnExchangeThatRuns) {
  for (const bool asleep : {false, true}) {
    StepGate gate;
    FakeModelOptions model;
    model.on_step = [&gate](const FakeStep&) { return gate.pass(); };
    ChatUnderTest t(model);
    CompletionRequest r = text_request("p0", 4);
    for (int i = 1; i < 40; ++i) r.more_prompts.emplace_back("p" + std::to_string(i));
    std::unique_ptr<Exchange> exchange;
    std::thread starter([&] { exchange = t.start(r); });
    gate.allow(1);
    starter.join();
    ASSERT_NE(exchange, nullptr);
    std::thread pauser([&] { EXPECT_TRUE(t.engine.pause().ok()); });
    while (t.engine.state() != ServeState::kPaused) std::this_thread::yield();
    gate.open();
    pauser.join();
    std::map<int, FinishReason> ends;
    std::map<int, std::string> texts;
    const auto take = [&](SteadyTime until) {
      const auto event = exchange->next(until);
      if (event) texts[event->choice] += event->text;
      if (event && event->kind == TextEvent::Kind::kFinish) ends[event->choice] = event->finish;
      return event.has_value();
    };
    // Those that run come to their end; each end is a try to have the next one taken.
    while (take(std::chrono::steady_clock::now()) || t.engine.stats().running > 0) {
    }
    EXPECT_FALSE(texts.empty());
    EXPECT_LT(texts.size(), 40u);
    for (const auto& [choice, text] : texts) EXPECT_EQ(text.size(), 4u) << choice;
    EXPECT_TRUE(ends.empty()) << "their record waits for the others";
    if (asleep) {
      ASSERT_TRUE(t.engine.sleep(false).ok());
    }
    while (take(std::chrono::steady_clock::now())) {
    }
    ASSERT_TRUE((asleep ? t.engine.wake() : t.engine.resume()).ok());
    while (!exchange->done() && take(far())) {
    }
    ASSERT_EQ(ends.size(), 40u);
    for (const auto& [choice, finish] : ends) EXPECT_EQ(finish, FinishReason::kLength) << choice << asleep;
  }
}

TEST(Prompts, CancellingManyPromptsEndsAllOfThem) {
  StepGate gate;
  FakeModelOptions model;
  model.on_step = [&gate](const FakeStep&) { return gate.pass(); };
  EngineOptions options;
  options.queue_capacity = 4;
  options.max_running = 2;
  ChatUnderTest t(model, options);
  CompletionRequest r = text_request("p", 50);
  for (int i = 1; i < 40; ++i) r.more_prompts.emplace_back("p" + std::to_string(i));
  const auto exchange = t.start(r);
  exchange->cancel();
  gate.open();
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 40u);
  for (const auto& [choice, finish] : told.finish) EXPECT_EQ(finish.finish, FinishReason::kCancelled) << choice;
}

TEST(Prompts, OneBadPromptOfSeveralRefusesAll) {
  ChatUnderTest t;
  CompletionRequest r = text_request("fine");
  r.more_prompts = {std::string(600, 'a')};
  EXPECT_THAT(t.chat.start(r).status().message(), HasSubstr("maximum context length is 512 tokens"));
  r.more_prompts = {std::vector<TokenId>{5000}};
  EXPECT_THAT(t.chat.start(r).status().message(), HasSubstr("token id 5000"));
  r.more_prompts = {std::string()};
  EXPECT_THAT(t.chat.start(r).status().message(), HasSubstr("prompt is empty"));
  EXPECT_EQ(t.engine.stats().generated_tokens, 0);
}

}  // namespace
}  // namespace sluice::testing
