// SPDX-License-Identifier: GPL-3.0-or-later
// The HTTP server: OpenAI routes and /sluice/v1. Listens from start() to stop(), whether or not a model is loaded: what needs
// one is answered 503 until Control has it. Its handlers run on threads of its own.
// start, stop and the destructor belong to one owner; the rest is thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/result.h"
#include "http/connection.h"
#include "http/control.h"
#include "store/store.h"

namespace sluice {

struct HttpServerOptions {
  std::string host = "127.0.0.1";
  int port = 8080;                         // 0 = any free one
  // Of the same host, with the same routes and checks, where editors of RLinf send (8081, 8082): text completions that come
  // in there take what they do not say from the running recipe.
  std::vector<int> editor_ports;
  // None: open, on loopback only. A key written "client:KEY" may use the OpenAI and feedback routes alone.
  std::vector<std::string> api_keys;
  std::vector<std::string> allowed_hosts;  // names a Host header may say besides loopback ones and `host`
  std::vector<std::string> cors_origins;   // "https://app.example": pages that may use the client routes
  std::string tls_certificate, tls_key;    // PEM files; both or none
  bool behind_proxy = false;               // beyond loopback: a proxy in front does TLS
  std::size_t max_body_bytes = std::size_t{32} << 20;
  // Threads. Beyond it a connection without a request gives its place up; where there is none, one waits as ConnectionTimes
  // says, then gets 503. More than max_exchanges, so that other routes are answered while completions wait.
  std::size_t max_connections = 384;
  int max_exchanges = 64 + 256;            // completions at once: that run (EngineOptions::max_running) and wait; more get 429
  ConnectionTimes times;
  const Clock* clock = &Clock::system();   // measures the silence of streams
};

class HttpServer {
 public:
  // Listens and serves from the moment it returns. All references must outlive the server. kConflict: the port is in use.
  // kInvalidArgument: an option, named (another address than loopback without keys, or without TLS and behind_proxy).
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options, Store& store, Control& control,
                                                   Log& log);
  ~HttpServer();  // stop()
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const;         // bound
  const std::vector<int>& editor_ports() const;  // bound, in the order of the options
  std::string url() const;  // "http://127.0.0.1:8080", for clients
  // For clients in this program: the same, but under TLS a plain port on loopback, since no certificate names that.
  std::string own_url() const;
  std::int64_t requests() const;  // completions answered or failed so far

  // Waits until no completion is being made; false at the deadline. That none begins is for Control's phase to say.
  bool wait_idle(SteadyTime deadline) const;
  // Hangs up on every client whose completion is being made, such as one that reads nothing and would hold the model on.
  void hang_up();
  // Refuses new requests, ends open streams with an error, joins every thread. Idempotent.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
