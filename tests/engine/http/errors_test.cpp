// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of serving.md §1.8: each code has its status, type and shape, and is counted.
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class ErrorsTest : public HttpTest {
 protected:
  // `param` "" = null.
  static void expect_error(const Got& g, int status, const std::string& type, const std::string& code, const std::string& param = "") {
    EXPECT_EQ(g.status, status) << g.body;
    ASSERT_TRUE(g.body.is_object() && g.body.contains("error")) << g.body;
    const json& error = g.body["error"];
    for (const char* key : {"message", "type", "param", "code"}) EXPECT_TRUE(error.contains(key)) << key;
    EXPECT_EQ(error["type"], type);
    EXPECT_EQ(error["code"], code);
    EXPECT_EQ(error["param"], param.empty() ? json() : json(param)) << g.body;
    EXPECT_FALSE(error["message"].get<std::string>().empty());
    // Clients repeat these by themselves, which can't help.
    EXPECT_EQ(g.header("x-should-retry"), status == 409 || status == 500 ? "false" : "") << code;
    EXPECT_EQ(!g.header("Retry-After").empty(), !g.header("retry-after-ms").empty()) << code;
    if (status == 429 || status == 503) {
      EXPECT_GE(std::stoi(g.header("Retry-After")), 1) << code;
      EXPECT_LE(std::stoi(g.header("Retry-After")), 60) << code;
    }
  }
  Got post_text(const std::string& path, const std::string& text, const std::string& type = "application/json") {
    return got(client_->post(path, text, type));
  }
  // DELETE, which the client does not speak.
  Got remove(const std::string& path) {
    const std::string answer = del(path);
    Got out;
    out.status = std::stoi(answer.substr(9, 3));
    for (std::size_t at = answer.find("\r\n") + 2, end; (end = answer.find("\r\n", at)) != at; at = end + 2) {
      const std::size_t colon = answer.find(": ", at);
      out.response.headers.emplace_back(answer.substr(at, colon - at), answer.substr(colon + 2, end - colon - 2));
    }
    out.body = json::parse(answer.substr(answer.find("\r\n\r\n") + 4), nullptr, false);
    return out;
  }
  Got label(const std::string& record, const char* kind, const char* key = "") {
    json body = {{"record_id", record}, {"kind", kind}};
    if (*key != 0) body["key"] = key;
    return post("/sluice/v1/feedback", body);
  }
  std::string answered() { return post("/v1/completions", prompt("p")).body["sluice"]["record_id"]; }
  std::atomic<bool> fail_{false};
  void expect_counted(const std::string& code) {
    EXPECT_THAT(get("/metrics").response.body, HasSubstr("sluice_errors_total{code=\"" + code + "\"}"));
  }
};

TEST_F(ErrorsTest, BadRequests) {
  start();
  const char* bad = "invalid_request_error";
  std::string deep;
  for (int i = 0; i < 65; ++i) deep += "[";
  for (const std::string& text : {std::string("{"), std::string("[]"), std::string("\"a\""), std::string(), std::string("{\"prompt\":1}x"),
                                  "{\"prompt\":" + deep, "{\"a\":\"\xff\"}" + std::string("]")}) {
    expect_error(post_text("/v1/completions", text), 400, bad, "invalid_json");
  }
  expect_error(post_text("/v1/completions", "{\"prompt\":\"a\",\"temperature\":1e400}"), 400, bad, "invalid_json");
  json body = prompt("p");
  body["temperature"] = "hot";
  const Got value = post("/v1/completions", body);
  expect_error(value, 400, bad, "invalid_value", "temperature");
  body = chat("x");
  body["response_format"] = {{"type", "json_object"}};
  expect_error(post("/v1/chat/completions", body), 400, bad, "unsupported_parameter", "response_format");
  const Got length = post("/v1/completions", prompt(std::string(600, 'a')));
  expect_error(length, 400, bad, "context_length_exceeded", "prompt");
  expect_error(post("/v1/chat/completions", chat(std::string(600, 'a'))), 400, bad, "context_length_exceeded", "messages");
  EXPECT_THAT(length.body["error"]["message"].get<std::string>(), HasSubstr("maximum context length is 512 tokens"));
  EXPECT_EQ(length.body["error"]["n_prompt_tokens"], 600);
  EXPECT_EQ(length.body["error"]["n_ctx"], 512);
  expect_error(post("/v1/completions", {{"prompt", "a"}, {"suffix", "b"}}), 400, bad, "fim_not_supported", "suffix");
  expect_error(post("/sluice/v1/adapters", {{"name", "a"}, {"path", "/none"}}), 400, bad, "invalid_adapter", "path");
  for (const char* code : {"invalid_json", "invalid_value", "unsupported_parameter", "context_length_exceeded", "fim_not_supported",
                           "invalid_adapter"}) {
    expect_counted(code);
  }
}

