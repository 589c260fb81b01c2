// SPDX-License-Identifier: GPL-3.0-or-later
// Stage 1 of the gate (gate.md §3.1): what a fixed set of probe prompts says about a candidate, without statistics. The
// numbers here are measured once; the limits of the moment judge them in gate.cpp. Pure functions and values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice {

struct InvariantLimits {
  double kl_incumbent = 0.75;     // nats per token, at most
  double kl_base = 1.0;
  double eos_drop = 0.15;         // share of finished answers: at most so much below the incumbent's
  double cut_rise = 0.15;         // share of answers cut by the budget: at most so much above
  double empty_rise = 0.05;
  double length_ratio_lo = 0.1;   // mean length against the incumbent's and the base's
  double length_ratio_hi = 2.0;
  double distinct3_ratio = 0.7;   // distinct 3-grams: at least so many times the incumbent's
  double duplicate_ratio = 2.0;   // duplicate answers: at most ratio · incumbent's + rise
  double duplicate_rise = 0.05;
  double latency_ratio = 1.2;     // time between tokens, at most so many times the incumbent's
  double probe_mismatch = 1e-3;   // mean |server - trainer| log-prob of one probe

  bool operator==(const InvariantLimits&) const = default;
};

// One answer to a probe prompt.
struct ProbeAnswer {
  std::string text;
  std::vector<std::int32_t> token_ids;
  std::vector<float> lp_full;      // under the version that wrote it
  bool finished = false;           // ended by itself, not cut
  double us_per_token = 0;         // 0 = unknown
};

// What the answers of one version look like.
struct ProbeArm {
  int answers = 0;
  double eos_share = 0, cut_share = 0, empty_share = 0;
  double mean_length = 0;      // tokens
  double distinct3 = 0;        // distinct 3-grams of tokens over all of them, all answers together; 1 when there are none
  double duplicate_share = 0;  // answers equal to an earlier one
  double us_per_token = 0;     // median over answers that tell; 0 = unknown

  bool operator==(const ProbeArm&) const = default;
};

// Everything stage 1 knows. Stored with the decision, so that the stage can be judged again under other limits.
struct ProbeEvidence {
  bool measured = false;            // false: stage 1 did not run
  std::string broken;               // "" or why the adapter can't be used at all (bytes, binding, non-finite output)
  bool same_bytes = false;          // as the incumbent
  int differing = 0;                // probes whose answers differ from the incumbent's
  double kl_incumbent = 0, kl_base = 0;
  std::optional<double> mismatch;   // server against trainer; none where nobody measured it
  ProbeArm candidate, incumbent, base;

  bool operator==(const ProbeEvidence&) const = default;
};

ProbeArm summarise(std::span<const ProbeAnswer> answers);
int count_differing(std::span<const ProbeAnswer> a, std::span<const ProbeAnswer> b);

// Mean of lp - other over all tokens: the sampled estimate of KL(writer || other) in nats per token. Lists of one answer
// must be equally long.
double mean_kl(std::span<const ProbeAnswer> answers, std::span<const std::vector<float>> other);

// One limit compared with one number.
struct InvariantCheck {
  std::string name;        // "kl_base", "length_incumbent", ...
  std::string text;        // what was measured, in words: "KL to the base"
  std::string unit;        // "nats per token", "times", "points"; points are shares here, times 100 in a sentence
  double value = 0, limit = 0;
  bool at_least = false;   // the value must be >= limit; else <= limit
  bool applicable = true;
  bool passed = true;
};

// Every check of §3.1 in order, failed ones included. `only_required`: just the first rows (profile `off`).
std::vector<InvariantCheck> check_invariants(const ProbeEvidence& probe, const InvariantLimits& limits, bool only_required);

}  // namespace sluice
