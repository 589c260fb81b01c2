// SPDX-License-Identifier: GPL-3.0-or-later
// Path and method -> handler and the scope it needs. Each part of the API adds its own routes (add_routes); immutable once
// the server listens, then any thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "http/guard.h"
#include "http/http_types.h"

namespace sluice {

class RouteTable {
 public:
  using Parts = std::vector<std::string>;  // what the stars of a pattern stand for
  using Handler = std::function<HttpReply(const HttpRequest&, const Parts&)>;
  struct Route {
    Parts pattern;
    Scope scope;
    std::map<std::string, Handler> methods;
  };

  // "*" in a pattern is one segment, "**" at its end the rest, slashes included. The methods of a pattern share one scope.
  void add(Scope scope, const std::string& method, const std::string& pattern, Handler handler);
  // Null when no pattern fits. Patterns are tried in the order they were added.
  const Route* find(const std::string& path, Parts* parts) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace sluice
