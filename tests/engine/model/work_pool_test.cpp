// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/work_pool.h"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <stdexcept>

namespace sluice {
namespace {

TEST(WorkPool, CoversEveryItemOnce) {
  WorkPool pool(3);
  for (int round = 0; round < 2000; ++round) {
    const std::int64_t n = 1 + round % 257;
    std::vector<std::atomic<int>> hits(static_cast<std::size_t>(n));
    pool.run(n, 1 + round % 5, [&](std::int64_t begin, std::int64_t end, int worker) {
      ASSERT_LT(worker, 3);
      for (std::int64_t i = begin; i < end; ++i) ++hits[static_cast<std::size_t>(i)];
    });
    for (const auto& h : hits) ASSERT_EQ(h.load(), 1);
  }
  pool.run(0, 1, [](std::int64_t, std::int64_t, int) { FAIL(); });
}

TEST(WorkPool, UsesMoreThanOneThread) {
  WorkPool pool(2);
  std::atomic<bool> helped{false};
  // The caller's piece ends only when a helper has one: together they are two threads.
  pool.run(2, 1, [&](std::int64_t, std::int64_t, int worker) {
    if (worker == 1) helped = true;
    while (!helped) std::this_thread::yield();
  });
  EXPECT_TRUE(helped);
  EXPECT_EQ(pool.threads(), 2);
}

TEST(WorkPool, ALimitKeepsHelpersAwayUntilItIsLifted) {
  WorkPool pool(3);
  for (int round = 0; round < 200; ++round) {
    const int limit = 1 + round % 3;
    pool.limit(limit);
    std::atomic<int> sum{0};
    pool.run(64, 1, [&](std::int64_t begin, std::int64_t end, int worker) {
      EXPECT_LT(worker, limit);
      sum += static_cast<int>(end - begin);
    });
    EXPECT_EQ(sum, 64);
  }
  pool.limit(100);
  std::atomic<int> inside{0};
  pool.run(3, 1, [&](std::int64_t, std::int64_t, int) {  // a piece ends only when each of the three has one
    ++inside;
    while (inside < 3) std::this_thread::yield();
  });
  EXPECT_EQ(inside, 3);
  pool.limit(1);  // ends while helpers sleep
}

TEST(WorkPool, OneThreadAndSmallWorkStayWithTheCaller) {
  const auto here = std::this_thread::get_id();
  WorkPool one(1), two(2);
  one.run(1000, 1, [&](std::int64_t, std::int64_t, int worker) {
    EXPECT_EQ(worker, 0);
    EXPECT_EQ(std::this_thread::get_id(), here);
  });
  two.run(10, 10, [&](std::int64_t begin, std::int64_t end, int) {
    EXPECT_EQ(end - begin, 10);
    EXPECT_EQ(std::this_thread::get_id(), here);
  });
}

TEST(WorkPool, PassesExceptionsOnAndGoesOn) {
  WorkPool pool(2);
  for (int round = 0; round < 100; ++round) {
    EXPECT_THROW(pool.run(64, 1, [](std::int64_t begin, std::int64_t, int) {
      if (begin >= 20) throw std::runtime_error("piece");
    }), std::runtime_error);
    std::atomic<int> sum{0};
    pool.run(64, 1, [&](std::int64_t begin, std::int64_t end, int) { sum += static_cast<int>(end - begin); });
    EXPECT_EQ(sum, 64);
  }
}

}  // namespace
}  // namespace sluice
