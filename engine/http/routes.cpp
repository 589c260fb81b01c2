// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/routes.h"

#include <exception>
#include <nlohmann/json.hpp>

#include "base/excerpt.h"

namespace sluice {
namespace {

bool is_json_type(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  if (!same_name(type.substr(0, kJson.size()), kJson)) return false;
  return type.size() == kJson.size() || type[kJson.size()] == ';' || type[kJson.size()] == ' ';
}

std::string methods_of(const RouteTable::Route& route) {
  std::string out;
  for (const auto& [method, handler] : route.methods) out += (out.empty() ? "" : ", ") + method;
  return out;
}

}  // namespace

Routes::Routes(const Guard& guard, Store& store, Control& control, Log& log, const std::atomic<bool>& stopping,
               int max_exchanges, const Clock& clock)
    : guard_(guard),
      store_(store),
      control_(control),
      log_(log),
      metrics_(store),
      completions_(control, metrics_, stopping, max_exchanges, clock),
      models_(control),
      labels_(store, completions_, metrics_, control),
      feedback_(store, labels_),
      compat_(store, labels_),
      records_(store, completions_),
      release_(store, control),
      sessions_(store, control),
      events_(control, stopping),
      adapters_(store, control),
      engine_(control),
      text_(control) {
  completions_.add_routes(table_);
  models_.add_routes(table_);
  feedback_.add_routes(table_);
  compat_.add_routes(table_);
  records_.add_routes(table_);
  release_.add_routes(table_);
  sessions_.add_routes(table_);
  events_.add_routes(table_);
  adapters_.add_routes(table_);
  engine_.add_routes(table_);
  text_.add_routes(table_);
  table_.add(Scope::kClient, "GET", "/metrics", [this](const HttpRequest&, const RouteTable::Parts&) {
    HttpReply reply;
    reply.content_type = "text/plain; version=0.0.4";
    reply.body = metrics_.text(store_, control_);
    return reply;
  });
}

std::optional<Scope> Routes::scope_of(const std::string& path) const {
  RouteTable::Parts parts;
  const RouteTable::Route* route = table_.find(path, &parts);
  return route == nullptr ? std::nullopt : std::optional(route->scope);
}

std::optional<HttpReply> Routes::admit(const HttpRequest& request) const {
  RouteTable::Parts parts;
  const RouteTable::Route* route = table_.find(request.path, &parts);
  if (route != nullptr && request.method == "OPTIONS") return guard_.preflight(request, route->scope, methods_of(*route));
  if (auto error = guard_.check_access(request, route == nullptr ? Scope::kClient : route->scope)) return error_reply(*error);
  if (route == nullptr) {
    return error_reply(make_error(404, "route_not_found", "There is no route " + excerpt(request.path)));
  }
  if (route->methods.count(request.method) == 0) {
    HttpReply reply =
        error_reply(make_error(405, "method_not_allowed", excerpt(request.path) + " does not take " + excerpt(request.method)));
    reply.headers.emplace_back("Allow", methods_of(*route));
    return reply;
  }
  const bool has_body = !request.header("Transfer-Encoding").empty() ||
                        (!request.header("Content-Length").empty() && request.header("Content-Length") != "0");
  if (has_body && (request.method == "POST" || request.method == "PUT") && !is_json_type(request.header("Content-Type"))) {
    return error_reply(make_error(415, "unsupported_media_type", "Content-Type must be application/json"));
  }
  return std::nullopt;
}

HttpReply Routes::handle(const HttpRequest& request) {
  RouteTable::Parts parts;
  const RouteTable::Route* route = table_.find(request.path, &parts);
  try {
    return route->methods.at(request.method)(request, parts);
  } catch (const std::exception& e) {
    log_.error("http", request.method + " " + request.path + ": " + e.what());
    return error_reply(make_error(500, "internal_error", "The server met an unexpected error: its log says more"));
  }
}

void Routes::count_error(const HttpReply& reply) {
  if (reply.status < 400) return;
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  const bool known = json.is_object() && json.contains("error") && json["error"]["code"].is_string();
  metrics_.count_error(known ? json["error"]["code"].get<std::string>() : std::to_string(reply.status));
}

}  // namespace sluice
