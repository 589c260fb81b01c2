// SPDX-License-Identifier: GPL-3.0-or-later
// Wall and steady time behind an interface, so that tests can move it. Implementations are thread-safe.
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice {

using SteadyTime = std::chrono::steady_clock::time_point;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t wall_us() const = 0;  // microseconds since 1970-01-01 UTC
  virtual SteadyTime steady() const = 0;

  static const Clock& system();
};

}  // namespace sluice
