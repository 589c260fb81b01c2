// SPDX-License-Identifier: GPL-3.0-or-later
// The one place of engine/http that knows the HTTP library. It parses the head and frames the answer; sockets, limits and
// bodies are ours (Connection), because the library trusts bodies and headers too far (engine.md §6).
#include "http/server.h"

#include <httplib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

#include "base/guarded.h"
#include "http/connection.h"
#include "http/guard.h"
#include "http/routes.h"

namespace sluice {
namespace {

constexpr auto kIdle = std::chrono::seconds(65);
constexpr auto kReadRequest = std::chrono::seconds(30);
constexpr std::size_t kMaxHeadBytes = (16 << 10) + (8 << 10);  // headers and request line
constexpr int kBacklog = 256;

// The library's view of a Connection.
class ConnectionStream final : public httplib::Stream {
 public:
  ConnectionStream(Connection& connection, std::string ip, int port)
      : connection_(connection), ip_(std::move(ip)), port_(port) {}
  bool is_readable() const override { return true; }
  bool is_writable() const override { return connection_.writable(); }
  ssize_t read(char* ptr, size_t size) override { return connection_.read(ptr, size); }
  ssize_t write(const char* ptr, size_t size) override {
    return connection_.write(ptr, size) ? static_cast<ssize_t>(size) : -1;
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { ip = ip_, port = port_; }
  void get_local_ip_and_port(std::string& ip, int& port) const override { ip.clear(), port = 0; }
  socket_t socket() const override { return connection_.fd(); }

 private:
  Connection& connection_;
  const std::string ip_;
  const int port_;
};

// As many threads as there are connections at once, up to a limit; a stream holds its thread for its whole life.
class ConnectionThreads final : public httplib::TaskQueue {
 public:
  explicit ConnectionThreads(std::size_t most) : most_(most) {}

  void enqueue(std::function<void()> task) override {
    MutexLock lock(mu_);
    tasks_.push_back(std::move(task));
    if (tasks_.size() > idle_ && threads_.size() < most_) threads_.emplace_back([this] { work(); });
    ready_.notify_one();
  }
  void shutdown() override {
    std::vector<std::thread> threads;
    {
      MutexLock lock(mu_);
      stop_ = true;
      ready_.notify_all();
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  void work() {
    while (true) {
      std::function<void()> task;
      {
        MutexLock lock(mu_);
        ++idle_;
        while (tasks_.empty() && !stop_) ready_.wait(mu_);
        --idle_;
        if (tasks_.empty()) return;
        task = std::move(tasks_.front());
        tasks_.pop_front();
      }
      task();
    }
  }

  const std::size_t most_;
  Mutex mu_;
  CondVar ready_;
  std::deque<std::function<void()>> tasks_ SLUICE_GUARDED_BY(mu_);
  std::vector<std::thread> threads_ SLUICE_GUARDED_BY(mu_);
  std::size_t idle_ SLUICE_GUARDED_BY(mu_) = 0;
  bool stop_ SLUICE_GUARDED_BY(mu_) = false;
};

std::pair<std::string, int> peer_of(int fd) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = {}, port[NI_MAXSERV] = {};
  if (getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0) {
    return {"", 0};
  }
  return {host, std::atoi(port)};
}

std::string collapse_slashes(const std::string& path) {
  std::string out;
  for (const char c : path) {
    if (c != '/' || out.empty() || out.back() != '/') out += c;
  }
  return out;
}

HttpRequest to_request(const httplib::Request& in, Connection& connection) {
  HttpRequest out;
  out.method = in.method == "HEAD" ? "GET" : in.method;
  out.path = collapse_slashes(in.path);
  out.version = in.version;
  out.remote_addr = in.remote_addr;
  for (const auto& [name, value] : in.params) out.query.emplace(name, value);
  for (const auto& [name, value] : in.headers) {
    // The library adds these four itself; as headers they mean nothing.
    if (name == "REMOTE_ADDR" || name == "REMOTE_PORT" || name == "LOCAL_ADDR" || name == "LOCAL_PORT") continue;
    out.headers.emplace_back(name, value);
  }
  out.gone = [&connection] { return connection.peer_gone(); };
  return out;
}

class SinkOfLibrary final : public StreamSink {
 public:
  explicit SinkOfLibrary(httplib::DataSink& sink) : sink_(sink) {}
  bool write(std::string_view bytes) override {
    if (ok_) ok_ = sink_.write(bytes.data(), bytes.size());
    return ok_;
  }
  bool alive() const override { return ok_ && sink_.is_writable(); }
  bool ok() const { return ok_; }

