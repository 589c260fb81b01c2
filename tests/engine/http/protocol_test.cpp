// SPDX-License-Identifier: GPL-3.0-or-later
// The rows PRO-1 to PRO-16 of serving.md §4.6, streams (§1.5), errors (§1.8) and receipts (§2.1), over a real socket.
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class ProtocolTest : public HttpTest {};

TEST_F(ProtocolTest, PRO1_NoPartOfAStopStringIsShown) {
  start(says("answer<END>rest"));
  for (const std::string stop : {"<END>", "r<E", "swer<END>re", "<"}) {
    json body = prompt("p");
    body["max_tokens"] = 40;
    body["stop"] = stop;
    const std::string text = std::string("answer<END>rest").substr(0, std::string("answer<END>rest").find(stop));
    EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], text);
    std::string shown;
    for (const json& chunk : stream("/v1/completions", body).chunks) {
      shown += chunk["choices"][0]["text"];
      EXPECT_EQ(text.rfind(shown, 0), 0u) << "shown and taken back: " << shown;
    }
    EXPECT_EQ(shown, text);
  }
}

TEST_F(ProtocolTest, PRO2_TheBeginOfAStopStringIsSentAtTheEnd) {
  start(says("text<EN"));
  json body = prompt("p");
  body["stop"] = "<END>";
  for (const int budget : {40, 7, 6}) {  // EOS, exactly the budget, inside the begin
    body["max_tokens"] = budget;
    const std::string text = std::string("text<EN").substr(0, static_cast<std::size_t>(budget));
    EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], text);
    EXPECT_EQ(stream("/v1/completions", body).text(), text);
  }
}

TEST_F(ProtocolTest, PRO3_LateErrorsAreDataAndNoDoneFollows) {
  FakeModelOptions options;
  options.not_finite = [](VersionId, const std::vector<TokenId>&, std::size_t drawn) { return drawn == 3; };
  start(options);
  json body = chat("x");
  body["stream"] = true;
  const std::string answer = post_raw("/v1/chat/completions", body);
  EXPECT_THAT(answer, HasSubstr("HTTP/1.1 200"));
  EXPECT_THAT(answer, HasSubstr("data: {\"error\":{"));
  EXPECT_THAT(answer, HasSubstr("non_finite_logits"));
  EXPECT_THAT(answer, Not(HasSubstr("[DONE]")));
  EXPECT_THAT(answer, Not(HasSubstr("error: ")));
  const json error = stream("/v1/chat/completions", body).chunks.back()["error"];
  for (const char* key : {"message", "type", "param", "code"}) EXPECT_TRUE(error.contains(key)) << key;
}

TEST_F(ProtocolTest, PRO4_EventsAreOneDataLineAndABlankLine) {
  start(says("line one\nline two\r\n\xE2\x80\xA8 three"));
  json body = chat("x");
  body["max_tokens"] = 60;
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", true}};
  const std::string answer = post_raw("/v1/chat/completions", body);
  // Chunked framing aside: every event the server wrote is one line and a blank one.
  std::string text;
  std::size_t at = answer.find("\r\n\r\n") + 4;
  while (at < answer.size()) {
    const std::size_t size = std::stoul(answer.substr(at), nullptr, 16);
    at = answer.find("\r\n", at) + 2;
    text += answer.substr(at, size);
    at += size + 2;
  }
  ASSERT_THAT(text, EndsWith("data: [DONE]\n\n"));
  std::size_t events = 0;
  for (std::size_t from = 0; from < text.size(); ++events) {
    const std::size_t end = text.find("\n\n", from);
    ASSERT_NE(end, std::string::npos);
    const std::string event = text.substr(from, end - from);
    EXPECT_EQ(event.rfind("data: ", 0), 0u) << event;
    EXPECT_EQ(event.find('\n'), std::string::npos) << event;
    EXPECT_EQ(event.find('\r'), std::string::npos) << event;
    from = end + 2;
  }
  EXPECT_GT(events, 20u);
}

