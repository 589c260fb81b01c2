// SPDX-License-Identifier: GPL-3.0-or-later
#include "gate/threshold_specs.h"

#include "gate/gate_panel.h"

namespace sluice::gui {

std::vector<ThresholdSpec> mainThresholds() {
  return {
      {{QStringLiteral("alpha")}, GatePanel::tr("Risk of a wrong promotion"),
       GatePanel::tr("Chance to promote a candidate that is worse by the margin or more (alpha). Smaller asks for more evidence."), 0.005, 0.3, 0.005, 3},
      {{QStringLiteral("beta")}, GatePanel::tr("Risk of a wrong rejection"),
       GatePanel::tr("Chance to reject a candidate that is better by the margin or more (beta)."), 0.005, 0.3, 0.005, 3},
      {{QStringLiteral("n_min")}, GatePanel::tr("Least pairs"), GatePanel::tr("No verdict before so many prompts were answered by both."), 1, 400, 1, 0},
      {{QStringLiteral("cap")}, GatePanel::tr("Most pairs"), GatePanel::tr("Without a verdict by then the candidate is held."), 8, 2000, 8, 0},
      {{QStringLiteral("protected_delta")}, GatePanel::tr("Loss of the protected metric"),
       GatePanel::tr("A proven loss of this much (a share) rejects, however good the rest is; a promotion needs it excluded."), 0.01, 0.3, 0.01, 2},
      {{QStringLiteral("protected_alpha")}, GatePanel::tr("Risk to the protected metric"),
       GatePanel::tr("Chance to promote a candidate that loses this much of the protected metric. At 1 no evidence is asked for."), 0.01, 1.0, 0.01, 2},
      {{QStringLiteral("invariants"), QStringLiteral("kl_base")}, GatePanel::tr("Divergence from the base"),
       GatePanel::tr("Nats per token on the probe prompts; above it the candidate is rejected unmeasured."), 0.05, 4.0, 0.05, 2},
      {{QStringLiteral("invariants"), QStringLiteral("kl_incumbent")}, GatePanel::tr("Divergence from what serves"),
       GatePanel::tr("Nats per token on the probe prompts, against the version in service."), 0.05, 4.0, 0.05, 2},
  };
}

std::vector<ThresholdSpec> furtherThresholds() {
  return {
      {{QStringLiteral("delta")}, GatePanel::tr("Margin"),
       GatePanel::tr("How much worse (a share of accepted answers) counts as worse. A change holds from the next candidate on."), 0, 0.2, 0.005, 3},
      {{QStringLiteral("protected_limit")}, GatePanel::tr("Evidence of harm"),
       GatePanel::tr("A loss of the protected metric is proven, and the candidate rejected, when the bet on it has grown to this."), 2, 1000, 1, 0},
      {{QStringLiteral("anchor_delta")}, GatePanel::tr("Loss against the anchor"),
       GatePanel::tr("How much worse than the anchor counts as worse. A change holds from the next candidate on."), 0, 0.3, 0.01, 2},
      {{QStringLiteral("anchor_limit")}, GatePanel::tr("Evidence against the anchor"),
       GatePanel::tr("No promotion before the bet that the candidate is not worse than the anchor has grown to this."), 1, 100, 1, 0},
      {{QStringLiteral("invariants"), QStringLiteral("eos_drop")}, GatePanel::tr("Fewer finished answers"),
       GatePanel::tr("On the probe prompts: how far the share of finished answers may lie below that of what serves."), 0, 1, 0.01, 2},
      {{QStringLiteral("invariants"), QStringLiteral("cut_rise")}, GatePanel::tr("More answers cut"),
       GatePanel::tr("How far the share of answers cut by the token limit may lie above that of what serves."), 0, 1, 0.01, 2},
      {{QStringLiteral("invariants"), QStringLiteral("empty_rise")}, GatePanel::tr("More empty answers"),
       GatePanel::tr("How far the share of empty answers may lie above that of what serves."), 0, 1, 0.01, 2},
      {{QStringLiteral("invariants"), QStringLiteral("length_ratio_lo")}, GatePanel::tr("Shortest mean length"),
       GatePanel::tr("Mean length of the answers, at least so many times that of what serves and of the base."), 0, 1, 0.05, 2},
      {{QStringLiteral("invariants"), QStringLiteral("length_ratio_hi")}, GatePanel::tr("Longest mean length"),
       GatePanel::tr("Mean length of the answers, at most so many times that of what serves and of the base."), 1, 10, 0.1, 1},
      {{QStringLiteral("invariants"), QStringLiteral("distinct3_ratio")}, GatePanel::tr("Variety"),
       GatePanel::tr("Different groups of three tokens, at least so many times those of what serves."), 0, 1, 0.05, 2},
      {{QStringLiteral("invariants"), QStringLiteral("duplicate_ratio")}, GatePanel::tr("Repeated answers, times"),
       GatePanel::tr("Equal answers, at most so many times those of what serves, and the share below on top."), 0, 10, 0.1, 1},
      {{QStringLiteral("invariants"), QStringLiteral("duplicate_rise")}, GatePanel::tr("Repeated answers, share"),
       GatePanel::tr("Share of equal answers allowed on top."), 0, 1, 0.01, 2},
      {{QStringLiteral("invariants"), QStringLiteral("latency_ratio")}, GatePanel::tr("Time between tokens"),
       GatePanel::tr("At most so many times that of what serves."), 1, 10, 0.1, 1},
      {{QStringLiteral("invariants"), QStringLiteral("probe_mismatch")}, GatePanel::tr("Serving against training"),
       GatePanel::tr("Mean difference of the log-probabilities that serving and training compute for one probe answer."), 0, 0.05, 0.0005, 4},
  };
}

}  // namespace sluice::gui
