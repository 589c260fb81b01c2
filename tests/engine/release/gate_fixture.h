// SPDX-License-Identifier: GPL-3.0-or-later
// Evidence of a candidate that nothing is wrong with, for tests to bend.
#pragma once

#include "release/gate.h"

namespace sluice {

inline ProbeEvidence healthy_probe() {
  ProbeEvidence p;
  p.measured = true;
  p.differing = 12;
  p.kl_incumbent = 0.2;
  p.kl_base = 0.3;
  p.candidate = {16, 0.9, 0.1, 0, 30, 0.95, 0, 1000};
  p.incumbent = {16, 0.4, 0.6, 0, 80, 0.9, 0, 1000};
  p.base = p.incumbent;
  return p;
}

inline Evidence healthy() {
  Evidence e;
  e.candidate = VersionId{14};
  e.incumbent = VersionId{12};
  e.protected_metric = "names the topic";
  e.same_signal = true;
  e.probe = healthy_probe();
  return e;
}

// Scores of one prompt; nothing of the protected metric is lost.
inline PairEvidence pair(double candidate, double incumbent) {
  PairEvidence p;
  p.candidate = candidate;
  p.incumbent = incumbent;
  p.candidate_protected = p.incumbent_protected = 1;
  return p;
}

// What the tests of everything else judge by: no evidence is asked for that the protected metric is kept.
inline const GateSettings kDemo = [] {
  GateSettings s = gate_preset(GateProfile::kDemo);
  s.protected_alpha = 1;
  return s;
}();

}  // namespace sluice