TEST_F(ErrorsTest, KeysHostsAndOrigins) {
  HttpServerOptions options;
  options.api_keys = {"full", "client:small"};
  start({}, options);
  expect_error(get("/v1/models"), 401, "authentication_error", "invalid_api_key");
  expect_error(get("/sluice/v1/status", {{"api-key", "small"}}), 403, "permission_error", "insufficient_scope");
  expect_error(get("/sluice/v1/status", {{"api-key", "full"}, {"Origin", "https://a.example"}}), 403, "permission_error",
               "origin_not_allowed");
  const std::string host = raw("GET /health HTTP/1.1\r\nHost: evil\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(host, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(host, HasSubstr("\"code\":\"host_not_allowed\""));
  EXPECT_THAT(host, HasSubstr("\"type\":\"permission_error\""));
}

TEST_F(ErrorsTest, WhatIsNotThere) {
  start();
  json body = prompt("p");
  body["model"] = "none";
  expect_error(post("/v1/completions", body), 404, "not_found_error", "model_not_found", "model");
  body["model"] = "brief@99";
  expect_error(post("/v1/completions", body), 404, "not_found_error", "model_not_found", "model");
  expect_error(get("/v1/models/none"), 404, "not_found_error", "model_not_found");
  expect_error(get("/sluice/v1/records/rec_none"), 404, "not_found_error", "record_not_found");
  expect_error(remove("/sluice/v1/feedback/99"), 404, "not_found_error", "record_not_found");
  expect_error(label("rec_none", "accept"), 404, "not_found_error", "record_not_found", "record_id");
  expect_error(get("/nowhere"), 404, "not_found_error", "route_not_found");
  expect_error(post("/metrics", json::object()), 405, "not_found_error", "method_not_allowed");
}

TEST_F(ErrorsTest, SizesAndTypes) {
  HttpServerOptions options;
  options.max_body_bytes = 1000;
  start({}, options);
  const char* bad = "invalid_request_error";
  expect_error(post_text("/v1/completions", std::string(1001, ' ')), 413, bad, "request_too_large");
  for (const char* type : {"text/plain", "application/jsonx", "multipart/form-data; boundary=a", "application/x-www-form-urlencoded"}) {
    expect_error(post_text("/v1/completions", "{}", type), 415, bad, "unsupported_media_type");
  }
  EXPECT_EQ(post_text("/v1/completions", prompt("p").dump(), "Application/JSON; charset=utf-8").status, 200);
  HttpHeaders many;
  for (int i = 0; i < 70; ++i) many.emplace_back("X-" + std::to_string(i), "1");
  expect_error(get("/health", many), 431, bad, "header_too_large");
}

TEST_F(ErrorsTest, NotNow) {
  start();
  const std::pair<ServingPhase, const char*> phases[] = {{ServingPhase::kLoading, "model_loading"},
                                                         {ServingPhase::kPaused, "engine_paused"},
                                                         {ServingPhase::kAsleep, "engine_asleep"},
                                                         {ServingPhase::kStopping, "shutting_down"}};
  const char* names[] = {"loading", "paused", "asleep", "stopping"};
  int i = 0;
  for (const auto& [phase, code] : phases) {
    control_->phase_ = phase;
    expect_error(post("/v1/completions", prompt("p")), 503, "unavailable_error", code);
    expect_error(post("/v1/chat/completions", chat("p")), 503, "unavailable_error", code);
    const Got health = get("/health");
    EXPECT_EQ(health.status, 503);
    EXPECT_EQ(health.body, json({{"status", names[i]}}));
    EXPECT_EQ(get("/healthz").body, json({{"ok", false}}));
    EXPECT_THAT(get("/metrics").response.body, HasSubstr("sluice_engine_state{state=\"" + std::string(names[i++]) + "\"} 1"));
  }
  control_->phase_ = ServingPhase::kReady;
  EXPECT_EQ(get("/health").body, json({{"status", "ok"}}));
  EXPECT_EQ(get("/healthz").body, json({{"ok", true}}));
  EXPECT_EQ(post("/v1/completions", prompt("p")).status, 200);
}

TEST_F(ErrorsTest, OursAreFiveHundred) {
  FakeModelOptions model;
  model.not_finite = [](VersionId, const std::vector<TokenId>& prompt, std::size_t) { return prompt.front() == 'n'; };
  model.on_step = [this](const testing::FakeStep&) {
    if (fail_) throw std::runtime_error("the step broke");
    return Status();
  };
  start(std::move(model));
  expect_error(post("/v1/completions", prompt("nan")), 500, "server_error", "non_finite_logits");
  fail_ = true;
  expect_error(post("/v1/completions", prompt("p")), 500, "server_error", "internal_error");
  fail_ = false;
  EXPECT_EQ(post("/v1/completions", prompt("p")).status, 200);  // and the server lives
}

