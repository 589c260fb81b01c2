// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/sluice_api.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "http/fields.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

HttpReply json_reply(const Json& json, int status = 200) {
  HttpReply reply;
  reply.status = status;
  reply.body = dump(json);
  return reply;
}

HttpReply failed(const Status& status, const std::string& conflict_code, const std::string& not_found_code = "") {
  ApiError error = api_error(status, conflict_code);
  if (status.code() == Code::kNotFound && !not_found_code.empty()) error.code = not_found_code;
  return error_reply(error);
}

ApiError bad_value(const std::string& param, const std::string& message) {
  ApiError error;
  error.status = 400;
  error.code = "invalid_value";
  error.param = param;
  error.message = message;
  return error;
}

Json id_json(std::int64_t value) { return value >= 0 ? Json(value) : Json(); }

Json stored_json(const std::string& text) {
  if (text.empty()) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json(text) : json;
}

Json model_json(const ServedModel& model, int context_length) {
  return {{"id", model.id},
          {"object", "model"},
          {"created", model.created_s},
          {"owned_by", "sluice"},
          {"root", model.parent.empty() ? model.id : model.parent},
          {"parent", model.parent.empty() ? Json() : Json(model.parent)},
          {"max_model_len", context_length},
          {"sluice", {{"version", model.version.value}, {"state", model.state}}}};
}

Json record_json(const RecordRow& r, bool whole) {
  Json json = {{"seq", r.seq},
               {"record_id", r.id.text},
               {"session", id_json(r.session.value)},
               {"conversation", r.conversation},
               {"adapter", r.adapter_name},
               {"version", id_json(r.version.value)},
               {"purpose", r.purpose == Purpose::kLive ? "live" : r.purpose == Purpose::kGate ? "gate" : "probe"},
               {"split", r.split == Split::kTrain ? "train" : "held_out"},
               {"route", r.route},
               {"prompt", r.prompt_text},
               {"completion", r.completion_text},
               {"finish_reason", r.finish_reason},
               {"complete", r.complete},
               {"seed", r.seed},
               {"received_us", r.received_us},
               {"served_us", r.served_us},
               {"used_in_step", id_json(r.used_in_step.value)},
               {"fate", r.fate}};
  if (!whole) return json;
  json["messages"] = stored_json(r.prompt_json);
  json["prompt_token_ids"] = r.prompt_ids;
  json["token_ids"] = r.token_ids;
  json["lp_full"] = r.lp_full;
  json["lp_mu"] = r.lp_mu;
  json["group_key"] = r.group_key;
  json["sampling"] = stored_json(r.sampling_json);
  json["temperature"] = r.temperature;
  json["top_p"] = r.top_p;
  json["min_p"] = r.min_p;
  json["top_k"] = r.top_k;
  json["max_tokens"] = r.max_tokens;
  json["queue_us"] = r.queue_us;
  json["prefill_us"] = r.prefill_us;
  json["decode_us"] = r.decode_us;
  return json;
}

Json decision_json(const DecisionRow& d) {
  return {{"id", d.id.value},
          {"session", id_json(d.session.value)},
          {"time_us", d.time_us},
          {"prev_hash", d.prev_hash},
          {"hash", d.hash},
          {"version", id_json(d.version.value)},
          {"parent", id_json(d.parent.value)},
          {"incumbent", id_json(d.incumbent.value)},
          {"anchor", id_json(d.anchor.value)},
          {"content_hash", d.content_hash},
          {"verdict", verdict_name(d.verdict)},
          {"scope", d.scope},
          {"kind", d.kind},
          {"automatic", d.automatic},
          {"forced", d.forced},
          {"actor", d.actor},
          {"reason_code", d.reason_code},
          {"reason", d.reason_text},
          {"settings", id_json(d.settings.value)},
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
          {"invariants", stored_json(d.invariants_json)},
          {"protected", stored_json(d.protected_json)},
          {"extra", stored_json(d.extra_json)},
          {"same_signal", d.same_signal},
          {"moved_in_flight", d.moved_in_flight},
          {"thin", d.thin},
          {"duration_s", d.duration_s},
          {"tokens_spent", d.tokens_spent},
          {"note", d.note}};
}

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

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A whole number of the query string; `fallback` when absent.
std::optional<ApiError> read_query(const HttpRequest& request, const char* name, std::int64_t least, std::int64_t most,
                                   std::int64_t* value) {
  const auto it = request.query.find(name);
  if (it == request.query.end()) return std::nullopt;
  const auto number = parse_number(it->second);
  if (number && *number >= least && *number <= most) {
    *value = *number;
    return std::nullopt;
  }
  return bad_value(name, std::string(name) + " must be a whole number between " + std::to_string(least) + " and " +
                             std::to_string(most));
}

