// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/sentence.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace sluice {
namespace {

std::string number(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  std::string out = text;
  if (out.find('.') != std::string::npos) {
    while (out.back() == '0') out.pop_back();
    if (out.back() == '.') out.pop_back();
  }
  return out == "-0" ? "0" : out;
}

std::string points(double share) { return number(100 * share, 1) + (std::abs(share - 0.01) < 1e-9 ? " point" : " points"); }

std::string signed_points(double share) {
  const std::string text = number(100 * std::abs(share), 1);
  return (share < 0 && text != "0" ? "\u2212" : "+") + text;
}

std::string odds(double log_value) {
  if (log_value > std::log(1e6)) return "above a million";
  const double value = std::exp(log_value);
  return number(value, value < 100 ? 1 : 0);
}

std::string reached(const char* letter, double log_value, double limit) {
  return "(" + std::string(letter) + " " + odds(log_value) + " \u2265 " + number(limit, 1) + ")";
}

std::string of(const Tally& tally) { return std::to_string(tally.k) + " of " + std::to_string(tally.n); }

std::string opening(const Evidence& head, Outcome outcome) {
  const char* verb = outcome == Outcome::kPromote  ? "Promoted "
                     : outcome == Outcome::kReject ? "Rejected "
                     : outcome == Outcome::kHold   ? "Held "
                                                   : "Measuring ";
  return verb + version_text(head.candidate) + ": ";
}

std::string rates(const Evidence& head, const Decision& d) {
  return head.metric + " " + of(d.candidate) + " against " + of(d.incumbent) + " for " + version_text(head.incumbent);
}

std::string protected_rates(const Evidence& head, const Decision& d, bool to_anchor) {
  return head.protected_metric + " " + of(d.candidate_protected) + " against " +
         (to_anchor ? of(d.anchor_protected) + " for the anchor, " + version_text(head.anchor)
                    : of(d.incumbent_protected) + " for " + version_text(head.incumbent));
}

std::string measured(const InvariantCheck& check, double value) {
  if (check.unit == "points") return number(100 * value, 1) + " points";
  // Two digits that say something: a limit of 0.001 is not 0.
  const double size = std::abs(value);
  const int digits = size > 0 && size < 0.1 ? std::min(1 - static_cast<int>(std::floor(std::log10(size))), 8) : 2;
  return number(value, digits) + (check.unit.empty() ? "" : " " + check.unit);
}

std::string invariant_sentence(const Evidence& head, const Decision& d) {
  if (d.reason_code == "unusable") return "it can't be used: " + head.probe.broken + ".";
  if (d.reason_code == "no_change") {
    return head.probe.same_bytes ? "its bytes equal those of " + version_text(head.incumbent) + "."
                                 : "no probe answer differs from that of " + version_text(head.incumbent) + ".";
  }
  for (const InvariantCheck& check : d.invariants) {
    if (check.passed) continue;
    return check.text + " is " + measured(check, check.value) + "; at " + (check.at_least ? "least " : "most ") +
           measured(check, check.limit) + " is allowed.";
  }
  if (d.reason_code == "ungated") return "the gate is off; the adapter loads and its answers differ.";
  if (d.reason_code == "no_protected_metric") {
    return "the metric has the same source as the training reward, and the recipe has no protected metric from another.";
  }
  return "probe answers are being made.";
}

std::string hold_reason(const GateSettings& s, const Decision& d) {
  const std::string range = "the difference lies between " + signed_points(d.lo) + " and " + signed_points(d.hi) +
                            " points after " + std::to_string(d.n) + " pairs";
  if (d.reason_code == "judge_unhealthy") {
    return std::to_string(d.voids) + " pairs failed for reasons outside the model; it is measured again when asked.";
  }
  if (d.reason_code == "floor") return "both arms fail nearly every prompt, so the prompts can't tell them apart.";
  if (d.reason_code == "ceiling") return "both arms pass nearly every prompt, so the prompts can't tell them apart.";
  if (d.reason_code == "pool_exhausted") return range + ", and no unused prompt is left.";
  if (d.reason_code == "anchor") {
    return "it is not worse than the incumbent, but E against the anchor is " + odds(d.log_ea) + ", below " +
           number(s.anchor_limit, 1) + ", after " + std::to_string(d.n) + " pairs.";
  }
  return range + ".";
}

std::string shadow_sentence(const GateSettings& s, const Evidence& head, const Decision& d) {
  const std::string& code = d.reason_code;
  if (code == "protected_harm") {
    const bool to_anchor = d.stage == "anchor";
    return protected_rates(head, d, to_anchor) + "; a loss of more than " + points(s.protected_delta) + " is shown " +
           reached("H", to_anchor ? d.log_hpa : d.log_hp, s.protected_limit) + ".";
  }
  if (code == "protected") {
    return rates(head, d) + ", but " + protected_rates(head, d, d.stage == "anchor") + "; a loss of " +
           points(s.protected_delta) + " or more can't be excluded within " + std::to_string(s.cap) + " pairs (E " +
           odds(d.log_ep) + ", " + number(1 / s.protected_alpha, 1) + " needed).";
  }
  if (code == "anchor_harm") {
    return head.metric + " " + of(d.candidate) + " against " + of(d.anchor) + " for the anchor, " + version_text(head.anchor) +
           "; worse by more than " + points(s.anchor_delta) + " is shown " + reached("H", d.log_ha, s.anchor_limit) + ".";
  }
  const std::string start = rates(head, d) + "; ";
  if (code == "better") {
    const std::string what = s.delta == 0 ? "not being better" : "being worse by " + points(s.delta) + " or more";
    return start + what + " is excluded " + reached("E", d.log_e, 1 / s.alpha) + ".";
  }
  if (code == "not_better") {
    return start + "being at least " + points(s.delta) + " better is excluded " + reached("F", d.log_f, 1 / s.beta) + ".";
  }
  if (code == "no_change") {
    return std::to_string(d.equal_answers) + " of " + std::to_string(d.n) + " answers equal those of " +
           version_text(head.incumbent) + ".";
  }
  return start + hold_reason(s, d);
}

}  // namespace

std::string version_text(VersionId version) {
  return version == kBaseVersion ? "the base" : "v" + std::to_string(version.value);
}

std::string decision_sentence(const GateSettings& settings, const Evidence& head, const Decision& decision) {
  return opening(head, decision.outcome) + (decision.stage == "invariants" ? invariant_sentence(head, decision)
                                                                           : shadow_sentence(settings, head, decision));
}

}  // namespace sluice
