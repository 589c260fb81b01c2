// SPDX-License-Identifier: GPL-3.0-or-later
// The HTTP server's life: it opens before the model is loaded, stays while another one is, moves when asked, and drains.
#include <chrono>

#include "runtime/runtime_impl.h"

namespace sluice {

// Clients that come while the model loads are told so. An error only where the port is required.
Status Runtime::Impl::listen_early() {
  MutexLock moving(server_mu);
  {
    MutexLock lock(mu);
    if (!options.serve_http || server || stopping) return {};
  }
  Status listens = start_server(wanted_address());
  return options.port_required ? listens : Status();
}

// The session's stream stands still, so that only what clients asked for is waited for.
bool Runtime::Impl::drain(double seconds) {
  draining = true;
  if (const auto s = session()) s->pause();
  std::shared_ptr<HttpServer> http;
  {
    MutexLock lock(mu);
    http = server;
  }
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::duration<double>(seconds));
  return !http || http->wait_idle(Clock::system().steady() + span);
}

void Runtime::Impl::close_server() {
  // A handler that waits for the command thread, which may be this one, must not be waited for in turn.
  std::shared_ptr<HttpServer> old;
  {
    MutexLock lock(mu);
    old.swap(server);
    server_url.clear();
    own_url.clear();
  }
  server_moving = true;
  if (old) old->stop();
  server_moving = false;
}

Address Runtime::Impl::wanted_address() const {
  MutexLock lock(mu);
  return address;
}

Status Runtime::Impl::start_server(const Address& at) {
  close_server();
  HttpServerOptions http;
  http.host = at.host;
  http.port = at.port;
  http.editor_ports = options.editor_ports;
  http.api_keys = options.api_keys;
  http.allowed_hosts = options.allowed_hosts;
  http.cors_origins = options.cors_origins;
  http.tls_certificate = options.tls_certificate;
  http.tls_key = options.tls_key;
  http.behind_proxy = options.behind_proxy;
  auto started = HttpServer::start(http, *store, control, log);
  const Status status = started.ok() ? Status() : started.status();
  {
    MutexLock lock(mu);
    if (started.ok()) {
      server = std::move(started).value();
      address = {at.host, server->port()};  // a free one that was found is kept when the server has to start again
    }
    server_url = server ? server->url() : "";
    own_url = server ? server->own_url() : "";
    server_error = status.message();
  }
  if (!status.ok()) note(LogLevel::kError, "http", status.message());
  return status;
}

// One that can't be had must not cost the address that clients know.
Status Runtime::Impl::move_server(const Address& to) {
  const Address from = wanted_address();
  bool listened = false;
  {
    MutexLock lock(mu);
    listened = server != nullptr;
  }
  const Status moved = start_server(to);
  if (moved.ok()) return {};
  if (listened) (void)start_server(from);  // its failure is noted
  MutexLock lock(mu);
  return conflict(server ? moved.message() + " The server listens on " + server_url + " as before." : moved.message());
}

}  // namespace sluice
