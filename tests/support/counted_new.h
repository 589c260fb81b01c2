// SPDX-License-Identifier: GPL-3.0-or-later
// Replaces operator new so that calls are counted while the program says so. For one source of a program of its own; not under
// sanitizers, which replace it too. Any thread.
#pragma once

#include <atomic>
#include <cstdlib>
#include <new>

namespace sluice::testing {

// Whether this thread's calls count now: the program defines it.
bool counts_new();
inline std::atomic<int> counted_new{0};

}  // namespace sluice::testing

[[gnu::noinline]] void* operator new(std::size_t size) {
  if (sluice::testing::counts_new()) ++sluice::testing::counted_new;
  if (void* p = std::malloc(size ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
