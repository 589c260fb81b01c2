// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine answers, and that bad requests, failed steps and bad logits hit no one else.
#include <gmock/gmock.h>

#include <limits>
#include <mutex>
#include <stdexcept>

#include "engine/serve/serve_fixture.h"
#include "support/test_store.h"

namespace sluice::testing {
namespace {

using ::testing::HasSubstr;

TEST(Engine, AnswersWhatTheModelDraws) {
  EngineUnderTest t;
  ResponseHandle handle = t.submit(request("Hello", 15));
  EXPECT_EQ(t.started(handle), kBaseVersion);
  const Answer answer = drain(handle);
  EXPECT_EQ(answer.ids, fake_answer(kBaseVersion, fake_tokens("Hello"), 15));
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_TRUE(answer.error.ok());
  EXPECT_FALSE(handle->next(far()).has_value()) << "nothing follows the end";
  EXPECT_GE(answer.timings.prefill_us, 0);
}

TEST(Engine, KeepsTheStopTokenAsTheLastOne) {
  FakeModelOptions options;
  options.answer = [](VersionId, const std::vector<TokenId>&) { return "done"; };
  EngineUnderTest t(options);
  Request r = request("x", 50);
  r.stop_ids = {kFakeEos};
  Answer answer = t.ask(r);
  EXPECT_EQ(answer.text(), "done");
  EXPECT_EQ(answer.ids.back(), kFakeEos);
  EXPECT_EQ(answer.finish, FinishReason::kStop);

  r.max_tokens = 5;  // the stop token is the last one allowed: still a stop
  EXPECT_EQ(t.ask(r).finish, FinishReason::kStop);
  r.ignore_stop_ids = true;
  r.max_tokens = 8;
  answer = t.ask(r);
  EXPECT_EQ(answer.ids.size(), 8u);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
}

TEST(Engine, RefusesBadRequestsByNameAndServesOn) {
  EngineUnderTest t;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::pair<std::string, std::function<void(Request&)>>> cases = {
      {"prompt is empty", [](Request& r) { r.prompt.clear(); }},
      {"maximum context length is 512 tokens", [](Request& r) { r.prompt.assign(512, 65); }},
      {"prompt holds token id 259", [](Request& r) { r.prompt.push_back(kFakeVocab); }},
      {"prompt holds token id -1", [](Request& r) { r.prompt.push_back(-1); }},
      {"temperature", [](Request& r) { r.sampling.temperature = 2.5f; }},
      {"temperature", [nan](Request& r) { r.sampling.temperature = nan; }},
      {"top_p is -0.1", [](Request& r) { r.sampling.top_p = -0.1f; }},       // SMP-2
      {"top_p is 2", [](Request& r) { r.sampling.top_p = 2; }},              // SMP-2
      {"min_p", [](Request& r) { r.sampling.min_p = 1.5f; }},
      {"presence_penalty", [](Request& r) { r.sampling.presence_penalty = 3; }},
      {"frequency_penalty", [](Request& r) { r.sampling.frequency_penalty = -3; }},
      {"repetition_penalty", [](Request& r) { r.sampling.repetition_penalty = 0; }},
      {"logit_bias holds token id -1", [](Request& r) { r.sampling.logit_bias = {{-1, 1.0f}}; }},          // SMP-5
      {"logit_bias holds token id 259", [](Request& r) { r.sampling.logit_bias = {{kFakeVocab, 1.0f}}; }},  // SMP-5
      {"logit_bias is 101", [](Request& r) { r.sampling.logit_bias = {{1, 101.0f}}; }},
      {"stop_token_ids holds", [](Request& r) { r.stop_ids = {400}; }},
      {"max_tokens is negative", [](Request& r) { r.max_tokens = -1; }},
      {"top_logprobs is 21", [](Request& r) { r.sampling.top_logprobs = 21; }},  // SMP-11
      {"temperature to score at", [](Request& r) { r.score_temperature = 0; }},
  };
  for (const auto& [message, spoil] : cases) {
    Request r = request("Hello");
    spoil(r);
    const Result<ResponseHandle> handle = t.engine->submit(r);
    ASSERT_FALSE(handle.ok()) << message;
    EXPECT_EQ(handle.code(), Code::kInvalidArgument);
    EXPECT_THAT(handle.status().message(), HasSubstr(message));
  }
  EXPECT_EQ(t.ask(request("Hello")).finish, FinishReason::kLength);
}

TEST(Engine, ClampsToTheSpaceLeftInTheContext) {
  EngineUnderTest t;
  Request r = request(std::string(500, 'a'), 1000000000);  // SMP-10: nothing is allocated for tokens never made
  const Answer answer = t.ask(r);
  EXPECT_EQ(answer.ids.size(), 12u);
  EXPECT_EQ(answer.finish, FinishReason::kLength);
  EXPECT_EQ(t.ask(request("abc", 0)).ids.size(), 0u);
}

TEST(Engine, LRA11_EachAnswerIsThatOfItsPromptAloneWhateverRunsBeside) {
  EngineOptions options;
  options.max_running = 7;
  options.prefill_chunk = 5;  // prompts come in many pieces, of several sequences in one step
  EngineUnderTest t({}, options);
  for (int v = 1; v <= 3; ++v) ASSERT_TRUE(t.slots.prepare(VersionId(v), "").ok());
  t.slots.set_pinnable({VersionId(1), VersionId(2), VersionId(3)});
  std::vector<ResponseHandle> handles;
  std::vector<Request> requests;
  for (int i = 0; i < 40; ++i) {
    Request r = request(std::string(static_cast<std::size_t>(1 + i % 13), static_cast<char>('A' + i % 26)), 5 + i % 9);
    r.adapter = AdapterChoice::pinned(VersionId(i % 4));  // base rows beside adapter rows
    r.sampling.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    r.sampling.seed = static_cast<std::uint64_t>(i);
    requests.push_back(r);
    handles.push_back(t.submit(std::move(r)));
  }
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const Request& r = requests[i];
    const VersionId version = t.started(handles[i]);
    EXPECT_EQ(version, r.adapter.version());
    EXPECT_EQ(drain(handles[i]).ids,
              fake_answer(version, r.prompt, r.max_tokens, r.sampling.temperature, r.sampling.seed)) << i;
  }
}

TEST(Engine, SMP6_SameSeedSameTextOnEverySlot) {
  EngineUnderTest t;
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < 16; ++i) {
    Request r = request("seeded", 30);
    r.sampling.temperature = 1;
    r.sampling.seed = 99;
    handles.push_back(t.submit(std::move(r)));
  }
  const std::vector<TokenId> first = drain(handles[0]).ids;
  for (std::size_t i = 1; i < handles.size(); ++i) EXPECT_EQ(drain(handles[i]).ids, first);
  Request other = request("seeded", 30);
  other.sampling.temperature = 1;
  other.sampling.seed = 100;
  EXPECT_NE(t.ask(other).ids, first);
}

