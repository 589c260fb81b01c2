// SPDX-License-Identifier: GPL-3.0-or-later
// Text out of tokens: UTF-8, stops, choices, echo, log-probs, limits.
#include <gmock/gmock.h>

#include <cmath>

#include "engine/chat/chat_fixture.h"
#include "text/utf8.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string expected(VersionId version, const std::vector<TokenId>& prompt, int count) {
  return fake_text(fake_answer(version, prompt, count));
}

TEST(Completion, AnswersAPrompt) {
  ChatUnderTest t;
  const auto exchange = t.start(text_request("Hello"));
  EXPECT_THAT(exchange->record_id().text, StartsWith("rec_"));
  EXPECT_EQ(exchange->version(), kBaseVersion);
  EXPECT_EQ(exchange->adapter_name(), "base");
  const Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), expected(kBaseVersion, fake_tokens("Hello"), 12));
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(told.finish.at(0).stop_reason, "");
  EXPECT_EQ(exchange->usage().prompt_tokens, 5);
  EXPECT_EQ(exchange->usage().completion_tokens, 12);
}

TEST(Completion, RendersMessagesByTheTemplate) {
  ChatUnderTest t;
  const auto exchange = t.start(chat_request("Hi"));
  const auto segments = t.chat.chat_template()->render(*chat_request("Hi").messages);
  ASSERT_TRUE(segments.ok());
  const auto ids = encode_segments(*t.tokenizer, *segments);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(exchange->prompt_ids(), *ids);
  EXPECT_EQ(exchange->prompt_ids().front(), kFakeTurnStart);
  EXPECT_EQ(drain(*exchange).text.at(0), expected(kBaseVersion, *ids, 12));
}

TEST(Completion, EosEndsTheAnswerAndIsNoPartOfItsText) {
  ChatUnderTest t(answering("done"));
  CompletionRequest r = text_request("x", 50);
  r.skip_special_tokens = false;
  auto exchange = t.start(r);
  Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), "done");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(told.finish.at(0).stop_reason, "");
  EXPECT_EQ(exchange->choice(0).token_ids.back(), kFakeEos);
  EXPECT_EQ(exchange->usage().completion_tokens, 5);

  r.ignore_eos = true;
  r.max_tokens = 6;
  told = drain(*t.start(r));
  EXPECT_EQ(told.text.at(0), "done<|im_end|><|im_end|>");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kLength);
}

TEST(Completion, CodePointsAreNeverCut) {  // TOK-6, TOK-7
  const std::string text = "a\xF0\x9F\x98\x80\xE4\xBD\xA0\xE5\xA5\xBD z";
  ChatUnderTest t(answering(text));
  Told told = drain(*t.start(text_request("x", 50)));
  EXPECT_EQ(told.text.at(0), text);
  for (const std::string& piece : told.pieces.at(0)) EXPECT_TRUE(is_valid_utf8(piece));
  EXPECT_EQ(told.pieces.at(0).size(), 6u) << "one piece for each character, none for its first bytes";

  for (int cut = 2; cut <= 4; ++cut) {  // the budget ends inside the emoji: one replacement character
    auto exchange = t.start(text_request("x", cut));
    told = drain(*exchange);
    EXPECT_EQ(told.text.at(0), "a" + std::string(kReplacement));
    EXPECT_EQ(told.finish.at(0).finish, FinishReason::kLength);
    EXPECT_EQ(exchange->choice(0).token_ids.size(), static_cast<std::size_t>(cut));
  }
}

TEST(Completion, StopStringEndsTheTextBeforeIt) {  // PRO-1
  ChatUnderTest t(answering("one two three"));
  CompletionRequest r = text_request("x", 50);
  r.stop = {"never", " thr"};
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), "one two");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(told.finish.at(0).stop_reason, " thr");
  EXPECT_EQ(fake_text(exchange->choice(0).token_ids), "one two thr") << "ids go through the token that completed it";
  for (const std::string& piece : told.pieces.at(0)) EXPECT_EQ(piece.find('h'), std::string::npos);
}