TEST_F(ProtocolTest, PRO5_PRO6_UsageExactlyAsAsked) {
  start(says("ok"));
  for (const std::string path : {"/v1/chat/completions", "/v1/completions"}) {
    json body = path == "/v1/completions" ? prompt("x") : chat("x");
    body["stream_options"] = {{"include_usage", true}};
    const Streamed with = stream(path, body);
    ASSERT_TRUE(with.done());
    EXPECT_EQ(with.chunks.back()["choices"], json::array());
    EXPECT_EQ(with.chunks.back()["usage"]["completion_tokens"], 3);
    EXPECT_EQ(with.chunks.back()["usage"]["total_tokens"].get<int>(), with.chunks.back()["usage"]["prompt_tokens"].get<int>() + 3);
    EXPECT_TRUE(with.chunks.back()["usage"]["prompt_tokens_details"].contains("cached_tokens"));
    for (std::size_t i = 0; i + 1 < with.chunks.size(); ++i) {
      EXPECT_TRUE(with.chunks[i].contains("usage") && with.chunks[i]["usage"].is_null());
      EXPECT_FALSE(with.chunks[i]["choices"].empty());
    }
    for (const json& options : {json({{"include_usage", false}}), json(nullptr), json::object()}) {
      body["stream_options"] = options;
      for (const json& chunk : stream(path, body).chunks) {
        EXPECT_FALSE(chunk.contains("usage"));
        EXPECT_FALSE(chunk["choices"].empty());
      }
    }
  }
  json body = chat("x");
  body["stream_options"] = {{"include_usage", true}};
  EXPECT_EQ(post("/v1/chat/completions", body).param(), "stream_options");
  body["stream"] = true;
  body["stream_options"] = {{"include_usage", 1}};
  EXPECT_EQ(post("/v1/chat/completions", body).param(), "stream_options.include_usage");
}

TEST_F(ProtocolTest, PRO7_BudgetAndContextEndAreLength) {
  start();
  json body = prompt("p");
  body["max_tokens"] = 3;
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["finish_reason"], "length");
  json to_end = chat(std::string(480, 'a'));
  to_end.erase("max_tokens");
  const Got g = post("/v1/chat/completions", to_end);
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(g.body["usage"]["total_tokens"], 512);
}

TEST_F(ProtocolTest, PRO7_AnEndOnTheLastAllowedTokenIsStop) {
  start(says("abc"));
  json body = prompt("p");
  body["max_tokens"] = 4;  // a b c and the end
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["finish_reason"], "stop");
  body["max_tokens"] = 3;
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["finish_reason"], "length");
  body["stop"] = "bc";
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(g.body["choices"][0]["text"], "a");
}

TEST_F(ProtocolTest, PRO8_ScoringInTheFormOfLmEval) {
  start();
  const json ids = json::array({testing::fake_tokens("context then answer"), testing::fake_tokens("another")});
  for (const int budget : {0, 1}) {
    const Got g = post("/v1/completions", {{"model", "brief"}, {"prompt", ids}, {"temperature", 0}, {"max_tokens", budget},
                                           {"logprobs", 1}, {"echo", true}, {"seed", 1234}});
    ASSERT_EQ(g.status, 200) << g.body;
    ASSERT_EQ(g.body["choices"].size(), 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const json& choice = g.body["choices"][i];
      const json& l = choice["logprobs"];
      const std::size_t n = ids[i].size() + static_cast<std::size_t>(budget);
      for (const char* list : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) EXPECT_EQ(l[list].size(), n) << list;
      EXPECT_TRUE(l["token_logprobs"][0].is_null());
      EXPECT_TRUE(l["top_logprobs"][0].is_null());
      for (std::size_t k = 1; k < n; ++k) {
        EXPECT_LT(l["token_logprobs"][k].get<double>(), 0);
        double best = -1e9;
        for (const auto& [token, value] : l["top_logprobs"][k].items()) best = std::max(best, value.get<double>());
        EXPECT_GE(best, l["token_logprobs"][k].get<double>());
        EXPECT_EQ(l["text_offset"][k], k);
      }
      EXPECT_EQ(choice["finish_reason"], "length");
      EXPECT_EQ(choice["text"].get<std::string>().size(), n);
    }
    EXPECT_EQ(g.body["usage"]["completion_tokens"], 2 * budget);
    EXPECT_NE(g.body["choices"][0]["logprobs"]["tokens"], g.body["choices"][1]["logprobs"]["tokens"]);
  }
}

