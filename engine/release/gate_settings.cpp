// SPDX-License-Identifier: GPL-3.0-or-later
// Presets, ranges and comparisons of GateSettings.
#include <cmath>
#include <cstdio>

#include "base/excerpt.h"
#include "release/gate.h"

namespace sluice {
namespace {

std::string plain(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
}

Status in_range(const char* field, double value, double lo, double hi) {
  if (value >= lo && value <= hi) return {};  // NaN fails
  return invalid_argument("gate setting \"" + std::string(field) + "\" is " + plain(value) + "; it must lie between " +
                          plain(lo) + " and " + plain(hi));
}

Status check_limits(const InvariantLimits& v) {
  const struct {
    const char* field;
    double value, lo, hi;
  } rows[] = {
      {"kl_incumbent", v.kl_incumbent, 0, 100},
      {"kl_base", v.kl_base, 0, 100},
      {"eos_drop", v.eos_drop, 0, 1},
      {"cut_rise", v.cut_rise, 0, 1},
      {"empty_rise", v.empty_rise, 0, 1},
      {"length_ratio_lo", v.length_ratio_lo, 0, 1},
      {"length_ratio_hi", v.length_ratio_hi, 1, 1000},
      {"distinct3_ratio", v.distinct3_ratio, 0, 1},
      {"duplicate_ratio", v.duplicate_ratio, 0, 1000},
      {"duplicate_rise", v.duplicate_rise, 0, 1},
      {"latency_ratio", v.latency_ratio, 1, 1000},
      {"probe_mismatch", v.probe_mismatch, 0, 10},
  };
  for (const auto& row : rows) SLUICE_RETURN_IF_ERROR(in_range(row.field, row.value, row.lo, row.hi));
  return {};
}

}  // namespace

const char* gate_profile_name(GateProfile profile) {
  switch (profile) {
    case GateProfile::kDemo: return "demo";
    case GateProfile::kStandard: return "standard";
    case GateProfile::kStrict: return "strict";
    case GateProfile::kOff: return "off";
  }
  return "unknown";
}

Result<GateProfile> parse_gate_profile(std::string_view text) {
  for (const GateProfile p : {GateProfile::kDemo, GateProfile::kStandard, GateProfile::kStrict, GateProfile::kOff}) {
    if (text == gate_profile_name(p)) return p;
  }
  return invalid_argument("gate profile \"" + excerpt(text) + "\" is unknown: use demo, standard, strict or off");
}

GateSettings gate_preset(GateProfile profile) {
  GateSettings s;
  s.profile = profile;
  if (profile == GateProfile::kStrict) {
    s.delta = 0.01;
    s.alpha = 0.02;
    s.cap = 1600;
    s.n_min = 60;
    s.protected_alpha = 0.02;
  } else if (profile == GateProfile::kDemo) {
    s.delta = 0.05;
    s.alpha = 0.10;
    s.cap = 128;
    s.n_min = 16;
    s.rule.k = 50;
    s.rule.mu0 = 0.10;
    s.protected_alpha = 0.20;  // 68 pairs that lose nothing; at 0.05 it would take 122 of the 128
    // Sixteen probes keep stage 1 within seconds on two cores. A share of sixteen moves by 12 points (one deviation) by
    // chance, and one answer is six points, so the limits on shares are wider than the standard ones.
    s.probes = 16;
    s.invariants.eos_drop = 0.35;
    s.invariants.cut_rise = 0.35;
    s.invariants.empty_rise = 0.15;
    s.invariants.duplicate_rise = 0.15;
    s.invariants.latency_ratio = 2.0;
  }
  return s;
}

Status check_gate_settings(const GateSettings& s) {
  SLUICE_RETURN_IF_ERROR(in_range("alpha", s.alpha, 1e-6, 0.5));
  SLUICE_RETURN_IF_ERROR(in_range("beta", s.beta, 1e-6, 0.5));
  SLUICE_RETURN_IF_ERROR(in_range("delta", s.delta, 0, 0.5));
  SLUICE_RETURN_IF_ERROR(in_range("cap", s.cap, 1, 100000));
  SLUICE_RETURN_IF_ERROR(in_range("n_min", s.n_min, 1, s.cap));
  SLUICE_RETURN_IF_ERROR(in_range("k", s.rule.k, 1e-6, 1e6));
  SLUICE_RETURN_IF_ERROR(in_range("mu0", s.rule.mu0, 0, 1));
  SLUICE_RETURN_IF_ERROR(in_range("v0", s.rule.v0, 1e-6, 1));
  SLUICE_RETURN_IF_ERROR(in_range("protected_delta", s.protected_delta, 0, 0.5));
  SLUICE_RETURN_IF_ERROR(in_range("protected_limit", s.protected_limit, 1, 1e6));
  SLUICE_RETURN_IF_ERROR(in_range("protected_alpha", s.protected_alpha, 1e-6, 1));
  SLUICE_RETURN_IF_ERROR(in_range("anchor_delta", s.anchor_delta, 0, 0.5));
  SLUICE_RETURN_IF_ERROR(in_range("anchor_limit", s.anchor_limit, 1, 1e6));
  SLUICE_RETURN_IF_ERROR(in_range("probes", s.probes, 1, 1000));
  // A stake must never cost more than everything: 1 + lam X > 0 for the lowest X, which is -1 less the widest margin.
  const double widest = std::fmax(s.delta, std::fmax(s.protected_delta, s.anchor_delta));
  SLUICE_RETURN_IF_ERROR(in_range("lam_max", s.rule.lam_max, 1e-6, 0.99 / (1 + widest)));
  return check_limits(s.invariants);
}

GateSettings in_flight(const GateSettings& start, const GateSettings& now) {
  GateSettings out = now;
  out.profile = start.profile;
  out.delta = start.delta;
  out.rule = start.rule;
  out.anchor = start.anchor;
  out.anchor_delta = start.anchor_delta;
  out.probes = start.probes;
  return out;
}

bool loosens(const GateSettings& now, const GateSettings& next) {
  const InvariantLimits& a = now.invariants;
  const InvariantLimits& b = next.invariants;
  const bool off = next.profile == GateProfile::kOff && now.profile != GateProfile::kOff;
  const bool verdict = next.alpha > now.alpha || next.beta < now.beta || next.delta > now.delta || next.n_min < now.n_min;
  const bool guards = next.protected_delta > now.protected_delta || next.protected_limit > now.protected_limit ||
                      next.protected_alpha > now.protected_alpha || (now.anchor && !next.anchor) || next.anchor_delta > now.anchor_delta ||
                      next.anchor_limit < now.anchor_limit;
  const bool limits = b.kl_incumbent > a.kl_incumbent || b.kl_base > a.kl_base || b.eos_drop > a.eos_drop ||
                      b.cut_rise > a.cut_rise || b.empty_rise > a.empty_rise || b.length_ratio_lo < a.length_ratio_lo ||
                      b.length_ratio_hi > a.length_ratio_hi || b.distinct3_ratio < a.distinct3_ratio ||
                      b.duplicate_ratio > a.duplicate_ratio || b.duplicate_rise > a.duplicate_rise ||
                      b.latency_ratio > a.latency_ratio || b.probe_mismatch > a.probe_mismatch;
  return off || verdict || guards || limits;
}

}  // namespace sluice
