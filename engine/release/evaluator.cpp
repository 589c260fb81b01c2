// SPDX-License-Identifier: GPL-3.0-or-later
// The gate thread's life: waiting for work, beginning and ending an evaluation. Measuring: evaluator_measure.cpp.
#include "release/evaluator.h"

#include <algorithm>
#include <exception>
#include <set>

#include "base/seeds.h"
#include "release/evaluation.h"
#include "release/sentence.h"

namespace sluice {
namespace {

constexpr const char* kMemo = "gate.evaluation";
constexpr auto kTryAgain = std::chrono::seconds(1);  // after the store or the host failed; a notice comes sooner

}  // namespace

Result<StoredGateSettings> stored_gate_settings(const Store& store) {
  const auto row = store.gate_settings();
  if (!row) return StoredGateSettings{SettingsId(), gate_preset(GateProfile::kStandard)};
  SLUICE_ASSIGN_OR_RETURN(GateSettings settings,
                          gate_settings_from_json(row->settings_json, gate_preset(GateProfile::kStandard)));
  return StoredGateSettings{row->id, std::move(settings)};
}

Result<SettingsId> store_gate_settings(Store& store, const GateSettings& settings, const std::string& who,
                                       const std::string& note) {
  SLUICE_RETURN_IF_ERROR(check_gate_settings(settings));
  GateSettingsRow row;
  row.who = who;
  row.note = note;
  row.profile = gate_profile_name(settings.profile);
  row.settings_json = gate_settings_to_json(settings);
  return store.add_gate_settings(std::move(row));
}

Evaluator::Evaluator(Store& store, Registry& registry, AnswerMaker& answers, EvaluatorOptions options)
    : store_(store), registry_(registry), answers_(answers), options_(std::move(options)) {}

Evaluator::~Evaluator() { stop(); }

void Evaluator::start(bool paused) {
  {
    MutexLock lock(mu_);
    paused_ = paused;
    woken_ = true;
  }
  thread_ = std::thread([this] { loop(); });
}

void Evaluator::notify() {
  MutexLock lock(mu_);
  woken_ = true;
  idle_ = false;
  changed_.notify_all();
}

void Evaluator::pause() {
  MutexLock lock(mu_);
  paused_ = true;
  changed_.notify_all();
}

void Evaluator::resume() {
  MutexLock lock(mu_);
  paused_ = false;
  woken_ = true;
  idle_ = false;
  changed_.notify_all();
}

void Evaluator::stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

bool Evaluator::wait_idle(SteadyTime deadline) {
  MutexLock lock(mu_);
  while (!idle_ && !stopping_) {
    if (!changed_.wait_until(mu_, deadline)) return idle_;
  }
  return idle_;
}

EvaluatorState Evaluator::state() const {
  MutexLock lock(mu_);
  return state_;
}

bool Evaluator::interrupted() const {
  {
    MutexLock lock(mu_);
    if (stopping_ || paused_) return true;
  }
  return registry_.frozen();
}

void Evaluator::show(EvaluatorState::Phase phase, const Evaluation* e, const Decision& so_far) {
  EvaluatorState state;
  state.phase = phase;
  state.so_far = so_far;
  if (e != nullptr) {
    state.candidate = e->version.id;
    state.incumbent = e->memo.incumbent;
  }
  MutexLock lock(mu_);
  state_ = std::move(state);
}

void Evaluator::log(LogLevel level, const std::string& text) const {
  if (options_.log != nullptr) options_.log->write(level, "gate", text);
}

void Evaluator::loop() {
  while (wait_for_work()) {
    Step step = Step::kTryLater;
    try {
      const std::optional<VersionId> open = registry_.evaluating();
      const std::optional<VersionId> candidate = open ? open : registry_.newest_candidate();
      if (!candidate) {
        show(EvaluatorState::Phase::kIdle, nullptr, {});
        MutexLock lock(mu_);
        if (!woken_) {
          idle_ = true;
          changed_.notify_all();
        }
        continue;
      }
      step = evaluate(*candidate);
    } catch (const std::exception& error) {
      log(LogLevel::kError, std::string("an evaluation failed: ") + error.what());
    }
    MutexLock lock(mu_);
    if (step == Step::kTryLater) {
      const SteadyTime until = std::chrono::steady_clock::now() + kTryAgain;
      while (!stopping_ && !woken_ && changed_.wait_until(mu_, until)) {
      }
    }
    woken_ = true;  // there may be more to do
  }
  show(EvaluatorState::Phase::kStopped, nullptr, {});
}

// False: stopping. Returns with the work flag taken down. Freezing is the registry's, so it is looked at now and then.
bool Evaluator::wait_for_work() {
  for (;;) {
    const bool frozen = registry_.frozen();
    MutexLock lock(mu_);
    if (stopping_) return false;
    if (woken_ && !paused_ && !frozen) {
      woken_ = false;
      return true;
    }
    if (paused_) state_.phase = EvaluatorState::Phase::kPaused;
    if (!paused_ && frozen) state_.phase = EvaluatorState::Phase::kFrozen;
    if (frozen) {
      changed_.wait_until(mu_, std::chrono::steady_clock::now() + kTryAgain);
    } else {
      changed_.wait(mu_);
    }
  }
}

Evaluator::Step Evaluator::evaluate(VersionId candidate) {
  Evaluation e;
  const auto row = store_.version(candidate);
  if (!row) return Step::kDropped;
  e.version = *row;
  const Step ready = prepare(e);
  if (ready != Step::kGoOn) return ready;
  if (options_.on_begin) options_.on_begin(candidate);

  std::vector<VersionId> held;
  Step step = Step::kGoOn;
  if (const Status usable = registry_.keep_loaded(candidate); usable.ok()) {
    held.push_back(candidate);
  } else if (at_fault(usable)) {
    e.memo.probe.measured = true;
    e.memo.probe.broken = usable.message();
  } else {
    log(LogLevel::kWarning, version_text(candidate) + " can't be loaded now: " + usable.message());
    return Step::kTryLater;
  }
  // The incumbent is held too: an operator may roll back and crowd it out while it is compared.
  for (const VersionId other : {e.memo.incumbent, e.memo.anchor}) {
    if (registry_.keep_loaded(other).ok()) held.push_back(other);
  }
  if (!e.memo.probe.measured) step = measure_probes(e);
  if (step == Step::kGoOn) step = verdict_of(e, false);
  if (step == Step::kGoOn) step = measure_pairs(e);
  for (const VersionId version : held) registry_.let_go(version);
  return step;
}

// A begun evaluation goes on with its own pairs when incumbent and anchor are still the same, else a new attempt begins.
Evaluator::Step Evaluator::prepare(Evaluation& e) {
  const VersionId id = e.version.id;
  if (const Status begun = registry_.begin_evaluation(id); !begun.ok()) {
    log(LogLevel::kWarning, begun.message());
    return Step::kTryLater;
  }
  const VersionId incumbent = registry_.serving(), anchor = registry_.anchor();
  const auto pass = [this](VersionId version, std::optional<VersionPass>& out) {
    Result<VersionPass> made = registry_.make_pass(version);
    if (made.ok()) out = *made;
    return made.ok();
  };
  if (!pass(id, e.candidate) || !pass(incumbent, e.incumbent) || !pass(anchor, e.anchor)) return Step::kTryLater;

  read_memo(e);
  if (e.memo.candidate != id || e.memo.incumbent != incumbent || e.memo.anchor != anchor) {
    std::int64_t attempt = e.memo.candidate == id ? e.memo.attempt + 1 : 0;
    for (const EvidenceRow& row : store_.evidence(id)) attempt = std::max(attempt, row.attempt + 1);
    const Result<StoredGateSettings> now = stored_gate_settings(store_);
    if (!now.ok()) {
      log(LogLevel::kError, "gate settings can't be read: " + now.status().message());
      return Step::kTryLater;
    }
    e.memo = {id, incumbent, anchor, attempt, now->id, Clock::system().wall_us(), 0, {}};
    e.start = now->settings;
    if (const Status written = write_memo(e); !written.ok()) {
      log(LogLevel::kWarning, "the store can't keep an evaluation: " + written.message());
      return Step::kTryLater;
    }
  }
  e.anchor_applies = e.start.anchor && anchor != incumbent;
  plan(e);
  return Step::kGoOn;
}

void Evaluator::read_memo(Evaluation& e) {
  const auto text = store_.value(kMemo);
  if (!text || text->empty()) return;
  Result<EvaluationMemo> memo = memo_from_json(*text);
  if (!memo.ok()) return;
  e.start = gate_preset(GateProfile::kStandard);
  if (memo->settings.valid()) {
    const auto row = store_.gate_settings(memo->settings);
    if (!row) return;
    const auto settings = gate_settings_from_json(row->settings_json, e.start);
    if (!settings.ok()) return;
    e.start = *settings;
  }
  e.memo = *std::move(memo);
}

Status Evaluator::write_memo(const Evaluation& e) { return store_.put_value(kMemo, memo_to_json(e.memo)); }

void Evaluator::plan(Evaluation& e) {
  SplitMix64 mixer(options_.seed ^ static_cast<std::uint64_t>(e.version.id.value));
  e.order_seed = mixer.next() >> 1;
  e.plan = plan_pairs(options_.pool, e.order_seed);
  std::set<std::string> used;  // by an earlier attempt: those prompts come last
  std::int64_t last = -1;
  for (const EvidenceRow& row : store_.evidence(e.version.id)) {
    if (row.attempt < e.memo.attempt) used.insert(row.prompt_id);
    if (row.attempt == e.memo.attempt) last = std::max(last, row.index);
  }
  std::stable_partition(e.plan.begin(), e.plan.end(),
                        [&](std::size_t i) { return !used.contains(options_.pool[i].id); });
  e.pairs = load_pairs(store_, e.version.id, e.memo.attempt, last);
  e.next = static_cast<std::size_t>(last + 1);
}

// The incumbent moved, or somebody decided about the candidate meanwhile.
bool Evaluator::outdated(const Evaluation& e) const {
  if (registry_.serving() != e.memo.incumbent || registry_.anchor() != e.memo.anchor) return true;
  const auto row = store_.version(e.version.id);
  return !row || row->state != VersionState::kEvaluating;
}

Evidence Evaluator::evidence_of(const Evaluation& e, bool pool_exhausted) const {
  Evidence out;
  out.candidate = e.version.id;
  out.incumbent = e.memo.incumbent;
  out.anchor = e.memo.anchor;
  out.metric = options_.metric_name;
  out.protected_metric = options_.protected_metric.rules.empty() ? "" : options_.protected_metric.name;
  out.same_signal = options_.same_signal;
  out.anchor_applies = e.anchor_applies;
  out.pool_exhausted = pool_exhausted;
  out.probe = e.memo.probe;
  out.pairs = e.pairs;
  return out;
}

// Asks the fold under the settings of this moment.
Evaluator::Step Evaluator::verdict_of(Evaluation& e, bool pool_exhausted) {
  if (outdated(e)) return Step::kDropped;
  const Result<StoredGateSettings> now = stored_gate_settings(store_);
  if (!now.ok()) {
    log(LogLevel::kError, "gate settings can't be read: " + now.status().message());
    return Step::kTryLater;
  }
  const GateSettings used = now->id == e.memo.settings ? e.start : in_flight(e.start, now->settings);
  const Evidence evidence = evidence_of(e, pool_exhausted);
  const Decision decision = decide(used, evidence);
  show(EvaluatorState::Phase::kPairs, &e, decision);
  if (decision.outcome == Outcome::kNeedsMore) return Step::kGoOn;

  GateVerdict verdict;
  DecisionRow& row = verdict.row;
  fill_row(evidence, decision, {e.memo.attempt, static_cast<std::int64_t>(e.next) - 1, eval_set_hash(options_.pool)}, row);
  row.session = options_.session;
  row.settings = now->id;
  row.moved_in_flight = now->id != e.memo.settings;
  row.seed = e.order_seed;
  row.duration_s = static_cast<double>(Clock::system().wall_us() - e.memo.started_us) / 1e6;
  row.tokens_spent = e.memo.tokens;
  const Result<DecisionRow> applied = registry_.apply(std::move(verdict));
  if (applied.ok()) {
    if (options_.on_decision) options_.on_decision(*applied);
    return Step::kDone;
  }
  log(LogLevel::kWarning, "a verdict could not be applied: " + applied.status().message());
  if (at_fault(applied.status()) && e.memo.probe.broken.empty()) {
    e.memo.probe.broken = applied.status().message();  // damaged since it was loaded: stage 1 rejects it now
    return verdict_of(e, pool_exhausted);
  }
  if (registry_.frozen()) return Step::kInterrupted;
  return applied.status().code() == Code::kUnavailable ? Step::kTryLater : Step::kDropped;
}

}  // namespace sluice
