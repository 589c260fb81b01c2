// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/clock.h"

namespace sluice {
namespace {

class SystemClock final : public Clock {
 public:
  std::int64_t wall_us() const override {
    return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  }
  SteadyTime steady() const override { return std::chrono::steady_clock::now(); }
};

}  // namespace

const Clock& Clock::system() {
  static const SystemClock clock;
  return clock;
}

}  // namespace sluice
