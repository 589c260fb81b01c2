// SPDX-License-Identifier: GPL-3.0-or-later
// Where the head is as far ahead of the gate as it may be and nothing is left to measure (gate.md §4): an operator is asked, or,
// where nobody is there to ask, the newest candidate is tried again at half strength or what was learnt since is discarded.
#include <algorithm>
#include <limits>
#include <vector>

#include "runtime/session.h"

namespace sluice {

void Session::leave_plateau() {
  {
    MutexLock lock(mu_);
    if (paused_ || learning_frozen_) return;
  }
  if (trainer_->status().state != TrainerState::kAtBound) asks_ = false;
  // Looked at before and after the gate: a verdict that came between the looks is still in the trainer's queue.
  const auto at_bound = [this] {
    return trainer_->wait_idle(Clock::system().steady()) && trainer_->status().state == TrainerState::kAtBound;
  };
  if (!at_bound() || !evaluator_->wait_idle(Clock::system().steady()) || !at_bound()) return;
  if (asks_.exchange(!parts_.discard_at_bound)) return;
  const std::string none = "The gate proved none of the candidates of " + std::to_string(recipe_.learn.max_ahead) + " steps: ";
  if (!parts_.discard_at_bound) {
    notice(none + "training waits until you promote or reject one by hand, let it train on, or discard what was learnt since.");
  } else if (!retry_at_half_strength()) {
    notice(none + "the head goes back to the version in service.");
    trainer_->discard();
  }
}

bool Session::retry_at_half_strength() {
  const VersionId held = trainer_->status().head_version;
  if (!parts_.discard_at_bound || !held_for_harm(held)) return false;
  notice("v" + std::to_string(held.value) + ", which gains but may lose too much of the protected metric, is tried again at half "
         "strength.");
  trainer_->backtrack(held);
  return true;
}

Result<int> Session::train_on() {
  SLUICE_RETURN_IF_ERROR(check_asks());
  trainer_->extend(recipe_.learn.max_ahead);
  asks_ = false;
  return recipe_.learn.max_ahead;
}

Status Session::discard_training() {
  SLUICE_RETURN_IF_ERROR(check_asks());
  trainer_->discard();
  asks_ = false;
  return {};
}

Status Session::check_asks() const {
  bool stands = false;
  {
    MutexLock lock(mu_);
    stands = paused_ || learning_frozen_;
  }
  if (!stands && asks_ && trainer_->status().state == TrainerState::kAtBound) return {};
  return conflict("Training does not wait for an answer now: it only does ahead of the gate, with nothing left to measure.");
}

// Was the gain of this version proven, and only the protected metric in the way? A half that still harms is halved again:
// it comes to an end, for nearer to the version in service the gain is no longer proven.
bool Session::held_for_harm(VersionId version) const {
  const std::vector<DecisionRow> decisions = parts_.store->decisions(0, std::numeric_limits<int>::max());
  const auto last = std::find_if(decisions.rbegin(), decisions.rend(), [version](const DecisionRow& d) { return d.version == version; });
  return last != decisions.rend() && last->verdict == Verdict::kHold && last->reason_code == "protected";
}

}  // namespace sluice
