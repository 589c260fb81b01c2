// SPDX-License-Identifier: GPL-3.0-or-later
// Completion routes: answers, streams, stop strings, log-probs, receipts, usage (serving.md §1.3-1.6, §2.1).
#include <thread>

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

TEST_F(HttpTest, ChatAnswersWithItsReceipt) {
  start(says("A valve."));
  const Got g = post("/v1/chat/completions", chat("What is it?"), {{"X-Session-Id", "conv1"}});
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["object"], "chat.completion");
  EXPECT_EQ(g.body["model"], "brief");
  EXPECT_EQ(g.body["choices"][0]["message"]["content"], "A valve.");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "stop");
  EXPECT_TRUE(g.body["choices"][0]["stop_reason"].is_null());
  EXPECT_EQ(g.body["usage"]["completion_tokens"], 9);  // eight bytes and the end
  EXPECT_EQ(g.body["system_fingerprint"], "sl-01234567-base");
  EXPECT_EQ(g.body["session_id"], "conv1");
  const std::string id = g.body["sluice"]["record_id"];
  EXPECT_EQ(g.header("X-Sluice-Record-Id"), id);
  EXPECT_EQ(g.header("X-Sluice-Adapter"), "base");
  EXPECT_EQ(g.header("x-reef-agent-record-id"), id);
  EXPECT_EQ(g.body["sluice"]["version"], 0);
  const auto record = store_->record({id});  // committed before the body left
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->completion_text, "A valve.");
  EXPECT_EQ(record->conversation, "conv1");
  EXPECT_EQ(record->group_key, "c:conv1");
  EXPECT_EQ(record->session, control_->session_.get());
  EXPECT_EQ(record->seed, g.body["sluice"]["seed"].get<std::uint64_t>());
}

TEST_F(HttpTest, StreamedEqualsNotStreamed) {
  start();
  for (const std::string path : {"/v1/chat/completions", "/v1/completions"}) {
    const bool is_chat = path.find("chat") != std::string::npos;
    json body = is_chat ? chat("Say it.") : prompt("Say it.");
    body["temperature"] = 1;
    body["seed"] = 7;
    const Got whole = post(path, body);
    ASSERT_EQ(whole.status, 200) << whole.body;
    const Streamed s = stream(path, body);
    ASSERT_EQ(s.got.status, 200);
    EXPECT_EQ(s.got.header("Content-Type"), "text/event-stream");
    EXPECT_EQ(s.got.header("Cache-Control"), "no-cache");
    const json& choice = whole.body["choices"][0];
    EXPECT_EQ(s.text(), is_chat ? choice["message"]["content"] : choice["text"]);
    EXPECT_TRUE(s.done());
    for (const json& c : s.chunks) {
      EXPECT_EQ(c["id"], s.chunks[0]["id"]);
      EXPECT_EQ(c["created"], s.chunks[0]["created"]);
      EXPECT_EQ(c["object"], is_chat ? "chat.completion.chunk" : "text_completion");
      EXPECT_FALSE(c.contains("usage"));
    }
    if (is_chat) {
      EXPECT_EQ(s.chunks[0]["choices"][0]["delta"]["role"], "assistant");
    }
    const json& last = s.chunks.back();
    EXPECT_EQ(last["choices"][0]["finish_reason"], "length");
    EXPECT_EQ(last["sluice"]["record_id"], s.got.header("X-Sluice-Record-Id"));
    EXPECT_TRUE(store_->record({last["sluice"]["record_id"].get<std::string>()}).has_value());
  }
}

TEST_F(HttpTest, UsageOnlyWhenAsked) {
  start(says("ok"));
  json body = chat("x");
  body["stream_options"] = {{"include_usage", true}};
  const Streamed s = stream("/v1/chat/completions", body);
  ASSERT_TRUE(s.done());
  const json& last = s.chunks.back();
  EXPECT_TRUE(last["choices"].empty());
  EXPECT_EQ(last["usage"]["completion_tokens"], 3);
  EXPECT_TRUE(s.chunks[0]["usage"].is_null());
}