TEST_F(ProtocolTest, PRO11_OnlyMaxCompletionTokens) {
  start();
  json body = chat("x");
  body.erase("max_tokens");
  body["max_completion_tokens"] = 5;
  EXPECT_EQ(post("/v1/chat/completions", body).body["usage"]["completion_tokens"], 5);
  body["max_tokens"] = 9;  // the newer name wins
  EXPECT_EQ(post("/v1/chat/completions", body).body["usage"]["completion_tokens"], 5);
  body.erase("max_completion_tokens");
  EXPECT_EQ(post("/v1/chat/completions", body).body["usage"]["completion_tokens"], 9);
  json text = prompt("x");
  text.erase("max_tokens");
  EXPECT_EQ(post("/v1/completions", text).body["usage"]["completion_tokens"], 16);
}

TEST_F(ProtocolTest, PRO12_TheModelListHasWhatClientsRead) {
  start();
  for (const char* path : {"/v1/models", "//v1/models", "/v1//models"}) {
    const Got g = get(path);
    ASSERT_EQ(g.status, 200) << path;
    EXPECT_EQ(g.body["object"], "list");
    for (const json& model : g.body["data"]) {
      EXPECT_EQ(model["object"], "model");
      EXPECT_TRUE(model["created"].is_number_integer());
      EXPECT_TRUE(model["owned_by"].is_string());
    }
  }
}

TEST_F(ProtocolTest, PRO13_PRO14_OverLongPromptsAre400BeforeAnyStream) {
  start();
  for (const bool streamed : {true, false}) {
    for (const std::string path : {"/v1/completions", "/v1/chat/completions"}) {
      json body = path == "/v1/completions" ? prompt(std::string(512, 'a')) : chat(std::string(600, 'a'));
      body["stream"] = streamed;
      const Got g = post(path, body);
      EXPECT_EQ(g.status, 400);
      EXPECT_EQ(g.code(), "context_length_exceeded");
      EXPECT_THAT(g.body["error"]["message"].get<std::string>(), HasSubstr("maximum context length is 512 tokens"));
      EXPECT_EQ(g.body["error"]["n_ctx"], 512);
      const int n = g.body["error"]["n_prompt_tokens"];
      EXPECT_GE(n, 512);
      EXPECT_THAT(g.body["error"]["message"].get<std::string>(), HasSubstr(std::to_string(n) + " tokens"));
      EXPECT_EQ(g.param(), path == "/v1/completions" ? "prompt" : "messages");
    }
  }
  json list = prompt("");
  list["prompt"] = {"short", std::string(512, 'a')};  // one of several
  EXPECT_EQ(post("/v1/completions", list).code(), "context_length_exceeded");
  EXPECT_TRUE(store_->records({}, 0, 10).empty());
}

TEST_F(ProtocolTest, PRO16_ChatLogprobsAreInTheirChunks) {
  start(says("h\xC3\xA9y"));
  json body = chat("x");
  body["logprobs"] = true;
  body["top_logprobs"] = 2;
  const json whole = post("/v1/chat/completions", body).body["choices"][0]["logprobs"]["content"];
  json joined = json::array();
  for (const json& chunk : stream("/v1/chat/completions", body).chunks) {
    const json& choice = chunk["choices"][0];
    if (!choice["delta"].value("content", "").empty()) {
      ASSERT_TRUE(choice["logprobs"].is_object()) << chunk;
    }
    if (!choice["logprobs"].is_object()) continue;
    joined.insert(joined.end(), choice["logprobs"]["content"].begin(), choice["logprobs"]["content"].end());
  }
  EXPECT_EQ(joined, whole);
  EXPECT_EQ(joined.size(), 5u);  // h, two bytes, y, the end
}

