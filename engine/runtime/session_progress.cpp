// SPDX-License-Identifier: GPL-3.0-or-later
// What a session shows of itself: stream, trainer and gate as values.
#include <algorithm>
#include <cmath>

#include "runtime/session.h"

namespace sluice {
namespace {

TrainPhase phase_of(TrainerState state) {
  switch (state) {
    case TrainerState::kWaiting: return TrainPhase::kWaiting;
    case TrainerState::kTraining: return TrainPhase::kTraining;
    case TrainerState::kAtBound: return TrainPhase::kAtBound;
    case TrainerState::kPaused: return TrainPhase::kPaused;
    case TrainerState::kBraked: return TrainPhase::kBraked;
    case TrainerState::kFailed: return TrainPhase::kFailed;
    case TrainerState::kStopped: return TrainPhase::kEnded;
  }
  return TrainPhase::kFailed;
}

}  // namespace

// Requests of the session with a whole answer; a stop cancels what is in flight, and those are asked again.
std::int64_t answered_requests(const StoreCounts& counts) {
  const auto cut_short = counts.dropped.find("infra");
  return counts.live_records - (cut_short == counts.dropped.end() ? 0 : cut_short->second);
}

StreamProgress Session::stream_progress() const {
  StreamProgress p;
  const StoreCounts counts = parts_.store->counts(row_.id);
  p.requests = answered_requests(counts);
  p.accepted = counts.accepted;
  p.rejected = counts.rejected;
  p.max_requests = max_requests_;
  p.simulated = driver_ != nullptr;
  if (driver_) {
    const DriverCounts driver = driver_->counts();
    p.in_flight = driver.in_flight;
    p.failed = driver.failed;
    p.finished = driver.done;
  }
  return p;
}

TrainProgress Session::train_progress() const {
  const TrainerStatus status = trainer_->status();
  TrainProgress p;
  p.head_step = status.head_step;
  p.batch_size = recipe_.learn.batch_size;
  p.labelled_waiting = parts_.store->counts(row_.id).waiting;
  const auto serving = parts_.store->version(parts_.store->serving_version());
  p.steps_ahead = std::max<std::int64_t>(0, status.head_step - (serving ? serving->head_step : 0));
  p.phase = phase_of(status.state);
  p.asks = asks_ && p.phase == TrainPhase::kAtBound;
  switch (p.phase) {
    case TrainPhase::kWaiting:
      p.doing = "waiting for " + std::to_string(p.batch_size) + " labels (" + std::to_string(p.labelled_waiting) + " here)";
      break;
    case TrainPhase::kTraining: p.doing = "training step " + std::to_string(status.head_step + 1); break;
    case TrainPhase::kAtBound: p.doing = "ahead of the gate: waiting"; break;
    case TrainPhase::kPaused: p.doing = "paused"; break;
    case TrainPhase::kBraked: p.doing = "stopped by a brake"; break;
    case TrainPhase::kFailed: p.doing = "failed"; break;
    case TrainPhase::kEnded: p.doing = "ended"; break;
  }
  if (status.state == TrainerState::kBraked || status.state == TrainerState::kFailed) p.brake = status.message;
  return p;
}

GateProgress Session::gate_progress() const {
  const EvaluatorState state = evaluator_->state();
  GateProgress p;
  p.candidate = state.candidate;
  p.incumbent = state.incumbent;
  p.anchor = parts_.registry->anchor();
  p.measuring = state.phase == EvaluatorState::Phase::kProbes || state.phase == EvaluatorState::Phase::kPairs;
  p.stage = state.phase == EvaluatorState::Phase::kProbes ? "invariants" : p.measuring ? "shadow" : "";
  const Decision& d = state.so_far;
  p.n = d.n;
  p.voids = d.voids;
  p.e = std::exp(d.log_e);
  p.f = std::exp(d.log_f);
  p.lo = d.lo;
  p.hi = d.hi;
  p.candidate_k = d.candidate.k;
  p.incumbent_k = d.incumbent.k;
  p.anchor_k = d.anchor.k;
  p.phase = p.measuring ? GatePhase::kMeasuring : GatePhase::kIdle;
  if (state.phase == EvaluatorState::Phase::kPaused) {
    p.phase = GatePhase::kPaused;
    p.note = "paused";
  }
  if (state.phase == EvaluatorState::Phase::kFrozen) {
    p.phase = GatePhase::kFrozen;
    p.note = "frozen: nothing is promoted";
  }
  if (const auto settings = stored_gate_settings(*parts_.store); settings.ok()) {
    p.cap = settings->settings.cap;
    p.e_limit = 1 / settings->settings.alpha;
    p.f_limit = 1 / settings->settings.beta;
  }
  for (const VersionRow& version : parts_.store->versions()) {
    if (version.state == VersionState::kCandidate) p.waiting.push_back(version.id);
    if (version.state == VersionState::kHeld && version.session == row_.id) p.held.push_back(version.id);
  }
  return p;
}

}  // namespace sluice
