// SPDX-License-Identifier: GPL-3.0-or-later
// The gate's verdict: decide(settings, evidence) is a pure fold over stored evidence and the only code that makes verdicts
// (gate.md §3-§5). The evaluator, what-if and replay all call it. No I/O, no clock; values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "release/betting.h"
#include "release/invariants.h"

namespace sluice {

enum class GateProfile { kDemo, kStandard, kStrict, kOff };
const char* gate_profile_name(GateProfile profile);
Result<GateProfile> parse_gate_profile(std::string_view text);

// Versioned rows hold these as JSON (release/gate_json.h). Which take effect at once: in_flight() below.
struct GateSettings {
  GateProfile profile = GateProfile::kStandard;
  double alpha = 0.05;             // chance to promote a candidate that is worse by delta or more
  double beta = 0.10;              // chance to reject one that is better by delta or more
  double delta = 0.02;             // margin, as a share (0.02 = 2 points)
  int n_min = 30;                  // no verdict before so many pairs
  int cap = 800;                   // hold after so many
  BettingRule rule;
  double protected_delta = 0.05;   // loss of a protected metric, to the incumbent or to the anchor, that is too much
  double protected_limit = 20;     // shown by a harm process of this it rejects
  double protected_alpha = 0.05;   // chance to promote a candidate that loses so much; 1 = no evidence is asked for
  bool anchor = true;
  double anchor_delta = 0.02;
  double anchor_limit = 20;
  int probes = 64;                 // prompts of stage 1
  InvariantLimits invariants;

  bool operator==(const GateSettings&) const = default;
};

// The presets of gate.md §3.3.
GateSettings gate_preset(GateProfile profile);
// kInvalidArgument naming the field, its value and the allowed range.
Status check_gate_settings(const GateSettings& settings);
// Settings for an evaluation that began under `start` while `now` is in force: limits move at once, what the processes
// themselves are made of stays.
GateSettings in_flight(const GateSettings& start, const GateSettings& now);
// Whether `next` lets anything through that `now` would not: the change is asked about once (gate.md §5).
bool loosens(const GateSettings& now, const GateSettings& next);

// One prompt answered by the arms. Scores are in [0, 1], 1 = accepted.
struct PairEvidence {
  double candidate = 0, incumbent = 0, anchor = 0;
  double candidate_protected = 0, incumbent_protected = 0, anchor_protected = 0;
  bool voided = false;          // infrastructure failed: the pair says nothing
  bool equal_answers = false;   // both arms wrote the same text
};

struct Evidence {
  VersionId candidate, incumbent, anchor;
  std::string metric = "accept rate";       // as it reads in a sentence
  std::string protected_metric;             // "" = none
  bool same_signal = false;                 // the metric's source is the training reward's source too
  bool anchor_applies = false;              // an anchor other than the incumbent was measured
  bool pool_exhausted = false;              // no unused prompt is left
  ProbeEvidence probe;
  std::vector<PairEvidence> pairs;          // in the order of the seeded permutation
};

enum class Outcome { kNeedsMore, kPromote, kReject, kHold };

struct Tally {
  std::int64_t k = 0, n = 0;  // accepted (score >= 0.5) of n
};

struct Decision {
  Outcome outcome = Outcome::kNeedsMore;
  std::string stage;         // "invariants", "shadow", "anchor"
  std::string reason_code;   // see gate.cpp
  std::string reason_text;   // one sentence made from the numbers
  bool forced = false;       // profile off
  std::int64_t n = 0, voids = 0, wins = 0, losses = 0, ties = 0, equal_answers = 0;
  double mean_d = 0, lo = -1, hi = 1;
  // Highest values reached so far, natural logs (a limit once reached stays reached, as Ville's inequality allows).
  double log_e = 0, log_f = 0, log_ea = 0, log_ha = 0;
  double log_hp = 0, log_hpa = 0;         // protected metric's harm processes: against the incumbent, against the anchor
  double log_ep = 0;                      // that it is kept: against the anchor, or the incumbent where that is the anchor
  double mean_protected = 0, mean_protected_anchor = 0;             // candidate - incumbent, candidate - anchor
  Tally candidate, incumbent, anchor;
  Tally candidate_protected, incumbent_protected, anchor_protected;
  std::vector<InvariantCheck> invariants;
};

// Folds pairs one at a time; judge() may be asked after any of them. decide() = add all, judge once.
class GateFold {
 public:
  GateFold(const GateSettings& settings, const Evidence& head);  // `head`'s pairs are not read

  void add(const PairEvidence& pair);
  // Outcome alone, cheap; `pool_exhausted` as in Evidence.
  Outcome outcome(bool pool_exhausted = false) const;
  // The same with every number and the sentence.
  Decision judge(bool pool_exhausted = false) const;

 private:
  struct Reason {
    Outcome outcome;
    const char* stage;
    const char* code;
  };
  Reason reason(bool pool_exhausted) const;
  Reason stage_one() const;
  Reason harm() const;
  bool protected_kept() const;
  bool protected_out_of_reach() const;
  bool too_many_voids() const;

  GateSettings settings_;
  Evidence head_;
  std::vector<InvariantCheck> checks_;
  PairedBets main_;
  BetProcess anchor_up_, anchor_down_, protected_up_, protected_down_, protected_anchor_down_;
  Decision numbers_;
  std::vector<bool> recent_voids_;  // ring of the last 50
  std::size_t recent_at_ = 0;
  double sum_protected_ = 0, sum_protected_anchor_ = 0;
  std::int64_t both_floor_ = 0, both_ceiling_ = 0;
};

Decision decide(const GateSettings& settings, const Evidence& evidence);

}  // namespace sluice
