// SPDX-License-Identifier: GPL-3.0-or-later
// Runs something with little memory, in a process of its own. What asks for more gets std::bad_alloc and fails the test.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

namespace sluice::test {

// Address space for `spare` bytes beyond what is mapped now. Nothing under a sanitizer: its shadow takes terabytes.
inline void leave_memory(std::size_t spare) {
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t most = pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + spare;
  const rlimit limit{most, most};
  if (setrlimit(RLIMIT_AS, &limit) != 0) _exit(3);
#else
  (void)spare;
#endif
}

// fn() returns whether it went as it should.
template <class Fn>
void expect_within_memory(std::size_t spare, const Fn& fn) {
  EXPECT_EXIT({ leave_memory(spare); _exit(fn() ? 0 : 1); }, ::testing::ExitedWithCode(0), "");
}

}  // namespace sluice::test