TEST_F(HttpTest, StopStringsEndTheTextBeforeThem) {
  start(says("one two three STOPPED"));
  json body = prompt("p");
  body["max_tokens"] = 40;
  body["stop"] = {"STOP", "never"};
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["text"], "one two three ");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(g.body["choices"][0]["stop_reason"], "STOP");
  EXPECT_EQ(stream("/v1/completions", body).text(), "one two three ");
  body["stop"] = "ee STOPPE+";  // a begin of it comes, the end does not: the text is whole
  EXPECT_EQ(stream("/v1/completions", body).text(), "one two three STOPPED");
}

TEST_F(HttpTest, LengthIsSaidAtTheBudget) {
  start(says("0123456789"));
  json body = prompt("p");
  body["max_tokens"] = 4;
  Got g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["text"], "0123");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "length");
  body["max_tokens"] = 0;
  g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["text"], "");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "length");
  body.erase("max_tokens");
  body["max_completion_tokens"] = 3.0;
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], "012");
}

TEST_F(HttpTest, SeveralChoicesAndPrompts) {
  start();
  json body = prompt("p");
  body["n"] = 3;
  body["temperature"] = 1;
  body["seed"] = 5;
  const Got g = post("/v1/completions", body);
  ASSERT_EQ(g.body["choices"].size(), 3u) << g.body;
  EXPECT_EQ(g.body["usage"]["prompt_tokens"], 1);
  EXPECT_EQ(g.body["usage"]["completion_tokens"], 36);
  const Streamed s = stream("/v1/completions", body);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(s.text(i), g.body["choices"][static_cast<std::size_t>(i)]["text"]) << i;
  body["prompt"] = {102, 105};
  EXPECT_EQ(post("/v1/completions", body).status, 200);
}

TEST_F(HttpTest, CON6_AChoiceThatEndsEarlyEndsOnceAndAlone) {
  start();
  json body = prompt("p");
  body["n"] = 4;
  body["temperature"] = 1;
  body["seed"] = 3;
  body["max_tokens"] = 60;
  body["stop"] = {"a", "b", "c"};
  const Got whole = post("/v1/completions", body);
  ASSERT_EQ(whole.status, 200) << whole.body;
  const Streamed s = stream("/v1/completions", body);
  ASSERT_TRUE(s.done());
  std::map<int, int> ends;
  for (const json& chunk : s.chunks) {
    const json& choice = chunk["choices"][0];
    const int index = choice["index"];
    EXPECT_EQ(ends[index], 0) << "choice " << index << " goes on after its end";
    if (!choice["finish_reason"].is_null()) ++ends[index];
  }
  EXPECT_EQ(ends, (std::map<int, int>{{0, 1}, {1, 1}, {2, 1}, {3, 1}}));
  std::set<std::size_t> lengths;
  for (int i = 0; i < 4; ++i) {
    const std::string text = whole.body["choices"][static_cast<std::size_t>(i)]["text"];
    EXPECT_EQ(s.text(i), text) << i;
    lengths.insert(text.size());
  }
  EXPECT_GT(lengths.size(), 2u) << "the seed no longer gives uneven lengths";
}

