// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/gate.h"

#include <algorithm>
#include <cmath>

#include "release/sentence.h"

namespace sluice {
namespace {

constexpr std::size_t kVoidWindow = 50;      // gate.md §2: more than 10 % void in the last 50
constexpr std::size_t kVoidsAllowed = 5;
constexpr std::int64_t kLookForSameness = 100;  // gate.md §4: floor, ceiling, no_change after so many pairs
constexpr double kSameShare = 0.95;

bool reached(double log_value, double limit) { return log_value >= std::log(limit); }

bool all_alike(std::int64_t part, std::int64_t n) {
  return n >= kLookForSameness && static_cast<double>(part) >= kSameShare * static_cast<double>(n);
}

void count(Tally& tally, double score) {
  tally.k += score >= 0.5;
  ++tally.n;
}

}  // namespace

GateFold::GateFold(const GateSettings& settings, const Evidence& head)
    : settings_(settings),
      head_(head),
      checks_(check_invariants(head.probe, settings.invariants, settings.profile == GateProfile::kOff)),
      main_(settings.rule, settings.delta),
      anchor_up_(settings.rule),
      anchor_down_(settings.rule),
      protected_up_(settings.rule),
      protected_down_(settings.rule),
      protected_anchor_down_(settings.rule),
      recent_voids_(kVoidWindow, false) {
  head_.pairs.clear();
}

void GateFold::add(const PairEvidence& pair) {
  recent_voids_[recent_at_] = pair.voided;
  recent_at_ = (recent_at_ + 1) % kVoidWindow;
  if (pair.voided) {
    ++numbers_.voids;
    return;
  }
  const double d = pair.candidate - pair.incumbent;
  main_.add(d);
  ++numbers_.n;
  numbers_.wins += d > 0;
  numbers_.losses += d < 0;
  numbers_.ties += d == 0;
  numbers_.equal_answers += pair.equal_answers;
  both_floor_ += pair.candidate <= 0 && pair.incumbent <= 0;
  both_ceiling_ += pair.candidate >= 1 && pair.incumbent >= 1;
  count(numbers_.candidate, pair.candidate);
  count(numbers_.incumbent, pair.incumbent);
  if (head_.anchor_applies) {
    const double to_anchor = pair.candidate - pair.anchor;
    anchor_up_.add(to_anchor + settings_.anchor_delta);
    anchor_down_.add(-settings_.anchor_delta - to_anchor);
    count(numbers_.anchor, pair.anchor);
  }
  if (!head_.protected_metric.empty()) {
    const double change = pair.candidate_protected - pair.incumbent_protected;
    protected_down_.add(-settings_.protected_delta - change);
    sum_protected_ += change;
    count(numbers_.candidate_protected, pair.candidate_protected);
    count(numbers_.incumbent_protected, pair.incumbent_protected);
    const double to_anchor = pair.candidate_protected - pair.anchor_protected;
    protected_up_.add((head_.anchor_applies ? to_anchor : change) + settings_.protected_delta);
    if (head_.anchor_applies) {
      protected_anchor_down_.add(-settings_.protected_delta - to_anchor);
      sum_protected_anchor_ += to_anchor;
      count(numbers_.anchor_protected, pair.anchor_protected);
    }
  }
}

bool GateFold::too_many_voids() const {
  return static_cast<std::size_t>(std::count(recent_voids_.begin(), recent_voids_.end(), true)) > kVoidsAllowed;
}

// The order of gate.md §3: cheap stages first, the first reject or hold ends it.
GateFold::Reason GateFold::stage_one() const {
  if (!head_.probe.measured) return {Outcome::kNeedsMore, "invariants", "probes"};
  for (const InvariantCheck& check : checks_) {
    if (!check.passed) return {Outcome::kReject, "invariants", check.name.c_str()};
  }
  if (settings_.profile == GateProfile::kOff) return {Outcome::kPromote, "invariants", "ungated"};
  if (head_.same_signal && head_.protected_metric.empty()) return {Outcome::kHold, "invariants", "no_protected_metric"};
  return {Outcome::kNeedsMore, "shadow", "pairs"};
}

// Losses that are shown. The protected metric is held against the anchor too: each of several promotions in a row may lose a
// little to its incumbent without showing it, and the losses add up.
GateFold::Reason GateFold::harm() const {
  const bool guarded = !head_.protected_metric.empty();
  if (guarded && reached(protected_down_.log_highest(), settings_.protected_limit)) {
    return {Outcome::kReject, "shadow", "protected_harm"};
  }
  if (guarded && head_.anchor_applies && reached(protected_anchor_down_.log_highest(), settings_.protected_limit)) {
    return {Outcome::kReject, "anchor", "protected_harm"};
  }
  if (head_.anchor_applies && reached(anchor_down_.log_highest(), settings_.anchor_limit)) {
    return {Outcome::kReject, "anchor", "anchor_harm"};
  }
  return {Outcome::kNeedsMore, "shadow", "pairs"};
}

// The pairs that show a gain are too few to show a loss that matters, and a promotion at the first pair where the measured
// loss is small would pick the luckiest moment of many. So a process of its own must exclude the loss, with the same promise as
// E: a candidate that loses protected_delta or more is promoted with probability <= protected_alpha, whenever anyone looks.
bool GateFold::protected_kept() const {
  return head_.protected_metric.empty() || reached(protected_up_.log_highest(), 1 / settings_.protected_alpha);
}

// Whether it can't be shown any more before the cap, even if no further pair loses it: measuring on would be idle.
bool GateFold::protected_out_of_reach() const {
  const double left = static_cast<double>(std::max<std::int64_t>(settings_.cap - numbers_.n, 0));
  const double most = protected_up_.log_value() + left * std::log1p(settings_.rule.lam_max * settings_.protected_delta);
  return !protected_kept() && !reached(most, 1 / settings_.protected_alpha);
}

GateFold::Reason GateFold::reason(bool pool_exhausted) const {
  const Reason first = stage_one();
  if (first.outcome != Outcome::kNeedsMore || !head_.probe.measured) return first;
  if (too_many_voids()) return {Outcome::kHold, "shadow", "judge_unhealthy"};
  const std::int64_t n = numbers_.n;
  const bool better = reached(main_.log_e_highest(), 1 / settings_.alpha);
  const bool above_anchor = !head_.anchor_applies || reached(anchor_up_.log_highest(), settings_.anchor_limit);
  if (n >= settings_.n_min) {
    if (const Reason shown = harm(); shown.outcome == Outcome::kReject) return shown;
    if (better && above_anchor && protected_kept()) return {Outcome::kPromote, "shadow", "better"};
    if (better && above_anchor && protected_out_of_reach()) {
      return {Outcome::kHold, head_.anchor_applies ? "anchor" : "shadow", "protected"};
    }
    if (!better && reached(main_.log_f_highest(), 1 / settings_.beta)) return {Outcome::kReject, "shadow", "not_better"};
    if (all_alike(numbers_.equal_answers, n)) return {Outcome::kReject, "shadow", "no_change"};
    if (!better && all_alike(both_floor_, n)) return {Outcome::kHold, "shadow", "floor"};
    if (!better && all_alike(both_ceiling_, n)) return {Outcome::kHold, "shadow", "ceiling"};
  }
  if (n >= settings_.cap) {
    return better ? Reason{Outcome::kHold, "anchor", "anchor"} : Reason{Outcome::kHold, "shadow", "inconclusive"};
  }
  if (pool_exhausted) return {Outcome::kHold, "shadow", "pool_exhausted"};
  return {Outcome::kNeedsMore, "shadow", "pairs"};
}

Outcome GateFold::outcome(bool pool_exhausted) const { return reason(pool_exhausted).outcome; }

Decision GateFold::judge(bool pool_exhausted) const {
  const Reason why = reason(pool_exhausted);
  Decision out = numbers_;
  out.outcome = why.outcome;
  out.stage = why.stage;
  out.reason_code = why.code;
  out.forced = why.outcome == Outcome::kPromote && settings_.profile == GateProfile::kOff;
  out.mean_d = main_.mean();
  out.lo = main_.lower(settings_.alpha);
  out.hi = main_.upper(settings_.alpha);
  out.log_e = main_.log_e_highest();
  out.log_f = main_.log_f_highest();
  out.log_ea = anchor_up_.log_highest();
  out.log_ha = anchor_down_.log_highest();
  out.log_hp = protected_down_.log_highest();
  out.log_ep = protected_up_.log_highest();
  out.log_hpa = protected_anchor_down_.log_highest();
  const double n = static_cast<double>(std::max<std::int64_t>(out.n, 1));
  out.mean_protected = sum_protected_ / n;
  out.mean_protected_anchor = sum_protected_anchor_ / n;
  out.invariants = checks_;
  out.reason_text = decision_sentence(settings_, head_, out);
  return out;
}

Decision decide(const GateSettings& settings, const Evidence& evidence) {
  GateFold fold(settings, evidence);
  for (const PairEvidence& pair : evidence.pairs) fold.add(pair);
  return fold.judge(evidence.pool_exhausted);
}

}  // namespace sluice
