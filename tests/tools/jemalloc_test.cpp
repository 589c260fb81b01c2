// SPDX-License-Identifier: GPL-3.0-or-later
// A program that links sluice::jemalloc runs on jemalloc with decay off, and what is freed is found again.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace {

using Mallctl = int (*)(const char*, void*, size_t*, void*, size_t);
Mallctl mallctl() { return reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl")); }

TEST(Jemalloc, DecayIsOff) {
  ASSERT_NE(mallctl(), nullptr) << "jemalloc is not loaded";
  for (const char* name : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
    ssize_t value = 0;
    size_t size = sizeof(value);
    ASSERT_EQ(mallctl()(name, &value, &size, nullptr, 0), 0) << name;
    EXPECT_EQ(value, -1) << name;
  }
}

// As loading and dropping an adapter does it: hundreds of blocks of some sizes, then all of them freed.
TEST(Jemalloc, BlocksThatComeAndGoTakeNoMoreMemoryThanOnce) {
  ASSERT_NE(mallctl(), nullptr) << "jemalloc is not loaded";
  const auto resident = [] {
    std::uint64_t epoch = 1;
    mallctl()("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
    size_t value = 0, size = sizeof(value);
    EXPECT_EQ(mallctl()("stats.resident", &value, &size, nullptr, 0), 0);
    return value;
  };
  const auto load_and_drop = [] {
    std::vector<std::vector<float>> kept;
    for (int layer = 0; layer < 30; ++layer) {
      for (const std::size_t floats : {9216, 9216, 9216, 3072, 9216, 3072, 9216, 9216, 9216, 24576, 9216, 24576, 24576, 9216}) {
        kept.emplace_back(floats);
        const std::vector<std::int16_t> scratch(floats);
      }
    }
  };
  for (int i = 0; i < 20; ++i) load_and_drop();
  const size_t before = resident();
  for (int i = 0; i < 200; ++i) load_and_drop();
  EXPECT_LT(resident(), before + (size_t{8} << 20));
}

}  // namespace
