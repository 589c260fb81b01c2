// SPDX-License-Identifier: GPL-3.0-or-later
// Time to pixels for the timeline, and who served when. Pure functions over rows, no thread rules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "bridge/engine_types.h"

namespace sluice::gui {

struct ServingSegment {
  VersionId version;
  std::int64_t from_us = 0;
  std::int64_t to_us = 0;     // 0 = still serves
  bool forced = false;
};

// From the decisions that moved the serving pointer, ascending; the base serves before the first.
std::vector<ServingSegment> servingSegments(const std::vector<DecisionRow>& decisions);

class LaneMap {
 public:
  LaneMap() = default;
  LaneMap(std::int64_t from_us, std::int64_t to_us, double width) : m_from(from_us), m_to(std::max(to_us, from_us + 1)), m_width(width) {}
  double x(std::int64_t time_us) const {
    return static_cast<double>(time_us - m_from) / static_cast<double>(m_to - m_from) * m_width;
  }
  std::int64_t time(double x) const { return m_from + static_cast<std::int64_t>(x / m_width * static_cast<double>(m_to - m_from)); }

 private:
  std::int64_t m_from = 0;
  std::int64_t m_to = 1;
  double m_width = 1;
};

}  // namespace sluice::gui
