// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/engine_api.h"

#include <nlohmann/json.hpp>

#include "http/api_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

}  // namespace

void EngineApi::add_routes(RouteTable& table) {
  constexpr std::pair<const char*, EngineAction> kActions[] = {{"pause", EngineAction::kPause},
                                                               {"resume", EngineAction::kResume},
                                                               {"flush", EngineAction::kFlush},
                                                               {"sleep", EngineAction::kSleep},
                                                               {"wake", EngineAction::kWake}};
  for (const auto& [name, action] : kActions) {
    table.add(Scope::kAdmin, "POST", std::string("/sluice/v1/engine/") + name,
              [this, action = action](const HttpRequest& r, const RouteTable::Parts&) { return act(r, action); });
  }
}

HttpReply EngineApi::act(const HttpRequest& request, EngineAction action) {
  Json body = Json::object();
  if (!request.body.empty()) {
    if (auto error = parse_object(request, &body)) return error_reply(*error);
  }
  Fields f(body);
  const bool weights = f.boolean("weights", false);
  if (weights && action != EngineAction::kSleep) f.refuse("weights", "belongs to sleep alone");
  if (f.error()) return error_reply(*f.error());
  const Status done = control_.engine_action(action, weights);
  // Asleep, but with its weights in memory: the caller learns that, and it is no failure of the sleep.
  const bool kept = action == EngineAction::kSleep && done.code() == Code::kUnavailable &&
                    control_.phase() == ServingPhase::kAsleep;
  if (!done.ok() && !kept) return failed(done, "illegal_transition");
  Json reply = {{"state", phase_name(control_.phase())}};
  if (kept) reply["note"] = done.message();
  return json_reply(reply);
}

}  // namespace sluice
