// SPDX-License-Identifier: GPL-3.0-or-later
// Transport: guard, limits, keys, keep-alive, disconnects, busy port, stopping (serving.md §1.1, engine.md §6).
#include <thread>

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string status_line(const std::string& answer) { return answer.substr(0, answer.find('\r')); }

TEST_F(HttpTest, CON4_AConnectionStaysForAsManyRequestsAsThereAre) {
  start();
  const int fd = connect_raw();
  for (int i = 0; i < 100; ++i) {
    send_raw(fd, "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_THAT(read_until(fd, "\"ok\"}"), StartsWith("HTTP/1.1 200")) << i;
  }
  ::close(fd);
}

TEST_F(HttpTest, FramingThatCanBeReadTwoWaysIsRefused) {
  start();
  const std::string path = "/v1/completions";
  for (const std::string head : {
           "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "Transfer-Encoding: gzip, chunked\r\n",
           "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "Content-Length: 5\r\nContent-Length: 6\r\n",
           "Content-Length: 5x\r\n", "Content-Length: -1\r\n"}) {
    // What follows must never run as a request of its own.
    const std::string answer = raw(post_head(path, head) + "GET /sluice/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(status_line(answer), "HTTP/1.1 400 Bad Request") << head << answer;
    EXPECT_EQ(answer.find("phase"), std::string::npos) << head;
  }
  EXPECT_THAT(raw(post_head(path, "Content-Encoding: gzip\r\nContent-Length: 2\r\n") + "{}"), StartsWith("HTTP/1.1 415"));
  EXPECT_THAT(raw("GET /health HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(raw("GET /health HTTP/1.1\r\nHost: a\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(raw("rubbish\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(raw("GET /health HTTP/1.0\r\n\r\n"), HasSubstr("200 OK"));
}

TEST_F(HttpTest, HostNamesBeyondLoopbackAreRefused) {
  start();
  const auto with_host = [&](const std::string& host) {
    return status_line(raw("GET /health HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"));
  };
  for (const std::string host : {"localhost", "127.0.0.1:8080", "[::1]:1", "LOCALHOST:99"}) {
    EXPECT_EQ(with_host(host), "HTTP/1.1 200 OK") << host;
  }
  for (const std::string host : {"evil.example", "localhost.evil.example", "10.0.0.1", "127.0.0.1.evil.example"}) {
    EXPECT_EQ(with_host(host), "HTTP/1.1 403 Forbidden") << host;
  }
}

TEST_F(HttpTest, LimitsOfHeadAndBody) {
  HttpServerOptions options;
  options.max_body_bytes = 1 << 20;
  start({}, options);
  std::string many;
  for (int i = 0; i < 70; ++i) many += "X-H" + std::to_string(i) + ": 1\r\n";
  EXPECT_THAT(raw("GET /health HTTP/1.1\r\nHost: localhost\r\n" + many + "\r\n"), StartsWith("HTTP/1.1 431"));
  std::string large;
  for (int i = 0; i < 10; ++i) large += "X-L" + std::to_string(i) + ": " + std::string(4000, 'a') + "\r\n";
  const std::string answer = raw("GET /health HTTP/1.1\r\nHost: localhost\r\n" + large + "\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(answer, HasSubstr("header_too_large"));
  EXPECT_THAT(raw("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n"), StartsWith("HTTP/1.1 414"));
  const std::string path = "/v1/completions";
  EXPECT_THAT(raw(post_head(path, "Content-Length: 1048577\r\n")), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw(post_head(path, "Content-Length: 99999999999999999999999\r\n")), StartsWith("HTTP/1.1 413"));
  std::string chunked = post_head(path, "Transfer-Encoding: chunked\r\n");
  for (int i = 0; i < 20; ++i) chunked += "10000\r\n" + std::string(65536, ' ') + "\r\n";
  EXPECT_THAT(raw(chunked + "0\r\n\r\n"), StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(raw(post_head(path, "Transfer-Encoding: chunked\r\n") + "zz\r\n"), StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpTest, ChunkedAndExpectedBodiesWork) {
  start();
  const std::string body = prompt("p").dump();
  char size[16];
  std::snprintf(size, sizeof size, "%zx", body.size() - 3);
  EXPECT_THAT(raw(post_head("/v1/completions", "Transfer-Encoding: chunked\r\nConnection: close\r\n") + "3;x=y\r\n" +
                  body.substr(0, 3) + "\r\n" + size + "\r\n" + body.substr(3) + "\r\n0\r\nT: v\r\n\r\n"),
              StartsWith("HTTP/1.1 200"));
  const std::string expected =
      raw(post_head("/v1/completions", "Expect: 100-continue\r\nConnection: close\r\nContent-Length: " +
                                           std::to_string(body.size()) + "\r\n") + body);
  EXPECT_THAT(expected, StartsWith("HTTP/1.1 100"));
  EXPECT_THAT(expected, HasSubstr("HTTP/1.1 200"));
  const std::string head = raw("HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(head.find("{"), std::string::npos);
}

TEST_F(HttpTest, UnknownRoutesAndMethods) {
  start();
  EXPECT_EQ(get("/nowhere").code(), "route_not_found");
  EXPECT_EQ(get("/v1/modelsx").code(), "route_not_found");
  const Got g = get("/v1/completions");
  EXPECT_EQ(g.status, 405);
  EXPECT_EQ(g.code(), "method_not_allowed");
  EXPECT_EQ(g.header("Allow"), "POST");
  EXPECT_EQ(post("/v1/models", json::object()).status, 405);
  for (const char* key : {"message", "type", "param", "code"}) EXPECT_TRUE(g.body["error"].contains(key)) << key;
}

TEST_F(HttpTest, KeysAndScopes) {
  HttpServerOptions options;
  options.api_keys = {"full-key", "client:small-key"};
  start({}, options);
  EXPECT_EQ(get("/health").status, 200);
  EXPECT_EQ(get("/v1/models").code(), "invalid_api_key");
  EXPECT_EQ(get("/nowhere").status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer wrong"}}).status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "Bearer client:small-key"}}).status, 401);
  EXPECT_EQ(get("/v1/models", {{"Authorization", "bearer full-key"}}).status, 200);
  EXPECT_EQ(get("/v1/models", {{"x-api-key", "small-key"}}).status, 200);
  EXPECT_EQ(get("/v1/models", {{"api-key", "small-key"}}).status, 200);
  EXPECT_EQ(get("/sluice/v1/status", {{"x-api-key", "full-key"}}).status, 200);
  const Got g = get("/sluice/v1/status", {{"x-api-key", "small-key"}});
  EXPECT_EQ(g.status, 403);
  EXPECT_EQ(g.code(), "insufficient_scope");
}

TEST_F(HttpTest, WebPagesMayNotSteer) {
  start();
  EXPECT_EQ(get("/sluice/v1/status", {{"Origin", "https://evil.example"}}).code(), "origin_not_allowed");
  EXPECT_EQ(get("/sluice/v1/status").status, 200);
}

TEST_F(HttpTest, RequestIdsComeBack) {
  start();
  EXPECT_EQ(get("/health", {{"x-request-id", "abc"}}).header("x-request-id"), "abc");
  EXPECT_FALSE(get("/health").header("x-request-id").empty());
}

TEST_F(HttpTest, BusyPortAndOpenAddressesAreRefused) {
  start();
  HttpServerOptions options;
  options.port = server_->port();
  const auto second = HttpServer::start(options, *store_, *control_, log_);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kConflict);
  EXPECT_THAT(second.status().message(), HasSubstr("Port " + std::to_string(server_->port()) + " is in use by another program"));
  options.port = 0;
  options.host = "0.0.0.0";
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.api_keys = {"k"};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.host = "203.0.113.77";
  options.behind_proxy = true;
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.host = "127.0.0.1";
  options.port = 70000;
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
}

TEST_F(HttpTest, LeavingFreesTheSlot) {
  start(gated());
  std::int64_t steps = 0;
  for (const bool streamed : {true, false}) {
    json body = prompt("p");
    body["max_tokens"] = 400;
    body["stream"] = streamed;
    const std::size_t before = store_->records({}, 0, 10).size();  // counted first: the server may see the end at once
    const int fd = open_post("/v1/completions", body);
    gate_.wait_arrived(steps + 1);  // it was admitted: from here on there will be a record
    gate_.allow(1);
    ::close(fd);
    // Step by step: leave for steps not begun yet would let the next round's answer run to its end before the client goes.
    while (store_->records({}, 0, 10).size() == before || engine_->stats().running + engine_->stats().waiting != 0) {
      gate_.allow_begun();
      std::this_thread::yield();
    }
    const auto record = store_->records({}, 0, 1).at(0);
    EXPECT_FALSE(record.complete);
    EXPECT_EQ(record.finish_reason, "cancelled");
    EXPECT_LT(record.token_ids.size(), 400u);
    steps = gate_.arrived();
  }
  gate_.open();
  const Got m = get("/metrics");
  EXPECT_THAT(m.response.body, HasSubstr("finish_reason=\"cancelled\"} 2"));
}

TEST_F(HttpTest, TooManyGet429) {
  HttpServerOptions options;
  options.max_exchanges = 1;
  start(gated(), options);
  std::thread first([this] { EXPECT_EQ(got(HttpClient::create(server_->url()).value()->post("/v1/completions", prompt("p").dump(), "application/json")).status, 200); });
  wait_running(1);
  const Got g = post("/v1/completions", prompt("q"));
  EXPECT_EQ(g.status, 429);
  EXPECT_EQ(g.code(), "queue_full");
  EXPECT_FALSE(g.header("Retry-After").empty());
  EXPECT_FALSE(g.header("retry-after-ms").empty());
  gate_.open();
  first.join();
  EXPECT_EQ(post("/v1/completions", prompt("q")).status, 200);
}

TEST_F(HttpTest, StopEndsOpenStreamsAndJoins) {
  start(gated());
  std::vector<std::thread> clients;
  std::atomic<int> told{0};
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([this, i, &told] {
      auto client = HttpClient::create(server_->url()).value();
      json body = prompt("p" + std::to_string(i));
      body["max_tokens"] = 300;
      body["stream"] = true;
      std::string last;
      auto r = client->post_events("/v1/completions", body.dump(), "application/json", [&](std::string_view data) {
        last = std::string(data);
        return true;
      });
      // Cut off or told why: never an answer that looks whole.
      EXPECT_NE(last, "[DONE]");
      if (last.find("shutting_down") != std::string::npos || !r.ok() || r->status == 503) ++told;
    });
  }
  const int idle = connect_raw();
  wait_running(8);
  gate_.allow(3);
  gate_.wait_arrived(3);
  server_->stop();
  gate_.open();
  for (auto& t : clients) t.join();
  EXPECT_EQ(told, 8);
  EXPECT_EQ(read_all(idle), "");  // closed, not left hanging
  ::close(idle);
  server_->stop();
}

TEST_F(HttpTest, ManyClientsAtOnce) {
  start();
  std::vector<std::thread> clients;
  for (int i = 0; i < 16; ++i) {
    clients.emplace_back([this, i] {
      auto client = HttpClient::create(server_->url()).value();
      for (int k = 0; k < 8; ++k) {
        const std::string text = "p" + std::to_string(i) + "_" + std::to_string(k);
        const Got g = got(client->post("/v1/completions", prompt(text).dump(), "application/json"));
        ASSERT_EQ(g.status, 200);
        EXPECT_EQ(g.body["choices"][0]["text"],
                  testing::fake_text(testing::fake_answer(kBaseVersion, testing::fake_tokens(text), 12)));
      }
    });
  }
  for (auto& t : clients) t.join();
  EXPECT_EQ(server_->requests(), 128);
  EXPECT_THAT(get("/metrics").response.body, HasSubstr("sluice_requests_total{route=\"completions\",finish_reason=\"length\"} 128"));
}

}  // namespace
}  // namespace sluice
