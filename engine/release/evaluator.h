// SPDX-License-Identifier: GPL-3.0-or-later
// The gate thread: takes the newest waiting candidate, measures it against incumbent and anchor, folds the evidence, hands
// the verdict to the registry. Evidence is committed before the fold sees it; settings are read again before every verdict.
// Live traffic goes first: answers are asked for with Priority::kGate. All public functions are thread-safe; callbacks run on
// the gate thread and must not call stop().
//
// What it needs to go on after a crash is in the store: evidence rows, and one small value with the probe numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "release/answers.h"
#include "release/gate.h"
#include "release/registry.h"
#include "store/store.h"
#include "tasks/verifier.h"

namespace sluice {

struct EvaluatorOptions {
  SessionId session;
  std::uint64_t seed = 0;
  std::vector<TaskPrompt> pool;      // held-out prompts for pairs
  std::vector<TaskPrompt> probes;    // for stage 1; not in the pool
  RuleSet main;                      // the metric; its source is the persona's
  RuleSet protected_metric;          // no rules = none
  std::string metric_name = "accept rate";
  bool same_signal = true;           // the main metric's source is the training reward's source
  int prompts_in_flight = 4;         // times two or three arms
  // Log-probs of an answer as the trainer computes them; none = that check is not applicable.
  std::function<Result<std::vector<float>>(VersionId, const ShadowAnswer&)> trainer_score;
  std::function<void(const DecisionRow&)> on_decision;   // after commit and publish
  std::function<void(VersionId)> on_begin;               // an evaluation begins or goes on
  const Log* log = nullptr;
};

// For the panel and `status`.
struct EvaluatorState {
  enum class Phase { kIdle, kProbes, kPairs, kPaused, kFrozen, kStopped } phase = Phase::kIdle;
  VersionId candidate, incumbent;
  Decision so_far;                   // outcome kNeedsMore while it runs
};

class Evaluator {
 public:
  Evaluator(Store& store, Registry& registry, AnswerMaker& answers, EvaluatorOptions options);
  ~Evaluator();  // stop()
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  void start(bool paused = false);
  void notify();        // a candidate was registered, the serving version or freezing changed, settings moved
  void pause();         // stands still at the next pair; what was in flight is measured again with the same seeds
  void resume();
  void stop();          // joins; an open evaluation is gone on with after the next start. Idempotent
  // Waits until no candidate waits or is measured, or the deadline passed (false).
  bool wait_idle(SteadyTime deadline);
  EvaluatorState state() const;

 private:
  class Evaluation;     // one candidate under measurement

  void loop();
  void take_next();
  void measure(Evaluation& evaluation);
  bool measure_probes(Evaluation& evaluation);
  bool measure_pairs(Evaluation& evaluation);
  bool conclude(Evaluation& evaluation, bool pool_exhausted);
  Result<std::vector<ShadowAnswer>> probe_answers(VersionId version);
  std::optional<Result<ShadowAnswer>> wait_for(PendingAnswer& answer);
  bool interrupted() const;
  GateSettingsRow settings_now() const;
  void publish_state(EvaluatorState state);

  Store& store_;
  Registry& registry_;
  AnswerMaker& answers_;
  const EvaluatorOptions options_;

  // Gate thread only.
  std::map<std::string, std::pair<double, double>> anchor_scores_;  // prompt id -> main, protected
  VersionId anchor_of_scores_;
  std::map<VersionId, std::vector<ShadowAnswer>> probe_cache_;      // incumbent and base

  mutable Mutex mu_;
  CondVar changed_;
  bool woken_ SLUICE_GUARDED_BY(mu_) = false;
  bool paused_ SLUICE_GUARDED_BY(mu_) = false;
  bool stopping_ SLUICE_GUARDED_BY(mu_) = false;
  bool idle_ SLUICE_GUARDED_BY(mu_) = false;
  EvaluatorState state_ SLUICE_GUARDED_BY(mu_);
  std::thread thread_;
};

// The newest settings row as settings; without one, the preset of `standard` and an invalid id.
struct StoredGateSettings {
  SettingsId id;
  GateSettings settings;
};
Result<StoredGateSettings> stored_gate_settings(const Store& store);
// Checks and commits a new row.
Result<SettingsId> store_gate_settings(Store& store, const GateSettings& settings, const std::string& who,
                                       const std::string& note);

}  // namespace sluice
