// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/release_api.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "http/api_json.h"
#include "store/version_name.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

Json decision_json(const DecisionRow& d) {
  return {{"id", d.id.value},
          {"session", id_json<Json>(d.session.value)},
          {"time_us", d.time_us},
          {"prev_hash", d.prev_hash},
          {"hash", d.hash},
          {"version", id_json<Json>(d.version.value)},
          {"parent", id_json<Json>(d.parent.value)},
          {"incumbent", id_json<Json>(d.incumbent.value)},
          {"anchor", id_json<Json>(d.anchor.value)},
          {"content_hash", d.content_hash},
          {"verdict", verdict_name(d.verdict)},
          {"scope", d.scope},
          {"kind", d.kind},
          {"automatic", d.automatic},
          {"forced", d.forced},
          {"actor", d.actor},
          {"reason_code", d.reason_code},
          {"reason", d.reason_text},
          {"settings", id_json<Json>(d.settings.value)},
          {"stage", d.stage},
          {"metric", d.metric},
          {"seed", d.seed},
          {"n", d.n}, {"voids", d.voids}, {"wins", d.wins}, {"losses", d.losses}, {"ties", d.ties},
          {"mean_d", d.mean_d}, {"lo", d.lo}, {"hi", d.hi},
          {"log_e", d.log_e}, {"log_f", d.log_f}, {"log_ea", d.log_ea}, {"log_ha", d.log_ha},
          {"rates",
           {{"candidate", std::to_string(d.candidate_k) + "/" + std::to_string(d.candidate_n)},
            {"incumbent", std::to_string(d.incumbent_k) + "/" + std::to_string(d.incumbent_n)},
            {"anchor", std::to_string(d.anchor_k) + "/" + std::to_string(d.anchor_n)}}},
          {"invariants", stored_json<Json>(d.invariants_json)},
          {"protected", stored_json<Json>(d.protected_json)},
          {"extra", stored_json<Json>(d.extra_json)},
          {"same_signal", d.same_signal},
          {"moved_in_flight", d.moved_in_flight},
          {"thin", d.thin},
          {"duration_s", d.duration_s},
          {"tokens_spent", d.tokens_spent},
          {"note", d.note}};
}

}  // namespace

void ReleaseApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/";
  table.add(Scope::kAdmin, "GET", base + "adapters", [this](const HttpRequest&, const Parts&) { return adapters(); });
  table.add(Scope::kAdmin, "GET", base + "gate", [this](const HttpRequest&, const Parts&) { return get_gate(); });
  table.add(Scope::kAdmin, "PUT", base + "gate", [this](const HttpRequest& r, const Parts&) { return put_gate(r); });
  table.add(Scope::kAdmin, "GET", base + "decisions", [this](const HttpRequest& r, const Parts&) { return decisions(r); });
  table.add(Scope::kAdmin, "POST", base + "decisions",
            [this](const HttpRequest& r, const Parts&) { return post_decision(r); });
}

HttpReply ReleaseApi::adapters() const {
  const auto running = control_.counters().generator.running_by_version;
  Json data = Json::array();
  for (const VersionRow& v : store_.versions()) {
    const auto users = running.find(v.id);
    const auto decision = store_.latest_decision(v.id);
    data.push_back({{"name", v.id == kBaseVersion ? v.name : version_name(v.name, v.id)},
                    {"version", v.id.value},
                    {"parent", id_json<Json>(v.parent.value)},
                    {"session", id_json<Json>(v.session.value)},
                    {"state", version_state_name(v.state)},
                    {"origin", v.origin},
                    {"label", v.label},
                    {"head_step", v.head_step},
                    {"step", id_json<Json>(v.step.value)},
                    {"rank", v.rank},
                    {"bytes", v.bytes},
                    {"content_hash", v.content_hash},
                    {"created_us", v.created_us}, {"state_us", v.state_us}, {"proven", v.proven},
                    {"users", users == running.end() ? 0 : users->second},
                    {"decision", decision ? decision_json(*decision) : Json()}});
  }
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}, {"serving", store_.serving_version().value}});
}

