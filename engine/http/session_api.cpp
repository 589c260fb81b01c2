// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/session_api.h"

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/api_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

Json session_json(const SessionRow& s) {
  return {{"id", s.id.value},
          {"name", s.name},
          {"recipe", s.recipe_name},
          {"seed", s.seed},
          {"state", session_state_name(s.state)},
          {"live_only", s.live_only},
          {"started_us", s.started_us},
          {"ended_us", s.ended_us == 0 ? Json() : Json(s.ended_us)}};
}

}  // namespace

void SessionApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/";
  table.add(Scope::kAdmin, "GET", base + "status", [this](const HttpRequest&, const Parts&) { return status(); });
  table.add(Scope::kAdmin, "GET", base + "sessions", [this](const HttpRequest&, const Parts&) { return sessions(); });
  table.add(Scope::kAdmin, "POST", base + "sessions",
            [this](const HttpRequest& r, const Parts&) { return start_session(r); });
  for (const std::string action : {"pause", "resume", "end"}) {
    table.add(Scope::kAdmin, "POST", base + "sessions/*/" + action,
              [this, action](const HttpRequest&, const Parts& p) { return change_session(p[0], action); });
  }
}

HttpReply SessionApi::status() const {
  HttpReply reply;
  reply.body = control_.status_json();
  return reply;
}

HttpReply SessionApi::sessions() const {
  Json data = Json::array();
  for (const SessionRow& row : store_.sessions()) data.push_back(session_json(row));
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}});
}

HttpReply SessionApi::start_session(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  SessionRequest wanted;
  wanted.recipe = f.text("recipe", "", 4096);
  if (wanted.recipe.empty()) f.refuse("recipe", "must be the name of a recipe or a recipe file");
  wanted.name = f.text("name", "", 128);
  if (f.has("seed")) wanted.seed = static_cast<std::uint64_t>(f.integer("seed", 0, 0, INT64_MAX));
  if (f.has("max_requests")) wanted.max_requests = f.integer("max_requests", 0, 0, INT64_MAX);
  wanted.live_only = f.boolean("live_only", false);
  if (f.error()) return error_reply(*f.error());
  const Result<SessionId> id = control_.start_session(wanted);
  if (id.code() == Code::kNotFound || id.code() == Code::kInvalidArgument) {
    return error_reply(bad_value("recipe", id.status().message()));
  }
  if (!id.ok()) return failed(id.status(), "session_running");
  const auto row = store_.session(*id);
  return json_reply(row ? session_json(*row) : Json{{"id", id->value}}, 201);
}

HttpReply SessionApi::change_session(const std::string& id, const std::string& action) {
  const auto number = parse_number(id);
  const auto row = number ? store_.session(SessionId(*number)) : std::nullopt;
  if (!row) return failed(not_found("There is no session " + excerpt(id)), "", "record_not_found");
  const SessionAction what = action == "pause"    ? SessionAction::kPause
                             : action == "resume" ? SessionAction::kResume
                                                  : SessionAction::kEnd;
  if (const Status s = control_.change_session(row->id, what); !s.ok()) return failed(s, "illegal_transition", "record_not_found");
  const auto after = store_.session(row->id);
  return json_reply(session_json(after ? *after : *row));
}

}  // namespace sluice
