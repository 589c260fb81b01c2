// SPDX-License-Identifier: GPL-3.0-or-later
// Working memory of the kernels: one block a thread, so that a step allocates nothing once warm.
#pragma once

#include <cstddef>

namespace sluice {

// `bytes` aligned to 64, contents undefined. Valid until the calling thread's next call; grows, and goes with the thread.
std::byte* thread_scratch(std::size_t bytes);

}  // namespace sluice