 private:
  httplib::DataSink& sink_;
  bool ok_ = true;
};

void fill_response(HttpReply reply, const httplib::Request& request, httplib::Response& response) {
  response.status = reply.status;
  for (const auto& [name, value] : reply.headers) response.set_header(name, value);
  if (!reply.stream) {
    response.set_content(reply.body, reply.content_type);
    return;
  }
  const auto provider = [stream = std::move(reply.stream)](size_t, httplib::DataSink& sink) {
    SinkOfLibrary own(sink);
    stream(own);
    if (own.ok()) sink.done();
    return own.ok();
  };
  if (request.version == "HTTP/1.0") {
    response.set_content_provider(reply.content_type, provider);  // ends with the connection
  } else {
    response.set_chunked_content_provider(reply.content_type, provider);
  }
}

std::string url_host(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

}  // namespace

class HttpServer::Impl : public httplib::Server {
 public:
  Impl(const HttpServerOptions& options, CompletionService& service, Store& store, Control& control, Log& log)
      : options_(options),
        log_(log),
        guard_({options.host, options.api_keys, options.allowed_hosts, options.max_body_bytes}),
        routes_(guard_, service, store, control, log, stopping_, options.max_exchanges, *options.clock),
        stop_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    new_task_queue = [most = options.max_connections] { return new ConnectionThreads(most); };
    // The library's default shares the port with other programs of the user; only a port still closing may be taken over.
    set_socket_options([](socket_t sock) {
      const int on = 1;
      setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    });
    set_tcp_nodelay(true);
    set_keep_alive_max_count(1'000'000'000);
    set_keep_alive_timeout(kIdle.count());
    set_pre_routing_handler([this](const httplib::Request& in, httplib::Response& out) {
      answer(in, out);
      return HandlerResponse::Handled;
    });
    set_error_handler(HandlerWithResponse([this](const httplib::Request&, httplib::Response& out) {
      if (!out.body.empty()) return HandlerResponse::Handled;
      refuse_head(out);
      return HandlerResponse::Handled;
    }));
    set_exception_handler([this](const httplib::Request& in, httplib::Response& out, std::exception_ptr) {
      log_.error("http", "unexpected error in " + in.method + " " + in.path);
      out.status = 500;
    });
  }
  ~Impl() override {
    stop_all();
    ::close(stop_fd_);
  }

  Status listen_on(const std::string& host, int port) {
    errno = 0;
    port_ = port == 0 ? bind_to_any_port(host) : bind_to_port(host, port) ? port : -1;
    if (port_ < 0) return bind_error(host, port, errno);
    ::listen(svr_sock_, kBacklog);
    thread_ = std::thread([this] { listen_after_bind(); });
    while (!is_running()) std::this_thread::yield();
    return Status();
  }

  void stop_all() {
    if (!thread_.joinable()) return;
    stopping_ = true;
    const std::uint64_t one = 1;
    (void)!::write(stop_fd_, &one, sizeof one);
    stop();
    thread_.join();  // joins the connections' threads too
  }

  int port() const { return port_; }
  std::int64_t requests() const { return routes_.metrics().requests(); }
  const HttpServerOptions& options() const { return options_; }

 private:
  static Status bind_error(const std::string& host, int port, int why) {
    if (why == EADDRINUSE) {
      return conflict("Port " + std::to_string(port) +
                      " is in use by another program: close that program, or choose another port");
    }
    if (why == EACCES) return invalid_argument("Port " + std::to_string(port) + " needs more rights: choose one above 1023");
    return invalid_argument("Can't listen on " + host + " port " + std::to_string(port) +
                            (why != 0 ? ": " + std::string(std::strerror(why)) : "") +
                            ". Use an address of this machine, such as 127.0.0.1");
  }

  bool process_and_close_socket(socket_t sock) override {
    Connection connection(sock, stop_fd_, kMaxHeadBytes);
    const auto [ip, port] = peer_of(sock);
    ConnectionStream stream(connection, ip, port);
    current_ = &connection;
    while (connection.wait_request(kIdle)) {
      connection.begin_request(kReadRequest);
      connection.must_close = true;  // until the head was understood
      bool closed = false;
      const bool ok = process_request(stream, false, closed, [&](httplib::Request& request) { take_head(request); });
      if (!ok || closed || connection.must_close || stopping_) break;
    }
    current_ = nullptr;
    return true;
  }

