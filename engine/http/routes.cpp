// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/routes.h"

#include <strings.h>

#include <exception>
#include <nlohmann/json.hpp>

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

bool is_json_type(std::string_view type) {
  constexpr std::string_view kJson = "application/json";
  if (type.size() < kJson.size() || strncasecmp(type.data(), kJson.data(), kJson.size()) != 0) return false;
  return type.size() == kJson.size() || type[kJson.size()] == ';' || type[kJson.size()] == ' ';
}

ApiError simple_error(int status, const std::string& code, const std::string& message) {
  ApiError error;
  error.status = status;
  error.code = code;
  error.message = message;
  return error;
}

}  // namespace

Routes::Routes(const Guard& guard, CompletionService& service, Store& store, Control& control, Log& log,
               const std::atomic<bool>& stopping, int max_exchanges)
    : guard_(guard),
      store_(store),
      control_(control),
      log_(log),
      completions_(service, control, metrics_, stopping, max_exchanges),
      api_(store, control, completions_, metrics_, service.context_length()) {
  add_openai_routes();
  add_sluice_routes();
}

void Routes::add(const std::string& pattern, Scope scope, const std::string& method, Handler handler) {
  const std::vector<std::string> parts = split(pattern);
  for (Route& route : routes_) {
    if (route.pattern == parts) {
      route.methods[method] = std::move(handler);
      return;
    }
  }
  routes_.push_back({parts, scope, {{method, std::move(handler)}}});
}

void Routes::add_openai_routes() {
  using Parts = std::vector<std::string>;
  add("/health", Scope::kOpen, "GET", [this](const HttpRequest&, const Parts&) { return api_.health(); });
  add("/healthz", Scope::kOpen, "GET", [this](const HttpRequest&, const Parts&) { return api_.healthz(); });
  add("/metrics", Scope::kClient, "GET", [this](const HttpRequest&, const Parts&) {
    HttpReply reply;
    reply.content_type = "text/plain; version=0.0.4";
    reply.body = metrics_.text(store_, control_);
    return reply;
  });
  add("/v1/models", Scope::kClient, "GET", [this](const HttpRequest&, const Parts&) { return api_.models(); });
  add("/v1/models/**", Scope::kClient, "GET", [this](const HttpRequest&, const Parts& p) { return api_.model(p[0]); });
  add("/v1/chat/completions", Scope::kClient, "POST",
      [this](const HttpRequest& r, const Parts&) { return completions_.handle(r, true); });
  add("/v1/completions", Scope::kClient, "POST",
      [this](const HttpRequest& r, const Parts&) { return completions_.handle(r, false); });
}

void Routes::add_sluice_routes() {
  using Parts = std::vector<std::string>;
  const std::string base = "/sluice/v1/";
  const std::string feedback = base + "feedback";
  add(feedback, Scope::kClient, "POST", [this](const HttpRequest& r, const Parts&) { return api_.post_feedback(r); });
  add(feedback, Scope::kClient, "GET", [this](const HttpRequest& r, const Parts&) { return api_.get_feedback(r); });
  add(feedback + "/batch", Scope::kClient, "POST",
      [this](const HttpRequest& r, const Parts&) { return api_.post_feedback_batch(r); });
  add(feedback + "/*", Scope::kClient, "DELETE",
      [this](const HttpRequest&, const Parts& p) { return api_.delete_feedback(p[0]); });
  add(base + "status", Scope::kAdmin, "GET", [this](const HttpRequest&, const Parts&) { return api_.status(); });
  add(base + "adapters", Scope::kAdmin, "GET", [this](const HttpRequest&, const Parts&) { return api_.adapters(); });
  add(base + "gate", Scope::kAdmin, "GET", [this](const HttpRequest&, const Parts&) { return api_.get_gate(); });
  add(base + "gate", Scope::kAdmin, "PUT", [this](const HttpRequest& r, const Parts&) { return api_.put_gate(r); });
  add(base + "decisions", Scope::kAdmin, "GET", [this](const HttpRequest& r, const Parts&) { return api_.decisions(r); });
  add(base + "decisions", Scope::kAdmin, "POST",
      [this](const HttpRequest& r, const Parts&) { return api_.post_decision(r); });
  add(base + "records", Scope::kAdmin, "GET", [this](const HttpRequest& r, const Parts&) { return api_.records(r); });
  add(base + "records/*", Scope::kAdmin, "GET", [this](const HttpRequest&, const Parts& p) { return api_.record(p[0]); });
  add(base + "sessions", Scope::kAdmin, "GET", [this](const HttpRequest&, const Parts&) { return api_.sessions(); });
  add(base + "sessions", Scope::kAdmin, "POST",
      [this](const HttpRequest& r, const Parts&) { return api_.start_session(r); });
  for (const std::string action : {"pause", "resume", "end"}) {
    add(base + "sessions/*/" + action, Scope::kAdmin, "POST",
        [this, action](const HttpRequest&, const Parts& p) { return api_.change_session(p[0], action); });
  }
}

