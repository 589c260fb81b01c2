// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of serving.md §1.1 on the wire: smuggling, time limits, slow readers, pages of other origins, TLS, more ports.
#include <openssl/ssl.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "http_fixture.h"
#include "support/temp_folder.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class TransportTest : public HttpTest {
 protected:
  // Status line of the answer to a request with these lines after the first.
  std::string answer(const std::string& line, const std::string& lines, const std::string& body = "") const {
    return raw(line + "\r\n" + lines + "\r\n" + body);
  }
};

TEST_F(TransportTest, SmuggledRequestsNeverRun) {
  start();
  const std::string hidden = "GET /sluice/v1/status HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const std::string post = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  const std::string cases[] = {
      post + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n" + hidden,
      post + "Content-Length: 0\r\nContent-Length: 0\r\n\r\n" + hidden,
      post + "Content-Length: 0, 0\r\n\r\n" + hidden,
      post + "Content-Length: +0\r\n\r\n" + hidden,
      post + "Content-Length: 0x0\r\n\r\n" + hidden,
      post + "Content-Length : 0\r\n\r\n" + hidden,
      post + "Content-Length:\r\n\r\n" + hidden,
      post + "X: a\nContent-Length: 0\r\n\r\n" + hidden,
      post + std::string("X: a\0b\r\n", 8) + "Content-Length: 0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n 0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n0\n\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n2;a\rb\r\n{}\r\n0\r\n\r\n" + hidden,
      post + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n" + hidden,
  };
  for (const std::string& bytes : cases) {
    const std::string got = raw(bytes);
    EXPECT_THAT(got, StartsWith("HTTP/1.1 400 ")) << bytes;
    EXPECT_THAT(got, HasSubstr("invalid_value")) << bytes;
    EXPECT_THAT(got, HasSubstr("Connection: close")) << bytes;
    EXPECT_THAT(got, Not(HasSubstr("phase"))) << bytes;
  }
  EXPECT_THAT(raw(post + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"), StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(raw(post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(TransportTest, PipelinedRequestsAreAnsweredInOrder) {
  start();
  const std::string got = raw("\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n"
                              "Connection: close\r\n\r\n");
  const auto first = got.find("{\"status\":\"ok\"}"), second = got.find("{\"ok\":true}");
  ASSERT_NE(first, std::string::npos) << got;
  ASSERT_NE(second, std::string::npos) << got;
  EXPECT_LT(first, second);
}

TEST_F(TransportTest, OldHttpGetsItsStreamToTheEndOfTheConnection) {
  start();
  json body = prompt("p");
  body["stream"] = true;
  const std::string text = body.dump();
  const std::string got = raw("POST /v1/completions HTTP/1.0\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: " +
                              std::to_string(text.size()) + "\r\n\r\n" + text);
  EXPECT_THAT(got, Not(HasSubstr("Transfer-Encoding")));
  EXPECT_THAT(got, HasSubstr("Connection: close"));
  EXPECT_THAT(got, ::testing::EndsWith("data: [DONE]\n\n"));
}

TEST_F(TransportTest, HeadHasTheLengthAndNoBody) {
  start();
  const std::string got = answer("HEAD /v1/models HTTP/1.1", "Host: localhost\r\nConnection: close\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 200 OK"));
  EXPECT_THAT(got, HasSubstr("Content-Length: " + std::to_string(get("/v1/models").response.body.size())));
  EXPECT_THAT(got, ::testing::EndsWith("\r\n\r\n"));
  EXPECT_THAT(answer("HEAD /nowhere HTTP/1.1", "Host: localhost\r\nConnection: close\r\n"), ::testing::EndsWith("\r\n\r\n"));
}

TEST_F(TransportTest, CON5_LargePromptsAreTaken) {
  start();
  json body = prompt(std::string(1 << 20, 'a'));
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(g.status, 400);  // longer than the context, but not than any limit of HTTP
  EXPECT_EQ(g.code(), "context_length_exceeded");
}

