// SPDX-License-Identifier: GPL-3.0-or-later
// What the HTTP server may ask of the runtime. Thread-safe, as Control says.
#pragma once

#include "http/control.h"
#include "runtime/runtime.h"

namespace sluice {

class HttpControl final : public Control {
 public:
  explicit HttpControl(Runtime::Impl& impl) : impl_(impl) {}

  ServingPhase phase() const override;
  std::shared_ptr<CompletionService> service() const override;
  std::vector<ServedModel> models() const override;
  Result<AdapterChoice> resolve_model(const std::string& name) const override;
  std::string base_digest() const override;
  LiveContext live_context(const CompletionRequest& request) const override;
  std::optional<std::array<std::string, 3>> fim_markers() const override;
  std::optional<SamplingDefaults> sampling_defaults() const override;
  ServingCounters counters() const override;
  const EventHub& events() const override;
  std::string status_json() const override;
  Result<GateDocument> gate() const override;
  Result<SettingsId> put_gate(const std::string& settings_json, std::optional<SettingsId> if_match, const std::string& who,
                              const std::string& note) override;
  Result<DecisionId> decide(const DecisionRequest& request) override;
  Result<SessionId> start_session(const SessionRequest& request) override;
  Status change_session(SessionId session, SessionAction action) override;
  Status engine_action(EngineAction action, bool weights) override;
  Result<std::vector<NewCandidate>> import_adapters(const std::vector<AdapterImport>& wanted) override;
  Status prune_versions(const std::vector<VersionId>& versions) override;

 private:
  Runtime::Impl& impl_;
};

}  // namespace sluice
