// SPDX-License-Identifier: GPL-3.0-or-later
// The real engine behind EngineApi. Thread-safe as Runtime is; the program links the runtime library.
#pragma once

#include <memory>

#include "bridge/engine_api.h"

namespace sluice::gui {

class RuntimeApi final : public EngineApi {
 public:
  explicit RuntimeApi(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}
  std::shared_ptr<const EngineState> snapshot() const override { return runtime_->snapshot(); }
  std::uint64_t submit(Command command, std::function<void(const CommandOutcome&)> done) override {
    return runtime_->submit(std::move(command), std::move(done));
  }
  const Store& store() const override { return runtime_->store(); }
  void add_listener(StoreListener listener) override { runtime_->add_listener(std::move(listener)); }
  std::vector<RecipeSummary> recipes() const override { return runtime_->recipes(); }
  std::string gate_settings_json(SettingsId* id) const override { return runtime_->gate_settings_json(id); }
  Result<WhatIfSummary> what_if(const std::string& draft_json) const override { return runtime_->what_if(draft_json); }
  Result<bool> loosens(const std::string& draft_json) const override { return runtime_->loosens(draft_json); }
  Result<ModelFit> model_fit(const std::string& path) const override { return Runtime::model_fit(path); }

 private:
  std::unique_ptr<Runtime> runtime_;
};

}  // namespace sluice::gui
