// SPDX-License-Identifier: GPL-3.0-or-later
// Durations counted in fixed buckets, as Prometheus wants them. A value; no thread rules.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace sluice {

struct TimeHistogram {
  // Upper bounds in seconds; one more bucket counts what is longer.
  static constexpr std::array<double, 17> kBounds = {0.00001, 0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,    0.5,    1,     2.5,    5,     10,   30,    60};

  void add(double seconds) {
    std::size_t i = 0;
    while (i < kBounds.size() && seconds > kBounds[i]) ++i;
    ++counts[i];
    ++n;
    sum += seconds;
  }

  std::array<std::int64_t, kBounds.size() + 1> counts{};
  std::int64_t n = 0;
  double sum = 0;
};

}  // namespace sluice