TEST(Completion, TheStartOfAStopStringIsSentWhenTheAnswerEnds) {  // PRO-2
  for (const int budget : {50, 9}) {  // by EOS and by the budget
    ChatUnderTest t(answering("ends in #"));
    CompletionRequest r = text_request("x", budget);
    r.stop = {"###"};
    const Told told = drain(*t.start(r));
    EXPECT_EQ(told.text.at(0), "ends in #");
    EXPECT_EQ(told.finish.at(0).finish, budget == 9 ? FinishReason::kLength : FinishReason::kStop);
    EXPECT_EQ(told.finish.at(0).stop_reason, "");
  }
}

TEST(Completion, TheLastAllowedTokenMayCompleteAStop) {  // PRO-7
  ChatUnderTest t(answering("abc"));
  CompletionRequest r = text_request("x", 3);
  r.stop = {"bc"};
  Told told = drain(*t.start(r));
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(told.text.at(0), "a");
  r.stop.clear();
  EXPECT_EQ(drain(*t.start(r)).finish.at(0).finish, FinishReason::kLength);
}

TEST(Completion, StopsNeverMatchThePromptOrItsEcho) {
  ChatUnderTest t(answering("fine"));
  CompletionRequest r = text_request("STOP ST", 50);
  r.stop = {"STOP", "STfi"};
  r.echo = true;
  EXPECT_EQ(drain(*t.start(r)).text.at(0), "STOP STfine");
}

TEST(Completion, StopIdsAndSpecialStopStringsAreReported) {
  ChatUnderTest t(answering("abc"));
  CompletionRequest r = text_request("x", 50);
  r.stop_token_ids = {'b'};
  Told told = drain(*t.start(r));
  EXPECT_EQ(told.text.at(0), "a");
  EXPECT_EQ(told.finish.at(0).stop_reason, "98");
  r.stop_token_ids.clear();
  r.ignore_eos = true;
  r.stop = {"<|im_end|>"};
  told = drain(*t.start(r));
  EXPECT_EQ(told.text.at(0), "abc");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(told.finish.at(0).stop_reason, "<|im_end|>");
}

TEST(Completion, MinTokensHoldsBackEosAndStops) {
  ChatUnderTest t(answering("a#"));
  CompletionRequest r = text_request("x", 50);
  r.stop = {"#"};
  r.sampling.min_tokens = 5;
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), "a#...");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kStop);
  EXPECT_EQ(exchange->choice(0).token_ids.size(), 6u);
}

TEST(Completion, ChoicesDifferBySeedAndShareVersionAndPrompt) {
  ChatUnderTest t;
  const VersionId version = t.publish_new();
  CompletionRequest r = text_request("choices", 30);
  r.n = 4;
  r.sampling.temperature = 1;
  r.sampling.seed = 1000;
  const auto exchange = t.start(r);
  EXPECT_EQ(exchange->version(), version);
  EXPECT_EQ(exchange->seed(), 1000u);
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(told.text.at(i),
              fake_text(fake_answer(version, fake_tokens("choices"), 30, 1, 1000 + static_cast<std::uint64_t>(i))));
  }
  EXPECT_NE(told.text.at(0), told.text.at(1));
  EXPECT_EQ(exchange->usage().prompt_tokens, 7);
  EXPECT_EQ(exchange->usage().completion_tokens, 120);
}

TEST(Completion, GreedyChoicesAreComputedOnce) {
  ChatUnderTest t;
  CompletionRequest r = text_request("greedy", 10);
  r.n = 3;
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(told.text.at(i), expected(kBaseVersion, fake_tokens("greedy"), 10));
  EXPECT_EQ(t.engine.stats().generated_tokens, 10);
  EXPECT_EQ(exchange->usage().completion_tokens, 30);
}