TEST_F(HttpTest, LogprobsInBothShapes) {
  start(says("hé"));
  json body = prompt("ab");
  body["logprobs"] = 2;
  body["echo"] = true;
  const Got g = post("/v1/completions", body);
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["choices"][0]["text"], "abhé");
  const json& l = g.body["choices"][0]["logprobs"];
  const std::size_t n = l["tokens"].size();
  EXPECT_EQ(n, 6u);  // a b h, two bytes of é, the end
  EXPECT_EQ(l["token_logprobs"].size(), n);
  EXPECT_TRUE(l["token_logprobs"][0].is_null());
  EXPECT_TRUE(l["top_logprobs"][0].is_null());
  EXPECT_TRUE(l["top_logprobs"][2].contains("h"));
  EXPECT_EQ(l["text_offset"], json({0, 1, 2, 3, 4, 4}));
  EXPECT_EQ(l["tokens"][3], "bytes:\\xc3");
  for (std::size_t i = 1; i < n; ++i) EXPECT_LE(l["token_logprobs"][i].get<double>(), 0.0);

  body = chat("ab");
  body["logprobs"] = true;
  body["top_logprobs"] = 1;
  const Got c = post("/v1/chat/completions", body);
  const json& content = c.body["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0]["token"], "h");
  EXPECT_EQ(content[1]["bytes"], json({0xc3}));
  EXPECT_EQ(content[0]["top_logprobs"].size(), 1u);
  std::size_t streamed = 0;
  for (const json& chunk : stream("/v1/chat/completions", body).chunks) {
    const json& part = chunk["choices"][0]["logprobs"];
    if (part.is_object()) streamed += part["content"].size();
  }
  EXPECT_EQ(streamed, 4u);
}

TEST_F(HttpTest, ModelsPinsAndUnknownNames) {
  start();
  const Got list = get("/v1/models");
  EXPECT_EQ(list.body["data"][0]["id"], "brief");
  EXPECT_EQ(list.body["data"][0]["parent"], "fake");
  EXPECT_TRUE(list.body["data"][0].contains("created"));
  EXPECT_EQ(get("//v1//models").status, 200);
  EXPECT_EQ(get("/v1/models/dir/other").body["id"], "dir/other");
  EXPECT_EQ(get("/v1/models/none").code(), "model_not_found");
  json body = chat("x");
  body["model"] = "gpt-4";
  EXPECT_EQ(post("/v1/chat/completions", body).code(), "model_not_found");
  body["model"] = "brief@9";  // not in a state clients may reach
  const Got pinned = post("/v1/chat/completions", body);
  EXPECT_EQ(pinned.status, 404);
  EXPECT_EQ(pinned.code(), "model_not_found");
  body["sluice"] = {{"pin", "brief@8"}};
  EXPECT_EQ(post("/v1/chat/completions", body).param(), "sluice.pin");
  body["model"] = "fake";
  body.erase("sluice");
  const Got base = post("/v1/chat/completions", body);
  EXPECT_EQ(base.status, 200);
  EXPECT_EQ(base.body["model"], "fake");
}

TEST_F(HttpTest, BadFieldsAreNamed) {
  start();
  const std::vector<std::pair<json, std::string>> wrong = {
      {{{"temperature", "1"}}, "temperature"}, {{{"temperature", 2.5}}, "temperature"}, {{{"temperature", true}}, "temperature"},
      {{{"top_p", -0.1}}, "top_p"},            {{{"top_k", 1.5}}, "top_k"},             {{{"n", 0}}, "n"},
      {{{"n", 17}}, "n"},                      {{{"best_of", 2}}, "best_of"},           {{{"max_tokens", -1}}, "max_tokens"},
      {{{"stop", ""}}, "stop"},                {{{"stop", json::array({1})}}, "stop"},  {{{"stream", "yes"}}, "stream"},
      {{{"seed", 1.5}}, "seed"},               {{{"logit_bias", {{"9999", 1}}}}, "logit_bias"},
      {{{"logit_bias", {{"1", 101}}}}, "logit_bias"}, {{{"repetition_penalty", 0}}, "repetition_penalty"},
      {{{"stream_options", {{"include_usage", true}}}}, "stream_options"},
      {{{"stop_token_ids", {300}}}, "stop_token_ids"}, {{{"suffix", "x"}}, "suffix"},
      {{{"response_format", {{"type", "json_object"}}}}, "response_format"}};
  for (const auto& [change, param] : wrong) {
    json body = prompt("p");
    body.update(change);
    const Got g = post("/v1/completions", body);
    EXPECT_EQ(g.status, 400) << change;
    EXPECT_EQ(g.param(), param) << g.body;
    EXPECT_EQ(g.body["error"]["type"], "invalid_request_error");
  }
  for (const json& messages : {json(), json::array(), json("x"), json::array({1}), json::array({{{"content", "no role"}}}),
                               json::array({{{"role", "user"}, {"content", {{{"type", "image_url"}}}}}})}) {
    EXPECT_EQ(post("/v1/chat/completions", {{"messages", messages}}).status, 400) << messages;
  }
  EXPECT_EQ(post("/v1/completions", {{"prompt", json::array()}}).status, 400);
  EXPECT_EQ(post("/v1/completions", {{"prompt", ""}}).status, 400);
  EXPECT_EQ(post("/v1/completions", {{"prompt", {99999}}}).param(), "prompt");
  const json parts = json::array({{{"role", "user"}, {"content", {{{"type", "text"}, {"text", "a"}}}}}, {{"role", "assistant"}, {"content", nullptr}}});
  EXPECT_EQ(post("/v1/chat/completions", {{"messages", parts}, {"max_tokens", 1}}).status, 200);
}

