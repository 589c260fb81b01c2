// SPDX-License-Identifier: GPL-3.0-or-later
// The thresholds that the gate panel shows: where each lives in the settings, what it means, and how far it moves there. The
// engine takes wider ranges (PUT /sluice/v1/gate); a value outside is shown at the end of the range and kept as it is.
#pragma once

#include <QString>
#include <QStringList>
#include <vector>

namespace sluice::gui {

struct ThresholdSpec {
  QStringList path;      // {"alpha"} or {"invariants", "kl_base"}
  QString name, meaning;
  double low = 0, high = 1, step = 0.01;
  int decimals = 2;
};

std::vector<ThresholdSpec> mainThresholds();
// The rest of what can reject or promote.
std::vector<ThresholdSpec> furtherThresholds();

}  // namespace sluice::gui
