// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/target.h"

#define HWY_WANT_AVX3_DL 1
#include <hwy/targets.h>

namespace sluice {

std::vector<std::string> kernel_targets() {
  hwy::SetSupportedTargetsForTest(0);
  std::vector<std::string> names;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string kernel_target() { return hwy::TargetName(hwy::SupportedAndGeneratedTargets().front()); }

bool use_kernel_target(const std::string& name) {
  hwy::SetSupportedTargetsForTest(0);
  if (name == "best") return true;
  for (const auto target : hwy::SupportedAndGeneratedTargets()) {
    if (name == hwy::TargetName(target)) {
      hwy::SetSupportedTargetsForTest(target);
      return true;
    }
  }
  return false;
}

}  // namespace sluice