const Routes::Route* Routes::find(const std::string& path, std::vector<std::string>* parts) const {
  const std::vector<std::string> segments = split(path);
  for (const Route& route : routes_) {
    parts->clear();
    bool fits = true;
    std::size_t i = 0;
    for (; fits && i < route.pattern.size(); ++i) {
      if (route.pattern[i] == "**") {
        std::string rest;
        for (std::size_t k = i; k < segments.size(); ++k) rest += (k == i ? "" : "/") + segments[k];
        parts->push_back(rest);
        fits = !rest.empty();
        i = segments.size();
        break;
      }
      fits = i < segments.size() && (route.pattern[i] == "*" ? !segments[i].empty() : route.pattern[i] == segments[i]);
      if (fits && route.pattern[i] == "*") parts->push_back(segments[i]);
    }
    if (fits && i == segments.size()) return &route;
  }
  return nullptr;
}

std::optional<HttpReply> Routes::admit(const HttpRequest& request) const {
  std::vector<std::string> parts;
  const Route* route = find(request.path, &parts);
  if (auto error = guard_.check_access(request, route == nullptr ? Scope::kClient : route->scope)) return error_reply(*error);
  if (route == nullptr) {
    return error_reply(simple_error(404, "route_not_found", "There is no route " + request.path));
  }
  if (route->methods.count(request.method) == 0) {
    HttpReply reply =
        error_reply(simple_error(405, "method_not_allowed", request.path + " does not take " + request.method));
    std::string allowed;
    for (const auto& [method, handler] : route->methods) allowed += (allowed.empty() ? "" : ", ") + method;
    reply.headers.emplace_back("Allow", allowed);
    return reply;
  }
  const bool has_body = !request.header("Transfer-Encoding").empty() ||
                        (!request.header("Content-Length").empty() && request.header("Content-Length") != "0");
  if (has_body && (request.method == "POST" || request.method == "PUT") && !is_json_type(request.header("Content-Type"))) {
    return error_reply(simple_error(415, "unsupported_media_type", "Content-Type must be application/json"));
  }
  return std::nullopt;
}

HttpReply Routes::handle(const HttpRequest& request) {
  std::vector<std::string> parts;
  const Route* route = find(request.path, &parts);
  try {
    return route->methods.at(request.method)(request, parts);
  } catch (const std::exception& e) {
    log_.error("http", request.method + " " + request.path + ": " + e.what());
    return error_reply(simple_error(500, "internal_error", "The server met an unexpected error: its log says more"));
  }
}

void Routes::count_error(const HttpReply& reply) {
  if (reply.status < 400) return;
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  const bool known = json.is_object() && json.contains("error") && json["error"]["code"].is_string();
  metrics_.count_error(known ? json["error"]["code"].get<std::string>() : std::to_string(reply.status));
}

}  // namespace sluice