TEST_F(HttpTest, LongPromptIsRefusedBeforeAnyStream) {
  start();
  json body = prompt(std::string(600, 'a'));
  body["stream"] = true;
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(g.status, 400);
  EXPECT_EQ(g.code(), "context_length_exceeded");
  EXPECT_THAT(g.body["error"]["message"].get<std::string>(), HasSubstr("maximum context length is 512 tokens"));
  EXPECT_EQ(g.body["error"]["n_ctx"], 512);
  EXPECT_EQ(g.body["error"]["n_prompt_tokens"], 600);
}

TEST_F(HttpTest, JsonThatIsNone) {
  start();
  const std::vector<std::pair<std::string, std::string>> none = {
      {"{", "column 2"}, {"[]", "must be a JSON object"}, {"", "end of input"}, {"{\"a\":1e400}", "1e400"}, {"nul", "column 4"}};
  for (const auto& [text, named] : none) {
    const Got g = got(client_->post("/v1/completions", text, "application/json"));
    EXPECT_EQ(g.status, 400) << text;
    EXPECT_EQ(g.code(), "invalid_json") << text;
    EXPECT_THAT(g.body["error"]["message"].get<std::string>(), HasSubstr(named)) << text;
  }
  EXPECT_EQ(got(client_->post("/v1/completions", std::string(100, '['), "application/json")).status, 400);
  const Got wrong = got(client_->post("/v1/completions", "{}", "text/plain"));
  EXPECT_EQ(wrong.status, 415);
  EXPECT_EQ(wrong.code(), "unsupported_media_type");
}

TEST_F(HttpTest, FailuresBeforeAndInTheStream) {
  FakeModelOptions options;
  options.not_finite = [](VersionId, const std::vector<TokenId>& p, std::size_t drawn) { return p.back() == 'N' && drawn == 2; };
  start(options);
  const Got g = post("/v1/completions", prompt("N"));
  EXPECT_EQ(g.status, 500);
  EXPECT_EQ(g.code(), "non_finite_logits");
  EXPECT_EQ(g.header("x-should-retry"), "false");
  const Streamed s = stream("/v1/completions", prompt("N"));
  EXPECT_EQ(s.got.status, 200);
  EXPECT_FALSE(s.done());
  EXPECT_EQ(s.chunks.back()["error"]["code"], "non_finite_logits");
  EXPECT_EQ(post("/v1/completions", prompt("M")).status, 200);  // others are well
}

TEST_F(HttpTest, PhasesAnswer503) {
  start();
  EXPECT_EQ(get("/health").body["status"], "ok");
  control_->phase_ = ServingPhase::kLoading;
  const Got g = post("/v1/completions", prompt("p"));
  EXPECT_EQ(g.status, 503);
  EXPECT_EQ(g.code(), "model_loading");
  EXPECT_FALSE(g.header("Retry-After").empty());
  EXPECT_EQ(get("/health").body["status"], "loading");
  EXPECT_EQ(get("/healthz").status, 503);
  control_->phase_ = ServingPhase::kReady;
  EXPECT_EQ(get("/healthz").body["ok"], true);
}

}  // namespace
}  // namespace sluice