TEST(Completion, AChoiceThatEndsEarlyEndsOnceAndTheOthersGoOn) {  // CON-6
  FakeModelOptions options;
  options.not_finite = [](VersionId, const std::vector<TokenId>&, std::size_t) { return false; };
  ChatUnderTest t(options);
  CompletionRequest r = text_request("uneven", 60);
  r.n = 4;
  r.sampling.temperature = 1;
  r.stop = {"v0a", "v0b", "v0c", "v0d", "v0e"};
  const auto exchange = t.start(r);
  const Told told = drain(*exchange);
  ASSERT_EQ(told.finish.size(), 4u);
  std::set<std::size_t> lengths;
  for (int i = 0; i < 4; ++i) {
    const std::string whole = fake_text(fake_answer(kBaseVersion, fake_tokens("uneven"), 60, 1, static_cast<std::uint64_t>(i)));
    std::size_t at = std::string::npos;
    for (const std::string& stop : r.stop) at = std::min(at, whole.find(stop));
    EXPECT_EQ(told.text.at(i), whole.substr(0, at));
    EXPECT_EQ(told.finish.at(i).finish, at == std::string::npos ? FinishReason::kLength : FinishReason::kStop);
    lengths.insert(at);
  }
  EXPECT_GT(lengths.size(), 1u) << "the test needs uneven answers";
}

TEST(Completion, EchoComesFirstAndScoresThePrompt) {  // PRO-8
  ChatUnderTest t;
  CompletionRequest r = text_request("score me", 0);
  r.echo = true;
  r.prompt_logprobs = 2;
  r.want_logprobs = true;
  auto exchange = t.start(r);
  Told told = drain(*exchange);
  EXPECT_EQ(told.text.at(0), "score me");
  EXPECT_EQ(told.finish.at(0).finish, FinishReason::kLength);
  const auto& scores = exchange->prompt_logprobs();
  ASSERT_EQ(scores.size(), 8u);
  EXPECT_EQ(scores[1].piece, "c");
  for (std::size_t i = 1; i < scores.size(); ++i) {
    EXPECT_LT(scores[i].logprob, 0);
    EXPECT_EQ(scores[i].top.size(), 2u);
  }
  r.max_tokens = 1;
  exchange = t.start(r);
  EXPECT_EQ(drain(*exchange).text.at(0), "score me" + expected(kBaseVersion, fake_tokens("score me"), 1));
  EXPECT_EQ(exchange->prompt_logprobs().size(), 8u);
}

TEST(Completion, LogprobsComeForEverySampledToken) {  // SMP-4, PRO-16
  ChatUnderTest t(answering("ab\xC3\xA9"));
  CompletionRequest r = text_request("x", 50);
  r.want_logprobs = true;
  r.sampling.top_logprobs = 3;
  const Told told = drain(*t.start(r));
  const auto& logprobs = told.logprobs.at(0);
  ASSERT_EQ(logprobs.size(), 5u);  // a, b, two bytes, EOS
  EXPECT_EQ(logprobs[0].piece, "a");
  EXPECT_EQ(logprobs[2].piece, "\xC3");
  EXPECT_EQ(logprobs[4].token, kFakeEos);
  for (const TokenLogprob& l : logprobs) {
    EXPECT_NEAR(l.logprob, std::log(0.9), 1e-5);
    EXPECT_EQ(l.top.size(), 3u);
  }
}

TEST(Completion, MaxTokensIsClampedToTheContext) {
  ChatUnderTest t;
  EXPECT_EQ(drain(*t.start(text_request(std::string(500, 'a'), 1 << 30))).text.at(0).size(), 12u);
  EXPECT_EQ(drain(*t.start(text_request(std::string(500, 'a'), -1))).text.at(0).size(), 12u);
}