TEST(Engine, FailedStepFailsItsSequencesAndTheNextRequestsAreServed) {
  for (const bool throws : {false, true}) {
    StepGate gate(1);
    FakeModelOptions options;
    options.on_step = [&gate, throws](const FakeStep& step) -> Status {
      (void)gate.pass();
      if (step.number != 2) return {};
      if (throws) throw std::runtime_error("broken tensor");
      return internal_error("broken tensor");
    };
    EngineUnderTest t(options);
    ResponseHandle a = t.submit(request("first"));
    gate.wait_arrived(1);
    ResponseHandle b = t.submit(request("second"));
    gate.wait_arrived(2);
    gate.open();
    const Answer answer = drain(a);
    EXPECT_EQ(answer.finish, FinishReason::kError);
    EXPECT_EQ(answer.error.code(), Code::kInternal);
    EXPECT_THAT(answer.error.message(), HasSubstr("broken tensor"));
    EXPECT_EQ(answer.ids.size(), 1u) << "what was drawn before the failure was told";
    const Answer beside = drain(b);  // in the failed step or after it, as the two threads met
    if (beside.finish == FinishReason::kLength) {
      EXPECT_EQ(beside.ids, fake_answer(kBaseVersion, fake_tokens("second"), 12));
    }
    EXPECT_EQ(t.ask(request("third")).ids, fake_answer(kBaseVersion, fake_tokens("third"), 12));
    EXPECT_EQ(t.engine->stats().kv.tokens_used, 0);
  }
}

TEST(Engine, CFG7_NonFiniteLogitsFailTheirRequestOnly) {
  FakeModelOptions options;
  options.not_finite = [](VersionId, const std::vector<TokenId>& prompt, std::size_t drawn) { return prompt[0] == '!' && drawn == 3; };
  EngineUnderTest t(options);
  ResponseHandle good = t.submit(request("fine", 20));
  ResponseHandle bad = t.submit(request("!bad", 20));
  const Answer failed = drain(bad);
  EXPECT_EQ(failed.finish, FinishReason::kError);
  EXPECT_EQ(failed.error.code(), Code::kInternal);
  EXPECT_EQ(failed.error.reason(), Reason::kNotFinite);
  EXPECT_EQ(failed.ids.size(), 3u);
  EXPECT_EQ(drain(good).ids, fake_answer(kBaseVersion, fake_tokens("fine"), 20));
}

class NoContextModel final : public Model {
 public:
  const ModelInfo& info() const override { return inner_->info(); }
  std::unique_ptr<ModelContext> make_context(const ContextOptions&) const override { throw std::runtime_error("no memory"); }
  const AdapterLoader& adapter_loader() const override { return inner_->adapter_loader(); }

 private:
  std::shared_ptr<const FakeModel> inner_ = FakeModel::make();
};

