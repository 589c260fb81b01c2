// SPDX-License-Identifier: GPL-3.0-or-later
// The engine as the bridge sees it, so that widgets can be tested on a scripted one. Every function is thread-safe and none
// waits for the model, the gate or the network. What reads store or files belongs on the reader thread or in a job
// (EngineBridge::job): all but snapshot(), submit() and add_listener().
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"

namespace sluice::gui {

class EngineApi {
 public:
  virtual ~EngineApi() = default;
  virtual std::shared_ptr<const EngineState> snapshot() const = 0;
  virtual std::uint64_t submit(Command command, std::function<void(const CommandOutcome&)> done) = 0;
  virtual const Store& store() const = 0;
  virtual void add_listener(StoreListener listener) = 0;
  virtual std::vector<RecipeSummary> recipes() const = 0;
  virtual std::string gate_settings_json(SettingsId* id) const = 0;
  virtual Result<WhatIfSummary> what_if(const std::string& draft_json) const = 0;
  virtual Result<bool> loosens(const std::string& draft_json) const = 0;
  virtual Result<ModelFit> model_fit(const std::string& path) const = 0;
};

}  // namespace sluice::gui
