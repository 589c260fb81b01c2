// SPDX-License-Identifier: GPL-3.0-or-later
// A server whose model is still being loaded, or was taken away for another (serving.md §1.1: 503 only while loading ...).
#include <thread>
#include <tuple>

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class LoadingTest : public HttpTest {
 protected:
  // A server that listens before there is a model.
  void start_without_model(FakeModelOptions model = {}) {
    start(std::move(model));
    client_.reset();
    server_.reset();
    take_model();
    HttpServerOptions options;
    options.port = 0;
    server_ = std::move(HttpServer::start(options, *store_, *control_, log_)).value();
    client_ = HttpClient::create(server_->url()).value();
  }
  void take_model() {
    control_->phase_ = ServingPhase::kLoading;
    control_->service_.set(nullptr);
  }
  void give_model() {
    control_->service_.set(service_);
    control_->phase_ = ServingPhase::kReady;
  }
  static void expect_loading(const Got& g) {
    EXPECT_EQ(g.status, 503) << g.body;
    EXPECT_EQ(g.code(), "model_loading") << g.body;
    EXPECT_EQ(g.body["error"]["type"], "unavailable_error");
    EXPECT_EQ(g.header("Retry-After"), "2");
    EXPECT_EQ(g.header("retry-after-ms"), "2000");
  }
  // One request on a connection that stays open: status line and body.
  std::pair<std::string, std::string> ask(int fd, const std::string& path, const json& body) const {
    const std::string text = body.dump();
    send_raw(fd, post_head(path, "Content-Length: " + std::to_string(text.size()) + "\r\n") + text);
    const std::string head = read_until(fd, "\r\n\r\n");
    const std::size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return {head, ""};
    std::string answer(std::stoul(head.substr(at + 16)), '\0');
    EXPECT_EQ(::recv(fd, answer.data(), answer.size(), MSG_WAITALL), static_cast<ssize_t>(answer.size()));
    return {head.substr(0, head.find('\r')), answer};
  }
};

TEST_F(LoadingTest, WhatNeedsTheModelIsToldToComeAgain) {
  start_without_model();
  expect_loading(post("/v1/completions", prompt("p")));
  expect_loading(post("/v1/chat/completions", chat("p")));
  expect_loading(post("/v1/fim/completions", {{"prompt", "a"}, {"suffix", "b"}}));
  expect_loading(get("/v1/models"));
  expect_loading(get("/v1/models/fake"));
  expect_loading(post("/sluice/v1/tokenize", {{"content", "a"}}));
  expect_loading(post("/sluice/v1/detokenize", {{"tokens", json::array({97})}}));
  expect_loading(post("/sluice/v1/apply-template", chat("p")));
  json streamed = prompt("p");
  streamed["stream"] = true;
  expect_loading(post("/v1/completions", streamed));
  const Got health = get("/health");
  EXPECT_EQ(health.status, 503);
  EXPECT_EQ(health.body, json({{"status", "loading"}}));
  EXPECT_EQ(health.header("Retry-After"), "2");
  EXPECT_EQ(get("/healthz").status, 503);
}

TEST_F(LoadingTest, WhatNeedsNoModelIsAnswered) {
  start_without_model();
  const Got metrics = get("/metrics");
  EXPECT_EQ(metrics.status, 200);
  EXPECT_THAT(metrics.response.body, HasSubstr("sluice_engine_state{state=\"loading\"} 1"));
  for (const char* path : {"/sluice/v1/status", "/sluice/v1/records", "/sluice/v1/gate", "/sluice/v1/decisions", "/sluice/v1/sessions"}) {
    EXPECT_EQ(get(path).status, 200) << path;
  }
  EXPECT_EQ(get("/nowhere").status, 404);
}