TEST(Completion, RefusesWhatItCannotServeAndSaysWhy) {
  ChatUnderTest t;
  const std::vector<std::pair<std::string, std::function<void(CompletionRequest&)>>> cases = {
      {"maximum context length is 512 tokens", [](CompletionRequest& r) { r.prompt = std::string(512, 'a'); }},  // PRO-14
      {"prompt is empty", [](CompletionRequest& r) { r.prompt = ""; }},                                         // PRO-15
      {"prompt is empty", [](CompletionRequest& r) { r.prompt.reset(); r.prompt_ids.emplace(); }},              // PRO-15
      {"token id 999", [](CompletionRequest& r) { r.prompt.reset(); r.prompt_ids = std::vector<TokenId>{1, 999}; }},
      {"exactly one of", [](CompletionRequest& r) { r.prompt_ids = std::vector<TokenId>{1}; }},
      {"exactly one of", [](CompletionRequest& r) { r.prompt.reset(); }},
      {"messages is empty", [](CompletionRequest& r) { r.prompt.reset(); r.messages.emplace(); }},
      {"n is 0", [](CompletionRequest& r) { r.n = 0; }},
      {"n is 1000000000", [](CompletionRequest& r) { r.n = 1000000000; }},  // SMP-10
      {"empty string", [](CompletionRequest& r) { r.stop = {""}; }},
      {"more than 256 characters", [](CompletionRequest& r) { r.stop = {std::string(257, 'x')}; }},
      {"at most 16", [](CompletionRequest& r) { r.stop.assign(17, "x"); }},
      {"at most 64", [](CompletionRequest& r) { r.stop_token_ids.assign(65, 1); }},
      {"stop_token_ids holds token id 4000", [](CompletionRequest& r) { r.stop_token_ids = {4000}; }},
      {"top_p", [](CompletionRequest& r) { r.sampling.top_p = 2; }},
  };
  for (const auto& [message, spoil] : cases) {
    CompletionRequest r = text_request("x");
    spoil(r);
    const auto exchange = t.chat.start(r);
    ASSERT_FALSE(exchange.ok()) << message;
    EXPECT_EQ(exchange.code(), Code::kInvalidArgument) << message;
    EXPECT_THAT(exchange.status().message(), HasSubstr(message));
  }
  CompletionRequest pinned = text_request("x");
  pinned.adapter = AdapterChoice::pinned(VersionId(9));
  EXPECT_EQ(t.chat.start(pinned).code(), Code::kNotFound);
  EXPECT_EQ(drain(*t.start(text_request("x"))).finish.at(0).finish, FinishReason::kLength);
  EXPECT_EQ(t.store->counts(SessionId()).records, 1) << "refused requests leave no record";
}

TEST(Completion, CompleteReturnsTheWholeAnswer) {
  ChatUnderTest t(answering("all of it"));
  const Result<Completion> done = t.chat.complete(chat_request("go", 50));
  ASSERT_TRUE(done.ok());
  EXPECT_EQ(done->text, "all of it");
  EXPECT_EQ(done->finish, FinishReason::kStop);
  EXPECT_EQ(done->token_ids.size(), 10u);
  EXPECT_EQ(done->lp_full.size(), 10u);
  EXPECT_TRUE(t.store->record(done->record).has_value());
}

TEST(Completion, ScoreReturnsTheAnswersTokensUnderTheVersion) {
  FakeModelOptions options;
  options.score = [](VersionId version, const std::vector<TokenId>& before, TokenId target) {
    return -static_cast<float>(version.value * 10000 + static_cast<std::int64_t>(before.size()) * 300 + target);
  };
  ChatUnderTest t(options);
  const VersionId version = t.publish_new();
  const std::vector<TokenId> ids = fake_tokens("promptanswer");
  const auto scores = t.chat.score(ids, 6, 0.7f, AdapterChoice::serving());
  ASSERT_TRUE(scores.ok());
  ASSERT_EQ(scores->size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ((*scores)[i], -static_cast<float>(version.value * 10000 + static_cast<std::int64_t>(6 + i) * 300 + ids[6 + i]));
  }
  EXPECT_EQ(t.chat.score(ids, 0, 1, AdapterChoice::serving()).code(), Code::kInvalidArgument);
  EXPECT_EQ(t.chat.score(ids, 13, 1, AdapterChoice::serving()).code(), Code::kInvalidArgument);
  EXPECT_EQ(t.chat.score(ids, 6, 0, AdapterChoice::serving()).code(), Code::kInvalidArgument);
  EXPECT_EQ(t.store->counts(SessionId()).records, 0);
}

}  // namespace
}  // namespace sluice::testing
