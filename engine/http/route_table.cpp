// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/route_table.h"

#include <algorithm>

namespace sluice {
namespace {

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t from = 1;
  while (from <= path.size()) {
    const std::size_t to = std::min(path.find('/', from), path.size());
    parts.push_back(path.substr(from, to - from));
    from = to + 1;
  }
  return parts;
}

bool fits(const RouteTable::Parts& pattern, const std::vector<std::string>& segments, RouteTable::Parts* parts) {
  parts->clear();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == "**") {
      std::string rest;
      for (std::size_t k = i; k < segments.size(); ++k) rest += (k == i ? "" : "/") + segments[k];
      parts->push_back(rest);
      return !rest.empty();
    }
    if (i >= segments.size()) return false;
    if (pattern[i] == "*" ? segments[i].empty() : pattern[i] != segments[i]) return false;
    if (pattern[i] == "*") parts->push_back(segments[i]);
  }
  return pattern.size() == segments.size();
}

}  // namespace

void RouteTable::add(Scope scope, const std::string& method, const std::string& pattern, Handler handler) {
  const std::vector<std::string> parts = split(pattern);
  for (Route& route : routes_) {
    if (route.pattern != parts) continue;
    route.methods[method] = std::move(handler);
    return;
  }
  routes_.push_back({parts, scope, {{method, std::move(handler)}}});
}

const RouteTable::Route* RouteTable::find(const std::string& path, Parts* parts) const {
  const std::vector<std::string> segments = split(path);
  for (const Route& route : routes_) {
    if (fits(route.pattern, segments, parts)) return &route;
  }
  return nullptr;
}

}  // namespace sluice
