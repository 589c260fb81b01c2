// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/http_control.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/event_hub.h"
#include "release/gate_json.h"
#include "store/version_name.h"
#include "runtime/adapter_import.h"
#include "runtime/live_split.h"
#include "runtime/outcomes.h"
#include "runtime/runtime_impl.h"

namespace sluice {
namespace {

bool may_serve(VersionState state) {
  return state == VersionState::kServing || state == VersionState::kCanary || state == VersionState::kRetired;
}

const char* phase_name(EnginePhase phase) {
  switch (phase) {
    case EnginePhase::kLoading: return "loading";
    case EnginePhase::kReady: return "ready";
    case EnginePhase::kModelFailed: return "failed";
    case EnginePhase::kStopping: return "stopping";
  }
  return "unknown";
}

nlohmann::json or_null(VersionId version) { return version.valid() ? nlohmann::json(version.value) : nlohmann::json(); }

}  // namespace

ServingPhase HttpControl::phase() const {
  if (impl_.stopping || impl_.draining) return ServingPhase::kStopping;
  const auto serving = impl_.serving();
  if (!serving) return ServingPhase::kLoading;
  switch (serving->engine->state()) {
    case ServeState::kReady: return ServingPhase::kReady;
    case ServeState::kPaused: return ServingPhase::kPaused;
    case ServeState::kAsleep: return ServingPhase::kAsleep;
    case ServeState::kStopping: return ServingPhase::kStopping;
  }
  return ServingPhase::kStopping;
}

std::shared_ptr<CompletionService> HttpControl::service() const {
  const auto serving = impl_.serving();
  return serving ? std::shared_ptr<CompletionService>(serving, serving->service.get()) : nullptr;
}

std::vector<ServedModel> HttpControl::models() const {
  const auto serving = impl_.serving();
  if (!serving) return {};
  const std::string base = serving->system.model->info().name;
  const VersionId now = impl_.store->serving_version();
  const auto versions = impl_.store->versions();
  std::int64_t made_s = 0;
  for (const VersionRow& v : versions) {
    if (v.id == kBaseVersion) made_s = v.created_us / 1'000'000;
  }
  std::vector<ServedModel> out;
  const char* in_service = version_state_name(VersionState::kServing);
  out.push_back({impl_.adapter_name(), base, now, in_service, made_s});
  out.push_back({base, "", kBaseVersion, now == kBaseVersion ? in_service : version_state_name(VersionState::kRetired), made_s});
  for (const VersionRow& v : versions) {
    if (v.id == kBaseVersion || !may_serve(v.state)) continue;
    out.push_back({version_name(v.name, v.id), base, v.id, version_state_name(v.state), v.created_us / 1'000'000});
  }
  for (const std::string& alias : impl_.options.aliases) {
    if (alias != out.front().id && alias != base) out.push_back({alias, base, now, in_service, made_s, true});
  }
  return out;
}

Result<AdapterChoice> HttpControl::resolve_model(const std::string& name) const {
  const auto serving = impl_.serving();
  if (!serving) return not_loaded();
  if (name.empty() || name == impl_.adapter_name()) return AdapterChoice::serving();
  if (name == serving->system.model->info().name || name == "base") return AdapterChoice::base();
  const auto& aliases = impl_.options.aliases;
  if (std::find(aliases.begin(), aliases.end(), name) != aliases.end()) return AdapterChoice::serving();
  const std::size_t at = name.rfind('@');
  const std::string stem = name.substr(0, at);
  for (const VersionRow& v : impl_.store->versions()) {
    if (v.id == kBaseVersion || v.name != stem) continue;
    if (at == std::string::npos) {
      if (v.state == VersionState::kServing) return AdapterChoice::serving();
      continue;
    }
    if (std::to_string(v.id.value) != name.substr(at + 1)) continue;
    if (!may_serve(v.state)) break;
    return AdapterChoice::pinned(v.id);
  }
  return not_found("model \"" + excerpt(name) + "\" is not served here: see GET /v1/models" +
                   (aliases.empty() ? "" : "; \"" + aliases.front() + "\" always names what serves"));
}

std::string HttpControl::base_digest() const {
  const auto serving = impl_.serving();
  return serving ? serving->system.model->info().content_hash : "";
}

LiveContext HttpControl::live_context(const CompletionRequest& request) const {
  const auto session = impl_.session();
  const auto serving = impl_.serving();
  if (!session || !serving) return {};
  return {session->row().id, live_split(session->recipe(), impl_.store->split_salt(), *serving->system.tokenizer, request)};
}

std::optional<std::array<std::string, 3>> HttpControl::fim_markers() const {
  const auto session = impl_.session();
  return session ? session->recipe().fim_markers : std::nullopt;
}

std::optional<SamplingDefaults> HttpControl::sampling_defaults() const {
  const auto session = impl_.session();
  if (!session) return std::nullopt;
  const TaskSampling& sampling = session->recipe().task.sampling;
  return SamplingDefaults{sampling.temperature, sampling.top_p, sampling.max_tokens};
}

ServingCounters HttpControl::counters() const {
  ServingCounters out;
  if (const auto serving = impl_.serving()) out.generator = serving->engine->stats();
  MutexLock lock(impl_.mu);
  out.adapter_swaps = impl_.swap_times;
  return out;
}

const EventHub& HttpControl::events() const { return impl_.event_hub; }

std::string HttpControl::status_json() const {
  const auto serving = impl_.serving();
  MutexLock lock(impl_.mu);
  const EngineState& s = *impl_.state;
  nlohmann::json json = {
      {"phase", phase_name(s.phase)},
      {"model", s.model_name},
      {"serving", {{"version", s.serving.value}, {"name", s.serving_name}, {"since_us", s.serving_since_us}}},
      {"frozen", s.frozen},
      {"deterministic", serving && serving->engine->deterministic()},
      {"tokens_per_s", s.tokens_per_s},
      {"requests_running", s.running},
      {"requests_waiting", s.waiting},
      {"stream",
       {{"requests", s.stream.requests}, {"accepted", s.stream.accepted}, {"rejected", s.stream.rejected},
        {"failed", s.stream.failed}, {"max_requests", s.stream.max_requests}, {"finished", s.stream.finished}}},
      {"training",
       {{"doing", s.train.doing}, {"head_step", s.train.head_step}, {"steps_ahead", s.train.steps_ahead},
        {"labelled_waiting", s.train.labelled_waiting}, {"brake", s.train.brake}}},
      {"gate",
       {{"measuring", s.gate.measuring}, {"candidate", or_null(s.gate.candidate)}, {"stage", s.gate.stage}, {"n", s.gate.n},
        {"note", s.gate.note}}},
  };
  if (s.session) {
    json["session"] = {{"id", s.session->id.value}, {"name", s.session->name}, {"recipe", s.session->recipe_name},
                       {"seed", s.session->seed}, {"state", session_state_name(s.session->state)},
                       {"problem", s.session_problem}};
  } else {
    json["session"] = nullptr;
  }
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<GateDocument> HttpControl::gate() const {
  SLUICE_ASSIGN_OR_RETURN(const auto stored, stored_gate_settings(*impl_.store));
  GateDocument document;
  document.settings_json = gate_settings_to_json(stored.settings);
  document.revision = stored.id;
  if (const auto row = impl_.store->gate_settings()) {
    document.who = row->who;
    document.note = row->note;
    document.time_us = row->time_us;
  }
  return document;
}

Result<SettingsId> HttpControl::put_gate(const std::string& settings_json, std::optional<SettingsId> if_match,
                                         const std::string& who, const std::string& note) {
  PutGateSettings command{settings_json, if_match, who, note};
  // On the command thread, as the window's: of two that name the same revision only one may win.
  const CommandOutcome outcome = impl_.run_from_http(std::move(command));
  if (!outcome.ok()) return outcome.status;
  return *outcome.settings;
}

Result<DecisionId> HttpControl::decide(const DecisionRequest& request) {
  if (request.scope != "full") {
    return invalid_argument("scope \"" + request.scope + "\" is not offered here: use full");
  }
  Decide command{request.action, request.version, request.actor, request.note, request.if_match};
  const CommandOutcome outcome = impl_.handle(command);
  if (!outcome.ok()) return outcome.status;
  return *outcome.decision;
}

Result<SessionId> HttpControl::start_session(const SessionRequest& request) {
  StartSession command;
  command.recipe = request.recipe;
  command.name = request.name;
  command.seed = request.seed.value_or(1);
  command.max_requests = request.max_requests.value_or(-1);
  command.live_only = request.live_only;
  const CommandOutcome outcome = impl_.run_from_http(command);
  if (!outcome.ok()) return outcome.status;
  return *outcome.session;
}

Status HttpControl::change_session(SessionId id, SessionAction action) {
  if (impl_.loading()) return not_loaded();  // the last session comes back behind the model
  const auto session = impl_.session();
  const auto out = impl_.shut_out();
  if (!(session && session->row().id == id) && !(out && out->id == id)) {
    return impl_.store->session(id) ? conflict("session " + std::to_string(id.value) + " does not run")
                                    : not_found("session " + std::to_string(id.value) + " is not in this workspace");
  }
  switch (action) {
    case SessionAction::kPause: return impl_.run_from_http(PauseSession{}).status;
    case SessionAction::kResume: return impl_.run_from_http(ResumeSession{}).status;
    case SessionAction::kEnd: return impl_.run_from_http(EndSession{}).status;
  }
  return internal_error("unknown session action");
}

Status HttpControl::engine_action(EngineAction action, bool weights) {
  const auto serving = impl_.serving();
  if (!serving) return not_loaded();
  switch (action) {
    case EngineAction::kPause: return serving->engine->pause();
    case EngineAction::kResume: return serving->engine->resume();
    case EngineAction::kFlush: return serving->engine->flush();
    case EngineAction::kSleep: return serving->engine->sleep(weights);
    case EngineAction::kWake: return serving->engine->wake();
  }
  return internal_error("unknown engine action");
}

Result<std::vector<NewCandidate>> HttpControl::import_adapters(const std::vector<AdapterImport>& wanted) {
  const auto serving = impl_.serving();
  if (!serving) return not_loaded();
  const auto& aliases = impl_.options.aliases;
  for (const AdapterImport& each : wanted) {
    const bool alias = std::find(aliases.begin(), aliases.end(), each.name) != aliases.end();
    if (!alias && each.name != serving->system.model->info().name && each.name != "base") continue;
    return conflict("The name " + each.name + " is that of " + (alias ? "an alias" : "the base model") + ": choose another");
  }
  const auto session = impl_.session();
  return sluice::import_adapters(*impl_.store, *serving->system.model,
                                 session ? session->row().id : SessionId(), wanted);
}

Status HttpControl::prune_versions(const std::vector<VersionId>& versions) {
  const auto serving = impl_.serving();
  if (!serving) return not_loaded();
  return serving->registry->prune(versions);
}

}  // namespace sluice