TEST(Engine, WithoutAContextRequestsFailInsteadOfWaiting) {
  const auto model = std::make_shared<NoContextModel>();
  AdapterSlots slots(model->adapter_loader(), [](VersionId) { return std::string(); });
  Log log;
  Engine engine(model, slots, {}, log);
  Result<ResponseHandle> handle = engine.submit(request("x"));
  ASSERT_TRUE(handle.ok());
  const Result<StartInfo> start = (*handle)->wait_started(far());
  ASSERT_FALSE(start.ok());
  EXPECT_THAT(start.status().message(), HasSubstr("no memory"));
}

TEST(Engine, ScoresThePromptUnderTheChosenVersion) {
  FakeModelOptions options;
  options.score = [](VersionId version, const std::vector<TokenId>& before, TokenId target) {
    return static_cast<float>(version.value * 100000 + static_cast<std::int64_t>(before.size()) * 1000 + target);
  };
  EngineOptions engine_options;
  engine_options.prefill_chunk = 3;
  EngineUnderTest t(options, engine_options);
  ASSERT_TRUE(t.slots.prepare(VersionId(2), "").ok());
  t.slots.set_pinnable({VersionId(2)});
  const std::string prompt = "a prompt long enough to be cached as a prefix";
  Request r = request(prompt, 0);
  r.score_prompt = true;
  r.score_top = 2;
  r.adapter = AdapterChoice::pinned(VersionId(2));
  for (int round = 0; round < 2; ++round) {  // the second finds the prefix cached, and must score all of it again
    ResponseHandle handle = t.submit(r);
    const Result<StartInfo> start = handle->wait_started(far());
    ASSERT_TRUE(start.ok());
    ASSERT_EQ(start->prompt_scores.size(), prompt.size() - 1);
    ASSERT_EQ(start->prompt_tops.size(), prompt.size() - 1);
    for (std::size_t i = 0; i + 1 < prompt.size(); ++i) {
      EXPECT_EQ(start->prompt_scores[i], static_cast<float>(200000 + (i + 1) * 1000 + static_cast<unsigned char>(prompt[i + 1])));
      EXPECT_EQ(start->prompt_tops[i].size(), 2u);
    }
    const Answer answer = drain(handle);
    EXPECT_EQ(answer.finish, FinishReason::kLength);
    EXPECT_TRUE(answer.ids.empty());
  }
  r.max_tokens = 4;  // scores, then an answer
  ResponseHandle handle = t.submit(r);
  EXPECT_EQ(t.started(handle), VersionId(2));
  EXPECT_EQ(drain(handle).ids, fake_answer(VersionId(2), fake_tokens(prompt), 4));
}

TEST(Engine, LRA2_CachedPrefixesNeverCrossVersions) {
  EngineUnderTest t;
  ASSERT_TRUE(t.slots.prepare(VersionId(1), "").ok());
  t.slots.set_pinnable({VersionId(1)});
  const std::string prompt(40, 'p');
  const auto cached = [&](VersionId version) {
    Request r = request(prompt, 3);
    r.adapter = AdapterChoice::pinned(version);
    ResponseHandle handle = t.submit(std::move(r));
    const Result<StartInfo> start = handle->wait_started(far());
    EXPECT_EQ(drain(handle).ids, fake_answer(version, fake_tokens(prompt), 3));
    return start.ok() ? start->cached_tokens : -1;
  };
  EXPECT_EQ(cached(kBaseVersion), 0);
  EXPECT_EQ(cached(kBaseVersion), 32);
  EXPECT_EQ(cached(VersionId(1)), 0) << "another version's cache must not be used";
  EXPECT_EQ(cached(VersionId(1)), 32);
  EXPECT_EQ(t.engine->stats().cached_tokens, 64);
}

TEST(Engine, LRA1_AfterAPromotionAPromptIsAnsweredAsByAColdEngine) {
  EngineUnderTest t;
  TestStore store;
  const std::string prompt(80, 'p');
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
    for (const int cached : {0, 64}) {  // cold, then warm
      ResponseHandle handle = t.submit(request(prompt, 6));
      const Result<StartInfo> start = handle->wait_started(far());
      ASSERT_TRUE(start.ok());
      EXPECT_EQ(start->version, t.slots.serving());
      EXPECT_EQ(start->cached_tokens, cached);
      EXPECT_EQ(drain(handle).ids, fake_answer(start->version, fake_tokens(prompt), 6));
    }
  }
}

TEST(Engine, CountsWhatItDid) {
  EngineUnderTest t;
  (void)t.ask(request("12345", 7));
  (void)t.ask(request("12345", 5));
  const GeneratorStats stats = t.engine->stats();
  EXPECT_EQ(stats.prompt_tokens, 10);
  EXPECT_EQ(stats.generated_tokens, 12);
  EXPECT_GT(stats.tokens_per_s, 0);
  EXPECT_EQ(stats.running, 0);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_TRUE(stats.running_by_version.empty());
  EXPECT_EQ(stats.kv.tokens_used, 0);
  EXPECT_EQ(stats.kv.tokens_capacity, ContextOptions().kv_tokens);
}

}  // namespace
}  // namespace sluice::testing