TEST_F(LoadingTest, AConnectionGoesOverToFullService) {
  start_without_model();
  const int fd = connect_raw();
  auto [status, body] = ask(fd, "/v1/completions", prompt("p"));
  EXPECT_EQ(status, "HTTP/1.1 503 Service Unavailable");
  EXPECT_THAT(body, HasSubstr("model_loading"));
  give_model();
  std::tie(status, body) = ask(fd, "/v1/completions", prompt("p"));
  EXPECT_EQ(status, "HTTP/1.1 200 OK") << body;
  take_model();
  std::tie(status, body) = ask(fd, "/v1/completions", prompt("p"));
  EXPECT_THAT(body, HasSubstr("model_loading"));
  give_model();
  std::tie(status, body) = ask(fd, "/v1/chat/completions", chat("p"));
  EXPECT_EQ(status, "HTTP/1.1 200 OK") << body;
  ::close(fd);
}

// Only to count the tokens of a part that was shown is the model needed.
TEST_F(LoadingTest, LabelsAreTakenMeanwhile) {
  start_without_model(says("one two"));
  give_model();
  const std::string first = post("/v1/completions", prompt("p")).body["sluice"]["record_id"];
  const std::string second = post("/v1/completions", prompt("q")).body["sluice"]["record_id"];
  take_model();
  EXPECT_EQ(post("/sluice/v1/feedback", {{"record_id", first}, {"kind", "accept"}}).status, 200);
  const auto by_text = [](const char* shown) {
    return json{{"match", {{"prompt", "q"}, {"completion", shown}}}, {"kind", "accept"}};
  };
  const auto labels = [&] { return get("/sluice/v1/feedback?record_id=" + second).body["data"].size(); };
  expect_loading(post("/sluice/v1/feedback", by_text("one")));
  expect_loading(post("/sluice/v1/feedback/batch", {{"items", json::array({by_text("one two"), by_text("one")})}}));
  EXPECT_EQ(labels(), 0u) << "what was refused was not stored";
  EXPECT_EQ(post("/sluice/v1/feedback", by_text("one two")).status, 200);
  EXPECT_EQ(labels(), 1u);
  give_model();
  EXPECT_EQ(post("/sluice/v1/feedback", by_text("one")).status, 200);
}

// The old model's memory has to be free before the next one is read.
TEST_F(LoadingTest, AnswersInTheMakingEndAndLetGoOfTheModel) {
  start(gated());
  const OpenAnswer streamed = open_answer(2);
  const int whole = open_post("/v1/completions", prompt("q"));
  wait_running(2);
  take_model();
  std::thread stopper([this] { engine_->stop(); });
  while (engine_->state() != ServeState::kStopping) std::this_thread::yield();
  gate_.open();
  stopper.join();
  const std::string stream = read_until(streamed.fd, "0\r\n\r\n"), answer = read_until(whole, "}}");
  EXPECT_THAT(stream, HasSubstr("model_loading"));
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(answer, HasSubstr("model_loading"));
  EXPECT_THAT(answer, HasSubstr("Retry-After: 2"));
  EXPECT_TRUE(server_->wait_idle(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  EXPECT_EQ(service_.use_count(), 1);
  for (const int fd : {streamed.fd, whole}) ::close(fd);
}

TEST_F(LoadingTest, AClientThatHoldsTheModelCanBeCutOff) {
  start(gated());
  const OpenAnswer held = open_answer(1);
  const int idle = connect_raw();
  take_model();
  server_->hang_up();
  EXPECT_THAT(read_all(held.fd), ::testing::Not(HasSubstr("[DONE]")));
  gate_.open();
  EXPECT_TRUE(server_->wait_idle(std::chrono::steady_clock::now() + std::chrono::minutes(1)));
  EXPECT_EQ(service_.use_count(), 1);
  give_model();
  EXPECT_EQ(ask(idle, "/v1/completions", prompt("p")).first, "HTTP/1.1 200 OK") << "the others' connections stay";
  ::close(held.fd);
  ::close(idle);
}

}  // namespace
}  // namespace sluice
