// SPDX-License-Identifier: GPL-3.0-or-later
// A program that links sluice::jemalloc runs on jemalloc with decay off.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/types.h>

namespace {

TEST(Jemalloc, DecayIsOff) {
  using Mallctl = int (*)(const char*, void*, size_t*, void*, size_t);
  const auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
  ASSERT_NE(mallctl, nullptr) << "jemalloc is not loaded";
  for (const char* name : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
    ssize_t value = 0;
    size_t size = sizeof(value);
    ASSERT_EQ(mallctl(name, &value, &size, nullptr, 0), 0) << name;
    EXPECT_EQ(value, -1) << name;
  }
}

}  // namespace
