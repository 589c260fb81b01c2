// SPDX-License-Identifier: GPL-3.0-or-later
// Which instruction set the kernels run on: a condition of every measurement. Names are Highway's: "AVX3_DL" (AVX-512 with
// VNNI), "AVX3" (AVX-512), "AVX2", "SSE4", "SSSE3", "SCALAR".
#pragma once

#include <string>
#include <vector>

namespace sluice {

// The ones this build has and this CPU supports, best first. Thread-safe.
std::vector<std::string> kernel_targets();

// The one in use.
std::string kernel_target();

// Holds all kernels to one of them, or lets them choose again ("best"). False: not in kernel_targets(). For tests and
// measurements, while no kernel runs and no ActivationBlocks is in use.
bool use_kernel_target(const std::string& name);

}  // namespace sluice