TEST_F(ErrorsTest, PRO3_ErrorsWithinAStreamAreCountedToo) {
  FakeModelOptions model;
  model.not_finite = [](VersionId, const std::vector<TokenId>&, std::size_t generated) { return generated == 2; };
  start(std::move(model));
  const Streamed s = stream("/v1/completions", prompt("p"));
  ASSERT_FALSE(s.done());
  EXPECT_EQ(s.chunks.back()["error"]["code"], "non_finite_logits");
  EXPECT_THAT(get("/metrics").response.body, HasSubstr("sluice_errors_total{code=\"non_finite_logits\"} 1\n"));
}

// The message is the template's own; a word in some other message makes no template_error of it.
TEST_F(ErrorsTest, WhatTheTemplateRefuses) {
  template_ = ChatTemplate::create("{{ raise_exception('System role not supported') }}", "", "").value();
  start();
  const char* bad = "invalid_request_error";
  for (const bool streamed : {false, true}) {
    json body = chat("x");
    body["stream"] = streamed;
    const Got refused = post("/v1/chat/completions", body);
    expect_error(refused, 400, bad, "template_error", "messages");
    EXPECT_EQ(refused.body["error"]["message"], "System role not supported");
  }
  expect_error(post("/sluice/v1/apply-template", chat("x")), 400, bad, "template_error", "messages");
  expect_counted("template_error");
  json body = prompt("p");
  body["stop"] = {"template", ""};
  expect_error(post("/v1/completions", body), 400, bad, "invalid_value", "stop");
}

TEST_F(ErrorsTest, AModelWithoutATemplateCannotChat) {
  template_ = nullptr;
  start();
  expect_error(post("/v1/chat/completions", chat("x")), 400, "invalid_request_error", "invalid_value", "messages");
  expect_error(post("/sluice/v1/apply-template", chat("x")), 400, "invalid_request_error", "invalid_value", "messages");
}

TEST_F(ErrorsTest, AnAnswerThatCannotBeKeptIsNotGiven) {
  start();
  control_->session_.set(SessionId(12345));  // the store refuses a record of a session it does not know
  expect_error(post("/v1/completions", prompt("p")), 503, "unavailable_error", "store_unavailable");
  expect_error(post("/v1/chat/completions", chat("p")), 503, "unavailable_error", "store_unavailable");
  const Streamed s = stream("/v1/completions", prompt("p"));
  EXPECT_EQ(s.got.status, 200);
  EXPECT_FALSE(s.done());
  EXPECT_EQ(s.chunks.back()["error"]["code"], "store_unavailable");
  EXPECT_EQ(s.chunks.back()["error"]["type"], "unavailable_error");
}

TEST_F(ErrorsTest, TheQueueIsFull) {
  HttpServerOptions options;
  options.max_exchanges = 1;
  start(gated(), options);
  const int fd = open_post("/v1/completions", prompt("p"));
  wait_running(1);
  expect_error(post("/v1/completions", prompt("q")), 429, "rate_limit_error", "queue_full");
  gate_.open();
  ::close(fd);
}

TEST_F(ErrorsTest, ConflictsOfLabels) {
  start();
  const char* type = "conflict_error";
  const std::string record = answered();
  EXPECT_EQ(label(record, "accept", "k").status, 200);
  expect_error(label(record, "reject", "k"), 409, type, "idempotency_conflict");
  const auto id = label(record, "accept").body["feedback_id"].get<std::int64_t>();
  ASSERT_TRUE(batch_of(record).valid());
  expect_error(remove("/sluice/v1/feedback/" + std::to_string(id)), 409, type, "feedback_consumed");
}

TEST_F(ErrorsTest, AnOpenRecord) {
  start(gated());
  const OpenAnswer begun = open_answer(2);
  const Got open = label(begun.record, "accept");
  expect_error(open, 409, "conflict_error", "record_open", "record_id");
  EXPECT_EQ(open.header("Retry-After"), "1");
  gate_.open();
  ::close(begun.fd);
}

TEST_F(ErrorsTest, ConflictsOfOperators) {
  start();
  const char* type = "conflict_error";
  expect_error(post("/sluice/v1/adapters", {{"name", "brief-alias"}, {"path", "/a"}}), 409, type, "name_in_use");
  expect_error(post("/sluice/v1/sessions", {{"recipe", "be-brief"}}), 409, type, "session_running");
  const json freeze = {{"action", "freeze"}, {"actor", "a"}, {"note", "n"}};
  expect_error(post("/sluice/v1/decisions", freeze, {{"If-Match", "\"99\""}}), 409, type, "revision_mismatch");
  const VersionId candidate = store_.new_version();
  expect_error(remove("/sluice/v1/adapters/test/versions/" + std::to_string(candidate.value)), 409, type, "illegal_transition");
}

}  // namespace
}  // namespace sluice
