// SPDX-License-Identifier: GPL-3.0-or-later
// Path and method -> handler, with the scope each route needs. Thread-safe; holds the handlers' state.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "http/completions.h"
#include "http/guard.h"
#include "http/metrics.h"
#include "http/sluice_api.h"

namespace sluice {

class Routes {
 public:
  Routes(const Guard& guard, CompletionService& service, Store& store, Control& control, Log& log,
         const std::atomic<bool>& stopping, int max_exchanges);

  // Before the body is read: is there such a route, may this client use it, does the body's type fit? Sets the error's
  // headers too (Allow).
  std::optional<HttpReply> admit(const HttpRequest& request) const;
  // With the body. Never throws.
  HttpReply handle(const HttpRequest& request);

  const Metrics& metrics() const { return metrics_; }
  void count_error(const HttpReply& reply);

 private:
  using Handler = std::function<HttpReply(const HttpRequest&, const std::vector<std::string>& parts)>;
  struct Route {
    std::vector<std::string> pattern;  // "*" = one segment, "**" = the rest, slashes included
    Scope scope;
    std::map<std::string, Handler> methods;
  };

  void add(const std::string& pattern, Scope scope, const std::string& method, Handler handler);
  void add_openai_routes();
  void add_sluice_routes();
  // The route and what its stars stand for.
  const Route* find(const std::string& path, std::vector<std::string>* parts) const;

  const Guard& guard_;
  Store& store_;
  Control& control_;
  Log& log_;
  Metrics metrics_;
  Completions completions_;
  SluiceApi api_;
  std::vector<Route> routes_;
};

}  // namespace sluice