TEST_F(ProtocolTest, AStreamOpensWithARoleAndEndsWithAnEmptyDelta) {
  start(says("ab"));
  for (const int budget : {0, 5}) {
    json body = chat("x");
    body["max_tokens"] = budget;
    const Streamed s = stream("/v1/chat/completions", body);
    ASSERT_GE(s.chunks.size(), 2u);
    EXPECT_EQ(s.chunks[0]["choices"][0]["delta"]["role"], "assistant");
    const json& last = s.chunks.back()["choices"][0];
    EXPECT_EQ(last["delta"], json::object());
    EXPECT_EQ(last["finish_reason"], budget == 0 ? "length" : "stop");
    EXPECT_TRUE(s.chunks.back().contains("sluice"));
    for (std::size_t i = 0; i + 1 < s.chunks.size(); ++i) {
      EXPECT_TRUE(s.chunks[i]["choices"][0]["finish_reason"].is_null());
      if (i > 0) {
        EXPECT_FALSE(s.chunks[i]["choices"][0]["delta"].contains("role"));
        EXPECT_NE(s.chunks[i]["choices"][0]["delta"]["content"], "") << "no chunk for a token without text";
      }
    }
    EXPECT_EQ(s.got.header("X-Accel-Buffering"), "no");
  }
}

TEST_F(ProtocolTest, EveryFinishChunkCarriesTheReceipt) {
  start();
  json body = chat("x");
  body["n"] = 3;
  body["temperature"] = 1;
  body["seed"] = 12;
  const Streamed s = stream("/v1/chat/completions", body);
  std::set<int> ended;
  for (const json& chunk : s.chunks) {
    const json& choice = chunk["choices"][0];
    if (choice["finish_reason"].is_null()) continue;
    EXPECT_TRUE(ended.insert(choice["index"].get<int>()).second);
    EXPECT_EQ(chunk["sluice"]["record_id"], s.got.header("X-Sluice-Record-Id"));
    EXPECT_EQ(chunk["sluice"]["adapter"], "base");
    EXPECT_EQ(chunk["sluice"]["version"], 0);
    EXPECT_EQ(chunk["sluice"]["session"], control_->session_.get().value);
    EXPECT_EQ(chunk["sluice"]["seed"], 12);
  }
  EXPECT_EQ(ended, (std::set<int>{0, 1, 2}));
}

TEST_F(ProtocolTest, ReefClientsHearTheRecordOnceMore) {
  start(says("ok"));
  json body = chat("x");
  EXPECT_THAT(stream("/v1/chat/completions", body).data, Not(::testing::Contains(HasSubstr("reef"))));
  body["stream_options"] = {{"include_usage", true}};
  const Streamed s = stream("/v1/chat/completions", body, {{"x-reef-scenario", "support"}});
  ASSERT_TRUE(s.done());
  EXPECT_EQ(s.chunks.back()["choices"], json::array());
  EXPECT_EQ(s.chunks.back()["reef"]["agent_record_id"], s.got.header("x-reef-agent-record-id"));
}

// Eight seconds pass at every look.
class HastyClock final : public Clock {
 public:
  std::int64_t wall_us() const override { return 1'700'000'000'000'000; }
  SteadyTime steady() const override { return SteadyTime() + std::chrono::seconds(8) * looks_++; }

 private:
  mutable std::atomic<int> looks_{0};
};

TEST_F(ProtocolTest, SilentStreamsAreKeptAlive) {
  HastyClock clock;
  HttpServerOptions options;
  options.clock = &clock;
  start(gated(), options);
  json body = chat("x");
  body["stream"] = true;
  const int fd = open_post("/v1/chat/completions", body, "Connection: close\r\n");
  std::string answer = read_until(fd, ": keep-alive\n\n");
  EXPECT_THAT(answer, HasSubstr(": keep-alive\n\n"));
  EXPECT_THAT(answer, Not(HasSubstr("data:")));
  gate_.open();
  answer += read_all(fd);
  ::close(fd);
  EXPECT_THAT(answer, HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(answer, Not(HasSubstr("ping")));
  server_.reset();  // before the clock goes
}

TEST_F(ProtocolTest, ErrorsBeforeTheFirstByteHaveTheirStatus) {
  start(says("ok"));
  control_->phase_ = ServingPhase::kReady;
  for (const ServingPhase phase : {ServingPhase::kLoading, ServingPhase::kPaused, ServingPhase::kAsleep, ServingPhase::kStopping}) {
    control_->phase_ = phase;
    json body = chat("x");
    body["stream"] = true;  // before the first byte: a real status
    const Got g = post("/v1/chat/completions", body);
    EXPECT_EQ(g.status, 503);
    EXPECT_EQ(g.body["error"]["type"], "unavailable_error");
    EXPECT_FALSE(g.header("Retry-After").empty());
  }
}

}  // namespace
}  // namespace sluice