  // The head was parsed. What the library would act on by itself is taken away here.
  void take_head(httplib::Request& request) {
    current_->end_head();
    request.headers.erase("Accept-Encoding");
    request.ranges.clear();
    framing_ = BodyFraming();
    refusal_.reset();
    const HttpRequest own = to_request(request, *current_);
    if (auto error = guard_.check_head(own, &framing_)) {
      refusal_ = error_reply(*error);
    } else {
      refusal_ = routes_.admit(own);
      const bool has_body = framing_.chunked || framing_.length > 0;
      if (!refusal_ || !has_body) current_->must_close = false;  // a refused body is not read
    }
    if (current_->must_close) {
      request.headers.erase("Connection");
      request.headers.emplace("Connection", "close");
      request.headers.erase("Expect");
    }
  }

  void answer(const httplib::Request& in, httplib::Response& out) {
    if (!refusal_) {
      HttpRequest request = to_request(in, *current_);
      const Status body = current_->read_body(framing_.chunked, framing_.length, options_.max_body_bytes, &request.body);
      if (body.ok()) {
        HttpReply reply = routes_.handle(request);
        add_request_id(request, &reply);
        routes_.count_error(reply);
        return fill_response(std::move(reply), in, out);
      }
      ApiError error;
      error.status = body.code() == Code::kBusy ? 413 : 400;
      error.code = error.status == 413 ? "request_too_large" : "invalid_value";
      error.message = body.message();
      current_->must_close = true;
      refusal_ = error_reply(error);
    }
    if (current_->must_close) out.set_header("Connection", "close");
    routes_.count_error(*refusal_);
    fill_response(std::move(*refusal_), in, out);
    refusal_.reset();
  }

  // The library gave up on the head before our guard saw it.
  void refuse_head(httplib::Response& out) {
    ApiError error;
    error.status = out.status;
    error.code = "invalid_value";
    error.message = "The request is not valid HTTP";
    if (current_ != nullptr && current_->head_too_large()) {
      error.status = 431;
      error.code = "header_too_large";
      error.message = "The request has too many or too long headers";
    } else if (out.status == 414) {
      error.code = "request_too_large";
      error.message = "The request's address is too long";
    } else if (out.status == 500) {
      error.code = "internal_error";
      error.message = "The server met an unexpected error: its log says more";
    }
    HttpReply reply = error_reply(error);
    routes_.count_error(reply);
    out.status = reply.status;
    out.set_header("Connection", "close");
    out.set_content(reply.body, reply.content_type);
  }

  static void add_request_id(const HttpRequest& request, HttpReply* reply) {
    const std::string_view given = request.header("x-request-id");
    reply->headers.emplace_back("x-request-id",
                                given.empty() ? "req_" + RecordId::make().text.substr(4) : std::string(given.substr(0, 256)));
  }

  const HttpServerOptions options_;
  Log& log_;
  std::atomic<bool> stopping_{false};
  const Guard guard_;
  Routes routes_;
  const int stop_fd_;
  int port_ = -1;
  std::thread thread_;

  // What the library's callbacks need to know of the connection that their thread serves.
  static thread_local Connection* current_;
  static thread_local BodyFraming framing_;
  static thread_local std::optional<HttpReply> refusal_;
};

thread_local Connection* HttpServer::Impl::current_ = nullptr;
thread_local BodyFraming HttpServer::Impl::framing_;
thread_local std::optional<HttpReply> HttpServer::Impl::refusal_;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, CompletionService& service,
                                                      Store& store, Control& control, Log& log) {
  if (options.port < 0 || options.port > 65535) {
    return invalid_argument("Port " + std::to_string(options.port) + " does not exist: choose one from 0 to 65535");
  }
  for (const std::string& key : options.api_keys) {
    if (key.empty() || key == "client:") return invalid_argument("An API key is empty");
  }
  if (!is_loopback_host(options.host)) {
    if (options.api_keys.empty()) {
      return invalid_argument("Listening on " + options.host + " makes the server reachable from outside: give API keys first");
    }
    if (!options.behind_proxy) {
      return invalid_argument("Listening on " + options.host +
                              " needs a proxy in front that encrypts the traffic: say --behind-proxy once it stands there");
    }
  }
  auto impl = std::make_unique<Impl>(options, service, store, control, log);
  SLUICE_RETURN_IF_ERROR(impl->listen_on(options.host, options.port));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

int HttpServer::port() const { return impl_->port(); }
std::string HttpServer::url() const {
  return "http://" + url_host(impl_->options().host) + ":" + std::to_string(impl_->port());
}
std::int64_t HttpServer::requests() const { return impl_->requests(); }
void HttpServer::stop() { impl_->stop_all(); }

}  // namespace sluice