TEST_F(TransportTest, SlowRequestsAndIdleConnectionsEnd) {
  HttpServerOptions options;
  options.times.request = std::chrono::milliseconds(50);
  options.times.idle = std::chrono::milliseconds(50);
  start({}, options);
  EXPECT_EQ(raw(""), "");
  EXPECT_THAT(raw("GET /health HTTP/1.1\r\nHos"), StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(raw(post_head("/v1/completions", "Content-Length: 10\r\n") + "{"), HasSubstr("cut short"));
}

// Silent peers and connections between two requests hold threads, but not against one that has something to ask.
TEST_F(TransportTest, CON4_IdleConnectionsMakeRoomForNewOnes) {
  HttpServerOptions options;
  options.max_connections = 3;
  options.times.queued = std::chrono::milliseconds(600'000);
  start({}, options);
  client_.reset();
  const std::string health = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
  std::vector<int> held;
  for (int i = 0; i < 12; ++i) {
    held.push_back(connect_raw());
    if (i % 2 == 0) continue;  // never says a word
    send_raw(held.back(), health);
    EXPECT_THAT(read_until(held.back(), "ok\"}"), HasSubstr(" 200 ")) << i;
  }
  int closed = 0;
  for (const int fd : held) {
    char byte;
    closed += ::recv(fd, &byte, 1, MSG_DONTWAIT) == 0 ? 1 : 0;
  }
  EXPECT_GE(closed, 9) << "all but those that hold a thread now";
  for (const int fd : held) ::close(fd);
}

TEST_F(TransportTest, WhereNoThreadGetsFreeTheAnswerIs503) {
  HttpServerOptions options;
  options.max_connections = 2;
  options.times.queued = std::chrono::milliseconds(20);
  start(gated(), options);
  client_.reset();
  json body = prompt("p");
  body["stream"] = true;
  const int held[] = {open_post("/v1/completions", body), open_post("/v1/completions", body)};
  wait_running(2);
  const std::string refused = raw("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refused, HasSubstr("\r\nRetry-After: "));
  EXPECT_THAT(refused, HasSubstr("\"type\":\"unavailable_error\""));
  gate_.open();
  for (const int fd : held) {
    EXPECT_NE(read_until(fd, "[DONE]").find("[DONE]"), std::string::npos);
    ::close(fd);
  }
  while (raw("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").find(" 200 ") == std::string::npos) {
  }
}

// 64 run beside 256 that wait (serving.md 1.1), and other routes still have a thread.
TEST_F(TransportTest, TheLimitsLeaveRoomForAllThatRunsAndWaits) {
  const HttpServerOptions options;
  EXPECT_GE(options.max_exchanges, 64 + 256);
  EXPECT_GT(options.max_connections, static_cast<std::size_t>(options.max_exchanges));
}

TEST_F(TransportTest, AClientThatReadsNothingIsCancelled) {
  FakeModelOptions model;
  model.context_length = 13'000;
  HttpServerOptions options;
  options.times.stalled = std::chrono::milliseconds(100);
  EngineOptions engine;
  engine.context.kv_tokens = 40'000;
  start(std::move(model), options, engine);
  json body = prompt("p");
  body["stream"] = true;
  body["max_tokens"] = 12'000;  // far more than the buffers of both sockets hold
  const std::string text = body.dump();
  const int fd = connect_raw();
  const int little = 4096;
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  send_raw(fd, post_head("/v1/completions", "Content-Length: " + std::to_string(text.size()) + "\r\n") + text);
  // Others are served meanwhile.
  EXPECT_EQ(post("/v1/completions", prompt("q")).status, 200);
  while (get("/metrics").response.body.find("finish_reason=\"cancelled\"} 1") == std::string::npos) std::this_thread::yield();
  wait_running(0);
  ::close(fd);
}

TEST_F(TransportTest, PagesOfAllowedOriginsMayUseClientRoutes) {
  HttpServerOptions options;
  options.cors_origins = {"https://app.example"};
  options.api_keys = {"full", "client:small"};
  start({}, options);
  const auto preflight = [&](const std::string& path, const std::string& origin) {
    return answer("OPTIONS " + path + " HTTP/1.1",
                  "Host: localhost\r\nConnection: close\r\nOrigin: " + origin +
                      "\r\nAccess-Control-Request-Method: POST\r\n"
                      "Access-Control-Request-Headers: authorization,x-stainless-os,content-type\r\n");
  };
  const std::string ok = preflight("/v1/chat/completions", "https://app.example");
  EXPECT_THAT(ok, StartsWith("HTTP/1.1 204 "));
  EXPECT_THAT(ok, HasSubstr("Access-Control-Allow-Origin: https://app.example\r\n"));
  EXPECT_THAT(ok, HasSubstr("Access-Control-Allow-Methods: POST\r\n"));
  EXPECT_THAT(ok, HasSubstr("Access-Control-Allow-Headers: authorization,x-stainless-os,content-type\r\n"));
  EXPECT_THAT(ok, HasSubstr("Vary: Origin\r\n"));
  EXPECT_THAT(ok, Not(HasSubstr("Allow-Credentials")));
  EXPECT_THAT(preflight("/v1/chat/completions", "https://evil.example"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(preflight("/sluice/v1/status", "https://app.example"), StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(preflight("/nowhere", "https://app.example"), StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(answer("OPTIONS /v1/models HTTP/1.1", "Host: localhost\r\nConnection: close\r\n"), HasSubstr("Allow: GET\r\n"));

  const Got g = post("/v1/completions", prompt("p"), {{"Origin", "https://app.example"}, {"Authorization", "Bearer small"}});
  EXPECT_EQ(g.status, 200);
  EXPECT_EQ(g.header("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_THAT(g.header("Access-Control-Expose-Headers"), HasSubstr("X-Sluice-Record-Id"));
  // A page must see why it was refused, too.
  EXPECT_EQ(get("/v1/models", {{"Origin", "https://app.example"}}).header("Access-Control-Allow-Origin"), "https://app.example");
  EXPECT_EQ(get("/v1/models", {{"Origin", "https://evil.example"}, {"x-api-key", "small"}}).header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(get("/sluice/v1/status", {{"Origin", "https://app.example"}, {"x-api-key", "full"}}).header("Access-Control-Allow-Origin"), "");
  EXPECT_EQ(get("/sluice/v1/status", {{"Origin", "null"}, {"x-api-key", "full"}}).code(), "origin_not_allowed");
  options.cors_origins = {"app.example"};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.cors_origins = {"https://app.example/"};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
}

TEST_F(TransportTest, FurtherHostNamesAreAllowedByName) {
  HttpServerOptions options;
  options.allowed_hosts = {"box.lan"};
  start({}, options);
  EXPECT_THAT(answer("GET /health HTTP/1.1", "Host: BOX.lan:8080\r\nConnection: close\r\n"), StartsWith("HTTP/1.1 200 "));
  const std::string got = answer("GET /health HTTP/1.1", "Host: other.lan\r\nConnection: close\r\n");
  EXPECT_THAT(got, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(got, HasSubstr("host_not_allowed"));
}

TEST_F(TransportTest, MorePortsServeTheSameRoutes) {
  HttpServerOptions options;
  options.editor_ports = {0, 0};
  start({}, options);
  EXPECT_EQ(get("/health").status, 200);
  options.port = 0;
  options.editor_ports = {server_->port()};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kConflict);
  options.editor_ports = {70'000};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
}

TEST_F(TransportTest, WaitIdleKnowsOfOpenAnswers) {
  start(gated());
  EXPECT_TRUE(server_->wait_idle(std::chrono::steady_clock::now()));
  std::thread client([this] {
    EXPECT_EQ(got(HttpClient::create(server_->url()).value()->post("/v1/completions", prompt("p").dump(), "application/json")).status, 200);
  });
  wait_running(1);
  EXPECT_FALSE(server_->wait_idle(std::chrono::steady_clock::now()));
  control_->phase_ = ServingPhase::kStopping;  // no new one, but the open one goes on to its end
  EXPECT_EQ(post("/v1/completions", prompt("q")).code(), "shutting_down");
  gate_.open();
  EXPECT_TRUE(server_->wait_idle(std::chrono::steady_clock::now() + std::chrono::hours(1)));
  client.join();
}

// ---- TLS ----

class TlsTest : public TransportTest {
 protected:
  // A certificate of its own, made by the openssl program.
  void make_certificate() {
    certificate_ = folder_.path() + "/cert.pem";
    key_ = folder_.path() + "/key.pem";
    const std::string command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "
                                "/CN=localhost -keyout '" + key_ + "' -out '" + certificate_ + "' 2>/dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  // One request over TLS; everything the server sent.
  std::string raw_tls(const std::string& bytes) {
    SSL_CTX* context = SSL_CTX_new(TLS_client_method());
    SSL* ssl = SSL_new(context);
    const int fd = connect_raw();
    SSL_set_fd(ssl, fd);
    std::string out;
    if (SSL_connect(ssl) == 1 && SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size())) > 0) {
      char buffer[4096];
      for (int n; (n = SSL_read(ssl, buffer, sizeof buffer)) > 0;) out.append(buffer, static_cast<std::size_t>(n));
    }
    SSL_free(ssl);
    SSL_CTX_free(context);
    ::close(fd);
    return out;
  }

  testing::TempFolder folder_;
  std::string certificate_, key_;
};

TEST_F(TlsTest, AnswersAndStreamsOverTls) {
  make_certificate();
  HttpServerOptions options;
  options.tls_certificate = certificate_;
  options.tls_key = key_;
  start({}, options);
  EXPECT_THAT(server_->url(), StartsWith("https://"));
  json body = prompt("p");
  body["stream"] = true;
  const std::string text = body.dump();
  const std::string got = raw_tls("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" +
                                  post_head("/v1/completions", "Connection: close\r\nContent-Length: " + std::to_string(text.size()) + "\r\n") + text);
  EXPECT_THAT(got, HasSubstr("{\"status\":\"ok\"}"));
  EXPECT_THAT(got, HasSubstr("data: [DONE]\n\n"));
  EXPECT_THAT(raw("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"), Not(HasSubstr("200")));  // no plain text on that port
  // This program's own clients, which can't check the certificate, have a plain port on loopback.
  EXPECT_THAT(server_->own_url(), StartsWith("http://127.0.0.1:"));
  const auto own = HttpClient::create(server_->own_url()).value()->get("/health");
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(own->status, 200);
}

TEST_F(TlsTest, LeavingOverTlsFreesTheSlot) {
  make_certificate();
  HttpServerOptions options;
  options.tls_certificate = certificate_;
  options.tls_key = key_;
  start(gated(), options);
  json body = prompt("p");
  body["max_tokens"] = 400;
  const std::string text = body.dump();
  SSL_CTX* context = SSL_CTX_new(TLS_client_method());
  SSL* ssl = SSL_new(context);
  const int fd = connect_raw();
  SSL_set_fd(ssl, fd);
  ASSERT_EQ(SSL_connect(ssl), 1);
  const std::string bytes = post_head("/v1/completions", "Content-Length: " + std::to_string(text.size()) + "\r\n") + text;
  SSL_write(ssl, bytes.data(), static_cast<int>(bytes.size()));
  gate_.wait_arrived(1);
  SSL_free(ssl);
  SSL_CTX_free(context);
  ::close(fd);
  while (engine_->stats().running + engine_->stats().waiting != 0) {
    gate_.allow_begun();
    std::this_thread::yield();
  }
}

TEST_F(TlsTest, UnusableCertificatesAreNamed) {
  make_certificate();
  start();
  HttpServerOptions options;
  options.port = 0;
  options.tls_certificate = certificate_;
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.tls_key = folder_.path() + "/none.pem";
  auto refused = HttpServer::start(options, *store_, *control_, log_);
  EXPECT_THAT(refused.status().message(), HasSubstr("none.pem"));
  options.tls_certificate = folder_.path() + "/rubbish.pem";
  std::ofstream(options.tls_certificate) << "rubbish";
  options.tls_key = key_;
  refused = HttpServer::start(options, *store_, *control_, log_);
  EXPECT_EQ(refused.code(), Code::kInvalidArgument);
  EXPECT_THAT(refused.status().message(), HasSubstr("rubbish.pem"));
}

TEST_F(TlsTest, BeyondLoopbackTlsStandsInForTheProxy) {
  make_certificate();
  start();
  HttpServerOptions options;
  options.host = "0.0.0.0";
  options.port = 0;
  options.api_keys = {"k"};
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
  options.tls_certificate = certificate_;
  options.tls_key = key_;
  EXPECT_TRUE(HttpServer::start(options, *store_, *control_, log_).ok());
  options.api_keys.clear();
  EXPECT_EQ(HttpServer::start(options, *store_, *control_, log_).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
