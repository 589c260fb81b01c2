// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/models_api.h"

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/api_json.h"
#include "http/completions.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

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

}  // namespace

const char* phase_name(ServingPhase phase) {
  switch (phase) {
    case ServingPhase::kReady: return "ready";
    case ServingPhase::kLoading: return "loading";
    case ServingPhase::kPaused: return "paused";
    case ServingPhase::kAsleep: return "asleep";
    case ServingPhase::kStopping: return "stopping";
  }
  return "unknown";
}

void ModelsApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  table.add(Scope::kOpen, "GET", "/health", [this](const HttpRequest&, const Parts&) { return health(); });
  table.add(Scope::kOpen, "GET", "/healthz", [this](const HttpRequest&, const Parts&) { return healthz(); });
  table.add(Scope::kClient, "GET", "/v1/models", [this](const HttpRequest&, const Parts&) { return models(); });
  table.add(Scope::kClient, "GET", "/v1/models/**", [this](const HttpRequest&, const Parts& p) { return model(p[0]); });
}

HttpReply ModelsApi::health() const {
  const ServingPhase phase = control_.phase();
  if (auto error = not_ready(phase)) {
    HttpReply reply = error_reply(*error);
    reply.body = dump(Json{{"status", phase_name(phase)}});
    return reply;
  }
  return json_reply(Json{{"status", "ok"}});
}

HttpReply ModelsApi::healthz() const {
  const bool ok = control_.phase() == ServingPhase::kReady;
  return json_reply(Json{{"ok", ok}}, ok ? 200 : 503);
}

HttpReply ModelsApi::models() const {
  const auto service = control_.service();
  const std::vector<ServedModel> models = control_.models();
  if (!service || models.empty()) return error_reply(*not_ready(ServingPhase::kLoading));
  Json data = Json::array();
  for (const ServedModel& model : models) data.push_back(model_json(model, service->context_length()));
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}});
}

HttpReply ModelsApi::model(const std::string& id) const {
  const auto service = control_.service();
  const std::vector<ServedModel> models = control_.models();
  if (!service || models.empty()) return error_reply(*not_ready(ServingPhase::kLoading));
  for (const ServedModel& model : models) {
    if (model.id == id) return json_reply(model_json(model, service->context_length()));
  }
  return failed(not_found("There is no model " + excerpt(id) + ": GET /v1/models lists them"), "", "model_not_found");
}

}  // namespace sluice
