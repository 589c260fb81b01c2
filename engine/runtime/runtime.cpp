// SPDX-License-Identifier: GPL-3.0-or-later
// The face of the engine: what the programs call. The work is in Impl.
#include "runtime/runtime.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "release/gate_json.h"
#include "release/what_if.h"
#include "runtime/runtime_impl.h"

namespace sluice {
namespace {

SteadyTime after(double seconds) {
  return Clock::system().steady() + std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6));
}

std::string gigabytes(std::int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GB", static_cast<double>(bytes) / 1e9);
  return text;
}

}  // namespace

Runtime::Runtime(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Runtime::~Runtime() = default;

Result<std::unique_ptr<Runtime>> Runtime::open(RuntimeOptions options, Log& log) {
  if (options.port < kPortOfWorkspace || options.port > 65535) {
    return invalid_argument("port " + std::to_string(options.port) + " is none: give 0 to 65535");
  }
  StoreOptions store_options;
  store_options.folder = options.data_folder;
  SLUICE_ASSIGN_OR_RETURN(auto store, Store::open(store_options));
  auto impl = std::make_unique<Impl>(std::move(options), log, std::move(store));
  impl->start();
  return std::unique_ptr<Runtime>(new Runtime(std::move(impl)));
}

std::shared_ptr<const EngineState> Runtime::snapshot() const {
  MutexLock lock(impl_->mu);
  return impl_->state;
}

std::uint64_t Runtime::submit(Command command, std::function<void(const CommandOutcome&)> done) {
  return impl_->submit(std::move(command), std::move(done));
}

CommandOutcome Runtime::run(Command command) { return impl_->run_and_wait(std::move(command), nullptr); }

const Store& Runtime::store() const { return *impl_->store; }

void Runtime::add_listener(StoreListener listener) {
  MutexLock lock(impl_->mu);
  impl_->listeners.push_back(std::move(listener));
}

std::vector<RecipeSummary> Runtime::recipes() const {
  std::vector<RecipeSummary> out;
  for (const std::string& name : recipe_names(impl_->recipe_folder)) {
    const auto recipe = load_recipe(name, impl_->recipe_folder);
    if (recipe.ok()) out.push_back({name, recipe->task.title, recipe->task.summary, recipe->path});
  }
  return out;
}

std::string Runtime::gate_settings_json(SettingsId* id) const {
  const auto stored = stored_gate_settings(*impl_->store);
  if (id) *id = stored.ok() ? stored->id : SettingsId();
  return gate_settings_to_json(stored.ok() ? stored->settings : gate_preset(GateProfile::kStandard));
}

Result<WhatIfSummary> Runtime::what_if(const std::string& draft_json) const {
  SLUICE_ASSIGN_OR_RETURN(const auto stored, stored_gate_settings(*impl_->store));
  SLUICE_ASSIGN_OR_RETURN(const GateSettings draft, gate_settings_from_json(draft_json, stored.settings));
  constexpr int kDecisions = 500;
  WhatIfSummary summary;
  for (const WhatIfRow& row : sluice::what_if(*impl_->store, draft, kDecisions)) {
    ++summary.decisions;
    summary.recorded_rejects += row.was == Verdict::kReject;
    summary.draft_rejects += row.would_be == Outcome::kReject;
    summary.need_more += row.would_be == Outcome::kNeedsMore;
    if (row.differs) {
      ++summary.differ;
      summary.different.push_back(row.decision);
    }
  }
  std::reverse(summary.different.begin(), summary.different.end());
  return summary;
}

Result<bool> Runtime::loosens(const std::string& draft_json) const {
  SLUICE_ASSIGN_OR_RETURN(const auto stored, stored_gate_settings(*impl_->store));
  SLUICE_ASSIGN_OR_RETURN(const GateSettings draft, gate_settings_from_json(draft_json, stored.settings));
  return sluice::loosens(stored.settings, draft);
}

Result<ModelFit> Runtime::model_fit(const std::string& path) {
  constexpr std::int64_t kKvTokens = 16384;
  ModelFit fit;
  SLUICE_ASSIGN_OR_RETURN(fit.needed_bytes, estimate_memory(path, kKvTokens));
  fit.free_bytes = available_memory();
  fit.fits = fit.free_bytes == 0 || fit.needed_bytes <= fit.free_bytes;
  fit.text = "This model needs " + gigabytes(fit.needed_bytes) + "; " + gigabytes(fit.free_bytes) + " are free.";
  return fit;
}

std::string Runtime::bundled_model_path() { return find_bundled_model(); }

std::string Runtime::default_data_folder(const std::string& workspace_name) {
  const char* data = std::getenv("XDG_DATA_HOME");
  const char* home = std::getenv("HOME");
  const std::string root = data && *data ? data : std::string(home ? home : ".") + "/.local/share";
  return root + "/sluice/" + workspace_name;
}

void Runtime::on_request(std::function<void(const DriverEvent&)> listener) {
  MutexLock lock(impl_->mu);
  impl_->on_request = std::move(listener);
}

void Runtime::on_swap(std::function<void(const SwapNotice&)> listener) {
  MutexLock lock(impl_->mu);
  impl_->on_swap_notice = std::move(listener);
}

bool Runtime::wait_session_finished(double seconds) {
  const auto session = impl_->session();
  return session && session->wait_finished(after(seconds));
}

Result<HeldOutScore> Runtime::measure_held_out(VersionId version, int n) {
  const auto session = impl_->session();
  if (!session) return conflict("No session runs: its recipe has the held-out prompts.");
  return session->measure_held_out(version, n, &impl_->stopping);
}

bool Runtime::drain(double seconds) { return impl_->drain(seconds); }

Status Runtime::wait_ready(double seconds) {
  const SteadyTime deadline = after(seconds);
  {
    MutexLock lock(impl_->mu);
    while (impl_->phase == EnginePhase::kLoading) {
      if (!impl_->changed.wait_until(impl_->mu, deadline)) return deadline_exceeded("The model is still loading.");
    }
    if (impl_->phase == EnginePhase::kModelFailed) return unavailable(impl_->model_error);
    if (impl_->phase == EnginePhase::kStopping) return unavailable("The engine is stopping.");
  }
  impl_->publish_snapshot();  // whoever waited reads what is there now, not what was a quarter of a second ago
  return {};
}

}  // namespace sluice
