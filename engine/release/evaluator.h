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
  // Log-probs of an answer's tokens as training computes them, with the temperature of its lp_full; on the gate thread, within
  // a second or so. kCorrupt, kNotFound: the version can't be used. None = nothing trains here; that check is not applicable.
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
  void notify();        // a candidate was registered, or something that may let the gate go on: unfrozen, settings moved
  void pause();         // stands still at the next pair; what was in flight is measured again with the same seeds
  void resume();
  void stop();          // joins; an open evaluation is gone on with after the next start. Idempotent
  // Waits until no candidate waits or is measured, or the deadline passed (false).
  bool wait_idle(SteadyTime deadline);
  EvaluatorState state() const;

 private:
  struct Evaluation;            // one candidate under measurement
  struct Flight;                // one prompt on its way through the arms
  enum class Step { kGoOn, kDone, kInterrupted, kDropped, kTryLater };

  void loop();
  bool wait_for_work();
  Step evaluate(VersionId candidate);
  Step prepare(Evaluation& e);
  void read_memo(Evaluation& e);
  Status write_memo(const Evaluation& e);
  void plan(Evaluation& e);
  Step measure_probes(Evaluation& e);
  Step probe_kl(Evaluation& e, const std::vector<ShadowAnswer>& answers);
  Step probe_trainer(Evaluation& e, const std::vector<ShadowAnswer>& answers);
  Step measure_pairs(Evaluation& e);
  Step take_pair(Evaluation& e, Flight& flight);
  bool fill(Evaluation& e, Flight& flight, EvidenceRow& row, bool& equal);
  Step verdict_of(Evaluation& e, bool pool_exhausted);
  Evidence evidence_of(const Evaluation& e, bool pool_exhausted) const;
  Result<std::vector<ShadowAnswer>> answer_all(const std::vector<std::pair<VersionPass, std::size_t>>& jobs,
                                               VersionId& at_fault);
  void launch(Evaluation& e, Flight& flight);
  std::optional<Result<ShadowAnswer>> wait_for(PendingAnswer& answer);
  std::pair<double, double> score(const TaskPrompt& prompt, const ShadowAnswer& answer) const;
  bool interrupted() const;
  bool outdated(const Evaluation& e) const;
  void show(EvaluatorState::Phase phase, const Evaluation* e, const Decision& so_far);
  void log(LogLevel level, const std::string& text) const;

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
