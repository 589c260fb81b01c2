// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a check on every instruction set that this CPU and this build have.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "model/kernels/target.h"

namespace sluice {

inline void on_every_target(const std::function<void()>& check) {
  for (const std::string& target : kernel_targets()) {
    SCOPED_TRACE(target);
    ASSERT_TRUE(use_kernel_target(target));
    check();
  }
  use_kernel_target("best");
}

}  // namespace sluice
