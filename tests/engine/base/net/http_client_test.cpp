// SPDX-License-Identifier: GPL-3.0-or-later
// The client against a small server of the same library, and against raw sockets that misbehave.
#include "base/net/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>
#include <thread>

#include "base/channel.h"
#include "base/net/no_sigpipe.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;

class HttpClientTest : public ::testing::Test {
 protected:
  HttpClientTest() {
    server_.set_keep_alive_max_count(1000);
    server_.set_tcp_nodelay(true);
    server_.Get("/hello", [this](const httplib::Request& request, httplib::Response& response) {
      ports_.insert(request.remote_port);
      response.set_header("X-Seen", request.get_header_value("X-Sent"));
      response.set_content("hello", "text/plain");
    });
    server_.Post("/echo", [](const httplib::Request& request, httplib::Response& response) {
      response.status = 201;
      response.set_content(request.get_header_value("Content-Type") + "|" + request.body, "text/plain");
    });
    server_.Get("/empty", [](const httplib::Request&, httplib::Response& response) { response.status = 204; });
    server_.Get("/moved", [](const httplib::Request&, httplib::Response& response) { response.set_redirect("/hello"); });
    server_.Get("/large", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(std::string(100'000, 'x'), "text/plain");
    });
    server_.Post("/events", [this](const httplib::Request&, httplib::Response& response) {
      response.set_chunked_content_provider("text/event-stream; charset=utf-8", [this](std::size_t, httplib::DataSink& sink) {
        const auto next = to_send_.pop();
        if (!next) {
          sink.done();
          return true;
        }
        return sink.write(next->data(), next->size());
      });
    });
    server_.Post("/refused", [](const httplib::Request&, httplib::Response& response) {
      response.status = 429;
      response.set_content("{\"error\":{}}", "application/json");
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
    client_ = make("http://127.0.0.1:" + std::to_string(port_));
  }
  ~HttpClientTest() override {
    to_send_.close();
    client_.reset();
    server_.stop();
    thread_.join();
  }
  static std::unique_ptr<HttpClient> make(const std::string& url) {
    auto made = HttpClient::create(url);
    EXPECT_TRUE(made.ok());
    return made.ok() ? std::move(*made) : nullptr;
  }

  Channel<std::string> to_send_{100};
  std::set<int> ports_;
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  std::unique_ptr<HttpClient> client_;
};

TEST_F(HttpClientTest, GetsStatusHeadersAndBody) {
  const auto response = client_->get("/hello", {.headers = {{"X-Sent", "abc"}}});
  ASSERT_TRUE(response.ok()) << response.status().message();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "hello");
  EXPECT_EQ(response->header("x-seen"), "abc");
  EXPECT_EQ(response->header("missing"), "");
}

TEST_F(HttpClientTest, PostsABody) {
  const std::string body = "{\"a\":\"\xC3\xA9\"}";
  const auto response = client_->post("/echo", body, "application/json");
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 201);
  EXPECT_EQ(response->body, "application/json|" + body);
}

TEST_F(HttpClientTest, KeepsItsConnection) {
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(client_->get("/hello").ok());
  EXPECT_EQ(ports_.size(), 1u);
}

TEST_F(HttpClientTest, ErrorStatusesAndEmptyAnswersAreAnswers) {
  EXPECT_EQ(client_->get("/nowhere")->status, 404);
  EXPECT_EQ(client_->get("/empty")->status, 204);
  const auto moved = client_->get("/moved");
  EXPECT_EQ(moved->status, 302);  // not followed
  EXPECT_EQ(moved->header("Location"), "/hello");
}

TEST_F(HttpClientTest, CapsTheAnswerAndGoesOn) {
  const auto large = client_->get("/large", {.max_body_bytes = 1000});
  EXPECT_EQ(large.code(), Code::kInvalidArgument);
  EXPECT_NE(large.status().message().find("1000"), std::string::npos);
  EXPECT_EQ(client_->get("/large", {.max_body_bytes = 100'000})->body.size(), 100'000u);
}

TEST_F(HttpClientTest, RefusesInjection) {
  EXPECT_EQ(client_->get("/hello", {.headers = {{"X-A", "b\r\nX-C: d"}}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->get("/hello", {.headers = {{"X-A: b\r\nX-C", "d"}}}).code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->get("/hello HTTP/1.1\r\nX: y\r\n\r\n").code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->get("hello").code(), Code::kInvalidArgument);
  EXPECT_EQ(client_->post("/echo", "", "text/plain\r\nX: y").code(), Code::kInvalidArgument);
}

TEST_F(HttpClientTest, StreamsEventsAsTheyCome) {
  to_send_.push("data: one\n\nda");
  std::vector<std::string> seen;
  const auto response = client_->post_events("/events", "{}", "application/json", [&](std::string_view data) {
    seen.emplace_back(data);
    // The rest is sent only once the first arrived: nothing was held back for it.
    if (seen.size() == 1) {
      to_send_.push("ta: two\n\n: ping\n\ndata: [DONE]\n\n");
      to_send_.close();
    }
    return true;
  });
  ASSERT_TRUE(response.ok()) << response.status().message();
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "");
  EXPECT_EQ(seen, (std::vector<std::string>{"one", "two", "[DONE]"}));
}

TEST_F(HttpClientTest, EndsAStreamEarlyAndIsUsableAfterwards) {
  to_send_.push("data: one\n\n");
  const auto response = client_->post_events("/events", "{}", "application/json", [](std::string_view) { return false; });
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(client_->get("/hello")->body, "hello");
}

TEST_F(HttpClientTest, AnAnswerThatIsNoStreamComesWhole) {
  const auto response = client_->post_events("/refused", "{}", "application/json", [](std::string_view) { return true; });
  ASSERT_TRUE(response.ok());
  EXPECT_EQ(response->status, 429);
  EXPECT_EQ(response->body, "{\"error\":{}}");
}

TEST_F(HttpClientTest, CancelsAWaitingCall) {
  HttpCall call;
  std::thread canceller;
  to_send_.push("data: one\n\n");
  const auto response = client_->post_events("/events", "{}", "application/json", [&](std::string_view) {
    canceller = std::thread([token = call.cancel] { token.cancel(); });
    return true;
  }, call);
  canceller.join();
  EXPECT_EQ(response.code(), Code::kCancelled);
  EXPECT_EQ(client_->get("/hello")->body, "hello");
}

TEST_F(HttpClientTest, ASecondThreadGetsBusy) {
  to_send_.push("data: one\n\n");
  Code code = Code::kOk;
  const auto response = client_->post_events("/events", "{}", "application/json", [&](std::string_view) {
    std::thread([&] { code = client_->get("/hello").code(); }).join();
    return false;
  });
  EXPECT_TRUE(response.ok());
  EXPECT_EQ(code, Code::kBusy);
}

bool sigpipe_is_blocked() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, SIGPIPE) == 1;
}

// The library writes without MSG_NOSIGNAL: a server that left between its look at the socket and its write would end the program.
TEST_F(HttpClientTest, ACallKeepsSigpipeFromItsThread) {
  to_send_.push("data: one\n\n");
  bool blocked = false;
  const auto response = client_->post_events("/events", "{}", "application/json", [&](std::string_view) {
    blocked = sigpipe_is_blocked();
    return false;
  });
  EXPECT_TRUE(response.ok());
  EXPECT_TRUE(blocked);
  EXPECT_FALSE(sigpipe_is_blocked());
}

TEST(NoSigpipe, AWriteToNobodyIsAnErrorAndLeavesNothingBehind) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  {
    const NoSigpipe guard;
    EXPECT_EQ(::write(ends[1], "x", 1), -1);
    EXPECT_EQ(errno, EPIPE);
  }
  EXPECT_FALSE(sigpipe_is_blocked());  // and the program lives: the signal was taken
  ::close(ends[1]);
}

// A server that accepts one connection and sends what it is told, then waits to be closed.
class RawServer {
 public:
  explicit RawServer(std::string answer, bool hang_up, bool drip = false) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &length), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer), hang_up, drip] { serve(answer, hang_up, drip); });
  }
  ~RawServer() {
    stopping_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    ::close(listener_);
    thread_.join();
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }

 private:
  void serve(const std::string& answer, bool hang_up, bool drip) {
    const int socket = ::accept(listener_, nullptr, nullptr);
    if (socket < 0) return;
    char buffer[4096];
    if (::recv(socket, buffer, sizeof buffer, 0) > 0 && !answer.empty()) {
      ::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    pollfd peer{socket, POLLRDHUP, 0};
    while (drip && !stopping_ && ::send(socket, "x", 1, MSG_NOSIGNAL) == 1 && ::poll(&peer, 1, 5) == 0) {
    }
    while (!hang_up && ::recv(socket, buffer, sizeof buffer, 0) > 0) {
    }
    ::close(socket);
  }

  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

HttpCall brief() {
  HttpCall call;
  call.connect_timeout = 2000ms;
  call.read_timeout = 200ms;
  call.total_timeout = 300ms;
  return call;
}

Code get_code(const std::string& url, const HttpCall& call) {
  auto client = HttpClient::create(url);
  EXPECT_TRUE(client.ok());
  return (*client)->get("/", call).code();
}

TEST(HttpClientRaw, ASilentServerIsADeadline) {
  HttpCall call = brief();
  call.total_timeout = 10'000ms;
  RawServer server("", false);
  EXPECT_EQ(get_code(server.url(), call), Code::kDeadline);
}

TEST(HttpClientRaw, ADrippingServerMeetsTheTotalDeadline) {
  RawServer header("HTTP/1.1 200 OK\r\nX-Slow: ", false, true);
  EXPECT_EQ(get_code(header.url(), brief()), Code::kDeadline);
  RawServer body("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", false, true);
  EXPECT_EQ(get_code(body.url(), brief()), Code::kDeadline);
}

TEST(HttpClientRaw, ABrokenAnswerIsUnavailable) {
  for (const char* answer : {"", "garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc",
                             "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffffff\r\nabc",
                             "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"}) {
    RawServer server(answer, true);
    HttpCall call = brief();
    call.total_timeout = 10'000ms;
    call.read_timeout = 10'000ms;
    EXPECT_EQ(get_code(server.url(), call), Code::kUnavailable) << answer;
  }
}

TEST(HttpClientCreate, NamesBadAddresses) {
  for (const char* url : {"", "127.0.0.1:80", "ftp://a:1", "http://", "http://a:1/path", "http://a:99999", "http://a:x",
                          "http://user@a:1", "http://a b:1", "http://:80"}) {
    const auto made = HttpClient::create(url);
    ASSERT_FALSE(made.ok()) << url;
    EXPECT_EQ(made.code(), Code::kInvalidArgument);
  }
  EXPECT_TRUE(HttpClient::create("http://localhost:8080").ok());
  EXPECT_TRUE(HttpClient::create("http://[::1]:8080").ok());
}

TEST(HttpClientCreate, AnAbsentServerIsUnavailable) {
  std::string url;
  { url = RawServer("", true).url(); }
  EXPECT_EQ(get_code(url, brief()), Code::kUnavailable);
}

}  // namespace
}  // namespace sluice
