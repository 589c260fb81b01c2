// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <exception>

#include "http/guard.h"
#include "http/http_head.h"
#include "http/listener.h"
#include "http/routes.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxHeadBytes = (16 << 10) + (8 << 10);  // headers and request line
constexpr const char* kLoopback = "127.0.0.1";

std::string url_of(const char* scheme, const std::string& host, int port) {
  const bool v6 = host.find(':') != std::string::npos;
  return std::string(scheme) + "://" + (v6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

// A stream's bytes on the wire.
class ConnectionSink final : public StreamSink {
 public:
  ConnectionSink(Connection& connection, bool chunked) : connection_(connection), chunked_(chunked) {}
  bool write(std::string_view bytes) override {
    if (!ok_ || bytes.empty()) return ok_;
    if (!chunked_) return ok_ = connection_.write(bytes);
    char size[20];
    std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
    return ok_ = connection_.write(size + std::string(bytes) + "\r\n");
  }
  bool alive() const override { return ok_ && !connection_.peer_gone(); }
  bool end() { return ok_ && (!chunked_ || connection_.write("0\r\n\r\n")); }

 private:
  Connection& connection_;
  const bool chunked_;
  bool ok_ = true;
};

Status check_options(const HttpServerOptions& options) {
  for (const int port : options.editor_ports) {
    if (port < 0 || port > 65535) return invalid_argument("Port " + std::to_string(port) + " does not exist: choose one from 0 to 65535");
  }
  if (options.port < 0 || options.port > 65535) {
    return invalid_argument("Port " + std::to_string(options.port) + " does not exist: choose one from 0 to 65535");
  }
  SLUICE_RETURN_IF_ERROR(check_guard_options(options.api_keys, options.cors_origins));
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return invalid_argument("TLS needs both a certificate and its key");
  }
  if (is_loopback_host(options.host)) return Status();
  if (options.api_keys.empty()) {
    return invalid_argument("Listening on " + options.host + " makes the server reachable from outside: give API keys first");
  }
  if (options.tls_key.empty() && !options.behind_proxy) {
    return invalid_argument("Listening on " + options.host +
                            " needs encryption: give a TLS certificate and key, or say --behind-proxy once a proxy does it");
  }
  return Status();
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const HttpServerOptions& options, Store& store, Control& control, Log& log)
      : options_(options),
        log_(log),
        guard_({options.host, options.api_keys, options.allowed_hosts, options.cors_origins, options.max_body_bytes}),
        routes_(guard_, store, control, log, stopping_, options.max_exchanges, *options.clock),
        listener_(options.max_connections, options.times.queued,
                  [this](int fd, const std::string& peer, Door door) { serve(fd, peer, door); },
                  [this](int fd, Door door) { turn_away(fd, door); }) {}
  ~Impl() { stop_all(); }

  Status listen() {
    const bool tls = !options_.tls_key.empty();
    if (tls) {
      SLUICE_ASSIGN_OR_RETURN(tls_, TlsContext::load(options_.tls_certificate, options_.tls_key));
    }
    SLUICE_ASSIGN_OR_RETURN(port_, listener_.bind(options_.host, options_.port, {tls, false}));
    own_port_ = port_;
    if (tls) {
      SLUICE_ASSIGN_OR_RETURN(own_port_, listener_.bind(kLoopback, 0, {false, false}));
    }
    for (const int port : options_.editor_ports) {
      SLUICE_ASSIGN_OR_RETURN(const int bound, listener_.bind(options_.host, port, {tls, true}));
      editor_ports_.push_back(bound);
    }
    listener_.start();
    return Status();
  }

  void stop_all() {
    stopping_ = true;
    listener_.stop();
  }

  int port() const { return port_; }
  const std::vector<int>& editor_ports() const { return editor_ports_; }
  std::string url() const { return url_of(tls_ ? "https" : "http", options_.host, port_); }
  std::string own_url() const { return tls_ ? url_of("http", kLoopback, own_port_) : url(); }
  Routes& routes() { return routes_; }

 private:
  // One connection to its end, on its own thread.
  void serve(int fd, const std::string& peer, Door door) {
    std::unique_ptr<TlsSession> session = door.tls ? tls_->accept(fd) : nullptr;
    const bool usable = !door.tls || session != nullptr;
    Connection connection(fd, listener_.stop_fd(), listener_.wanted_fd(), options_.times, std::move(session));
    if (!usable) return log_.error("http", "no memory for an encrypted connection: it was closed");  // never in plain instead
    try {
      while (!stopping_ && connection.wait_request()) {
        if (!serve_request(connection, peer, door.editors) || connection.must_close) break;
      }
    } catch (const std::exception& e) {
      log_.error("http", std::string("a connection ended by an unexpected error: ") + e.what());
    }
  }

  // Every thread has a request. Under TLS nothing can be said without a handshake, which nobody is free to make.
  void turn_away(int fd, Door door) {
    if (!door.tls) {
      ApiError error = make_error(503, "too_many_connections", "Every connection is in use: try again later");
      error.retry_after_s = routes_.completions().retry_after();
      const HttpReply reply = error_reply(error);
      routes_.count_error(reply);
      const std::string bytes = answer_head(reply, AnswerFraming::kLength, reply.body.size(), false) + reply.body;
      (void)!::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      ::shutdown(fd, SHUT_WR);
      char rest[4096];  // what came is read away, else the kernel resets the connection and the answer may be lost
      while (::recv(fd, rest, sizeof rest, MSG_DONTWAIT) > 0) {
      }
    }
    ::close(fd);
  }

  // One request and its answer. False: the connection is of no more use.
  bool serve_request(Connection& connection, const std::string& peer, bool from_editor) {
    connection.must_close = true;  // until the request was understood
    std::string head;
    const Status read = connection.read_head(kMaxHeadBytes, &head);
    if (read.code() == Code::kCancelled) return false;
    HttpRequest request;
    request.remote_addr = peer;
    request.from_editor = from_editor;
    request.gone = [&connection] { return connection.peer_gone(); };
    request.hang_up = [&connection] { connection.hang_up(); };
    if (read.code() == Code::kBusy) return refuse(connection, request, make_error(431, "header_too_large", read.message()));
    if (!read.ok()) return refuse(connection, request, make_error(400, "invalid_value", read.message()));
    if (auto error = parse_request_head(head, &request)) return refuse(connection, request, *error);
    const bool head_only = request.method == "HEAD";
    if (head_only) request.method = "GET";
    BodyFraming framing;
    if (auto error = guard_.check_head(request, &framing)) return refuse(connection, request, *error, head_only);
    const bool keep = wants_keep_alive(request);
    const bool has_body = framing.chunked || framing.length > 0;
    if (std::optional<HttpReply> refusal = routes_.admit(request)) {
      connection.must_close = !keep || has_body;  // a refused body is not read
      return send(connection, request, std::move(*refusal), head_only);
    }
    if (has_body && request.version == "HTTP/1.1" && request.header("Expect") == "100-continue" &&
        !connection.write("HTTP/1.1 100 Continue\r\n\r\n")) {
      return false;
    }
    const Status body = connection.read_body(framing.chunked, framing.length, options_.max_body_bytes, &request.body);
    if (!body.ok()) {
      const bool large = body.code() == Code::kBusy;
      return refuse(connection, request, make_error(large ? 413 : 400, large ? "request_too_large" : "invalid_value", body.message()),
                    head_only);
    }
    connection.must_close = !keep;
    return send(connection, request, routes_.handle(request), head_only);
  }

  bool refuse(Connection& connection, const HttpRequest& request, const ApiError& error, bool head_only = false) {
    return send(connection, request, error_reply(error), head_only);
  }

  bool send(Connection& connection, const HttpRequest& request, HttpReply reply, bool head_only) {
    routes_.count_error(reply);
    if (!options_.cors_origins.empty()) guard_.add_cors(request, routes_.scope_of(request.path), &reply);
    const std::string_view id = request.header("x-request-id");
    reply.headers.emplace_back("x-request-id", id.empty() ? "req_" + RecordId::make().text.substr(4) : std::string(id.substr(0, 256)));
    if (!reply.stream) {
      std::string whole = answer_head(reply, AnswerFraming::kLength, reply.body.size(), !connection.must_close);
      if (!head_only && reply.status != 204) whole += reply.body;
      return connection.write(whole);
    }
    const bool chunked = request.version == "HTTP/1.1";
    connection.must_close |= !chunked;
    const auto framing = chunked ? AnswerFraming::kChunked : AnswerFraming::kUntilClose;
    if (!connection.write(answer_head(reply, framing, 0, !connection.must_close)) || head_only) return head_only;
    ConnectionSink sink(connection, chunked);
    reply.stream(sink);
    return sink.end();
  }

  const HttpServerOptions options_;
  Log& log_;
  std::atomic<bool> stopping_{false};
  const Guard guard_;
  Routes routes_;
  std::unique_ptr<TlsContext> tls_;
  int port_ = -1, own_port_ = -1;
  std::vector<int> editor_ports_;
  Listener listener_;  // last: its threads use all of the above
};

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options, Store& store, Control& control,
                                                      Log& log) {
  SLUICE_RETURN_IF_ERROR(check_options(options));
  auto impl = std::make_unique<Impl>(options, store, control, log);
  SLUICE_RETURN_IF_ERROR(impl->listen());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(impl)));
}

HttpServer::HttpServer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { stop(); }

int HttpServer::port() const { return impl_->port(); }
const std::vector<int>& HttpServer::editor_ports() const { return impl_->editor_ports(); }
std::string HttpServer::url() const { return impl_->url(); }
std::string HttpServer::own_url() const { return impl_->own_url(); }
std::int64_t HttpServer::requests() const { return impl_->routes().metrics().requests(); }
bool HttpServer::wait_idle(SteadyTime deadline) const { return impl_->routes().completions().wait_idle(deadline); }
void HttpServer::hang_up() { impl_->routes().completions().hang_up(); }
void HttpServer::stop() { impl_->stop_all(); }

}  // namespace sluice