HttpReply ReleaseApi::get_gate() const {
  const Result<GateDocument> gate = control_.gate();
  if (!gate.ok()) return failed(gate.status(), "");
  HttpReply reply = json_reply(Json{{"settings", stored_json<Json>(gate->settings_json)},
                                {"revision", id_json<Json>(gate->revision.value)},
                                {"who", gate->who},
                                {"note", gate->note},
                                {"time_us", gate->time_us}});
  reply.headers.emplace_back("ETag", etag(gate->revision.value));
  return reply;
}

HttpReply ReleaseApi::put_gate(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  std::optional<std::int64_t> revision;
  if (auto error = read_if_match(request, &revision)) return error_reply(*error);
  Fields f(body);
  const Json* settings = f.find("settings");
  const std::string who = f.text("who", "", 128), note = f.text("note", "", 4000);
  if (settings == nullptr || !settings->is_object()) f.refuse("settings", "must be an object");
  if (who.empty()) f.refuse("who", "must say who changes the gate");
  if (f.error()) return error_reply(*f.error());
  const Result<SettingsId> id = control_.put_gate(
      dump(*settings), revision ? std::optional<SettingsId>(SettingsId(*revision)) : std::nullopt, who, note);
  if (id.code() == Code::kInvalidArgument) return error_reply(bad_value("settings", id.status().message()));
  if (!id.ok()) return failed(id.status(), "revision_mismatch");
  return get_gate();
}

HttpReply ReleaseApi::decisions(const HttpRequest& request) const {
  std::int64_t after = 0, limit = 100;
  for (const auto& error :
       {read_query(request, "after", 0, INT64_MAX, &after), read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  Json data = Json::array();
  for (const DecisionRow& row : store_.decisions(after, static_cast<int>(limit))) data.push_back(decision_json(row));
  HttpReply reply = json_reply(Json{{"object", "list"}, {"data", std::move(data)}});
  reply.headers.emplace_back("ETag", etag(store_.last_decision_id().value));
  return reply;
}

HttpReply ReleaseApi::post_decision(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  std::optional<std::int64_t> revision;
  if (auto error = read_if_match(request, &revision)) return error_reply(*error);
  Fields f(body);
  DecisionRequest wanted;
  wanted.action = f.text("action", "", 32);
  constexpr const char* kActions[] = {"promote",     "reject", "hold",    "rollback",
                                      "pin_anchor",  "stop_canary", "freeze", "unfreeze"};
  if (std::find(std::begin(kActions), std::end(kActions), wanted.action) == std::end(kActions)) {
    f.refuse("action", "must be promote, reject, hold, rollback, pin_anchor, stop_canary, freeze or unfreeze");
  }
  const bool needs_version = wanted.action != "freeze" && wanted.action != "unfreeze";
  if (needs_version && !f.has("version")) f.refuse("version", "must be the number of a version");
  wanted.version = VersionId(f.integer("version", -1, 0, INT64_MAX));
  wanted.scope = f.text("scope", "full", 16);
  if (wanted.scope != "full") f.refuse("scope", "may only be full: this server has no canary", "unsupported_parameter");
  wanted.actor = f.text("actor", "", 128);
  wanted.note = f.text("note", "", 4000);
  if (wanted.actor.empty()) f.refuse("actor", "must say who decides");
  if (wanted.note.empty()) f.refuse("note", "must say why");
  if (f.error()) return error_reply(*f.error());
  if (revision) wanted.if_match = DecisionId(*revision);
  const Result<DecisionId> id = control_.decide(wanted);
  if (!id.ok()) return failed(id.status(), "illegal_transition", "model_not_found");
  const auto row = store_.decision(*id);
  HttpReply reply = json_reply(row ? decision_json(*row) : Json{{"id", id->value}}, 201);
  reply.headers.emplace_back("ETag", etag(id->value));
  return reply;
}

}  // namespace sluice
