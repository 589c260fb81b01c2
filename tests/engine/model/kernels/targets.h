// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a check on every instruction set that this CPU and this build have.
#pragma once

#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <cstdint>
#include <functional>

namespace sluice {

inline void on_every_target(const std::function<void(std::int64_t target)>& check) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    hwy::SetSupportedTargetsForTest(target);
    check(target);
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace sluice
