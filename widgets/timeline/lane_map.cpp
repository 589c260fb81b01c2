// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline/lane_map.h"

namespace sluice::gui {

std::vector<ServingSegment> servingSegments(const std::vector<DecisionRow>& decisions) {
  std::vector<ServingSegment> out;
  for (const DecisionRow& row : decisions) {
    if (row.verdict != Verdict::kPromote || row.scope == "canary" || !row.version.valid()) continue;
    if (!out.empty()) {
      if (out.back().version == row.version) continue;
      out.back().to_us = row.time_us;
    }
    out.push_back({row.version, row.time_us, 0, row.forced});
  }
  return out;
}

}  // namespace sluice::gui