// The revision in an If-Match header: "17" with or without quotes. Nothing when absent or "*".
std::optional<ApiError> read_if_match(const HttpRequest& request, std::optional<std::int64_t>* revision) {
  std::string_view text = request.header("If-Match");
  if (text.empty() || text == "*") return std::nullopt;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  *revision = parse_number(text);
  if (*revision) return std::nullopt;
  return bad_value("If-Match", "If-Match must be the ETag of an earlier answer");
}

std::string etag(std::int64_t revision) { return "\"" + std::to_string(revision) + "\""; }

}  // namespace

HttpReply SluiceApi::health() const {
  if (auto error = not_ready(control_.phase())) {
    HttpReply reply = error_reply(*error);
    constexpr const char* kNames[] = {"ok", "loading", "paused", "asleep", "stopping"};
    reply.body = dump(Json{{"status", kNames[static_cast<std::size_t>(control_.phase())]}});
    return reply;
  }
  return json_reply({{"status", "ok"}});
}

HttpReply SluiceApi::healthz() const {
  const bool ok = control_.phase() == ServingPhase::kReady;
  return json_reply({{"ok", ok}}, ok ? 200 : 503);
}

HttpReply SluiceApi::models() const {
  Json data = Json::array();
  for (const ServedModel& model : control_.models()) data.push_back(model_json(model, context_length_));
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

HttpReply SluiceApi::model(const std::string& id) const {
  for (const ServedModel& model : control_.models()) {
    if (model.id == id) return json_reply(model_json(model, context_length_));
  }
  return failed(not_found("There is no model " + id + ": GET /v1/models lists them"), "", "model_not_found");
}

HttpReply SluiceApi::records(const HttpRequest& request) const {
  std::int64_t session = -1, version = -1, after = 0, limit = 100;
  for (const auto& error : {read_query(request, "session", 0, INT64_MAX, &session),
                            read_query(request, "version", 0, INT64_MAX, &version),
                            read_query(request, "after", 0, INT64_MAX, &after),
                            read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  const auto text = [&request](const char* name) {
    const auto it = request.query.find(name);
    return it == request.query.end() ? std::string() : it->second;
  };
  RecordFilter filter;
  filter.session = SessionId(session);
  if (version >= 0) filter.version = VersionId(version);
  filter.conversation = text("conversation");
  filter.label = text("label");
  filter.fate = text("state");
  filter.text = text("text");
  Json data = Json::array();
  std::int64_t last = 0;
  for (const RecordRow& row : store_.records(filter, after, static_cast<int>(limit))) {
    last = row.seq;
    data.push_back(record_json(row, false));
  }
  const bool more = static_cast<std::int64_t>(data.size()) == limit;
  return json_reply({{"object", "list"}, {"data", std::move(data)}, {"next", more ? Json(last) : Json()}});
}

HttpReply SluiceApi::record(const std::string& id) const {
  const auto row = store_.record({id});
  if (!row) return failed(not_found("There is no record " + id), "", "record_not_found");
  Json json = record_json(*row, true);
  Json labels = Json::array();
  for (const FeedbackRow& f : store_.feedback_of({id})) {
    labels.push_back({{"feedback_id", f.id.value},
                      {"choice", f.choice},
                      {"kind", feedback_kind_name(f.kind)},
                      {"source", feedback_source_name(f.source)},
                      {"state", f.state},
                      {"retracted", f.retracted},
                      {"reason", f.reason},
                      {"comment", f.comment},
                      {"time_us", f.time_us}});
  }
  json["feedback"] = std::move(labels);
  return json_reply(json);
}

HttpReply SluiceApi::status() const {
  HttpReply reply;
  reply.body = control_.status_json();
  return reply;
}

HttpReply SluiceApi::adapters() const {
  Json data = Json::array();
  for (const VersionRow& v : store_.versions()) {
    const auto decision = store_.latest_decision(v.id);
    data.push_back({{"name", v.id == kBaseVersion ? v.name : v.name + "@" + std::to_string(v.id.value)},
                    {"version", v.id.value},
                    {"parent", id_json(v.parent.value)},
                    {"session", id_json(v.session.value)},
                    {"state", version_state_name(v.state)},
                    {"origin", v.origin},
                    {"label", v.label},
                    {"head_step", v.head_step},
                    {"step", id_json(v.step.value)},
                    {"rank", v.rank},
                    {"bytes", v.bytes},
                    {"content_hash", v.content_hash},
                    {"created_us", v.created_us}, {"state_us", v.state_us}, {"proven", v.proven},
                    {"decision", decision ? decision_json(*decision) : Json()}});
  }
  return json_reply({{"object", "list"}, {"data", std::move(data)}, {"serving", store_.serving_version().value}});
}

HttpReply SluiceApi::get_gate() const {
  const Result<GateDocument> gate = control_.gate();
  if (!gate.ok()) return failed(gate.status(), "");
  HttpReply reply = json_reply({{"settings", stored_json(gate->settings_json)},
                                {"revision", id_json(gate->revision.value)},
                                {"who", gate->who},
                                {"note", gate->note},
                                {"time_us", gate->time_us}});
  reply.headers.emplace_back("ETag", etag(gate->revision.value));
  return reply;
}

HttpReply SluiceApi::put_gate(const HttpRequest& request) {
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
  if (!id.ok()) return failed(id.status(), "revision_mismatch");
  return get_gate();
}

HttpReply SluiceApi::decisions(const HttpRequest& request) const {
  std::int64_t after = 0, limit = 100;
  for (const auto& error :
       {read_query(request, "after", 0, INT64_MAX, &after), read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  Json data = Json::array();
  for (const DecisionRow& row : store_.decisions(after, static_cast<int>(limit))) data.push_back(decision_json(row));
  HttpReply reply = json_reply({{"object", "list"}, {"data", std::move(data)}});
  reply.headers.emplace_back("ETag", etag(store_.last_decision_id().value));
  return reply;
}

HttpReply SluiceApi::post_decision(const HttpRequest& request) {
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
  if (revision && *revision != store_.last_decision_id().value) {
    return failed(conflict("Another decision was made since: look at it before deciding"), "revision_mismatch");
  }
  const Result<DecisionId> id = control_.decide(wanted);
  if (!id.ok()) return failed(id.status(), "illegal_transition", "model_not_found");
  const auto row = store_.decision(*id);
  HttpReply reply = json_reply(row ? decision_json(*row) : Json{{"id", id->value}}, 201);
  reply.headers.emplace_back("ETag", etag(id->value));
  return reply;
}

HttpReply SluiceApi::sessions() const {
  Json data = Json::array();
  for (const SessionRow& row : store_.sessions()) data.push_back(session_json(row));
  return json_reply({{"object", "list"}, {"data", std::move(data)}});
}

HttpReply SluiceApi::start_session(const HttpRequest& request) {
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
  if (!id.ok()) return failed(id.status(), "session_running");
  const auto row = store_.session(*id);
  return json_reply(row ? session_json(*row) : Json{{"id", id->value}}, 201);
}

HttpReply SluiceApi::change_session(const std::string& id, const std::string& action) {
  const auto number = parse_number(id);
  const auto row = number ? store_.session(SessionId(*number)) : std::nullopt;
  if (!row) return failed(not_found("There is no session " + id), "", "record_not_found");
  const SessionAction what = action == "pause"    ? SessionAction::kPause
                             : action == "resume" ? SessionAction::kResume
                                                  : SessionAction::kEnd;
  if (const Status s = control_.change_session(row->id, what); !s.ok()) return failed(s, "session_running");
  const auto after = store_.session(row->id);
  return json_reply(session_json(after ? *after : *row));
}

}  // namespace sluice
