// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/channel.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace sluice {
namespace {

TEST(Channel, KeepsOrderAndDrainsAfterClose) {
  Channel<int> channel(8);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(channel.push(i));
  channel.close();
  EXPECT_FALSE(channel.push(9));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(channel.pop(), i);
  EXPECT_EQ(channel.pop(), std::nullopt);
}

TEST(Channel, TryPushLeavesTheValueWhenFull) {
  Channel<std::unique_ptr<int>> channel(1);
  auto first = std::make_unique<int>(1);
  auto second = std::make_unique<int>(2);
  EXPECT_TRUE(channel.try_push(first));
  EXPECT_FALSE(channel.try_push(second));
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(*second, 2);
}

TEST(Channel, PopEndsAtItsDeadline) {
  Channel<int> channel(1);
  EXPECT_EQ(channel.pop(std::chrono::steady_clock::now() + std::chrono::milliseconds(1)), std::nullopt);
}

TEST(Channel, ManyProducersAndConsumersLoseNothing) {
  Channel<int> channel(4);
  constexpr int kEach = 1000;
  std::vector<std::thread> threads;
  std::vector<long> sums(3, 0);
  for (int consumer = 0; consumer < 3; ++consumer) {
    threads.emplace_back([&, consumer] {
      while (auto value = channel.pop()) sums[static_cast<std::size_t>(consumer)] += *value;
    });
  }
  std::vector<std::thread> producers;
  for (int producer = 0; producer < 3; ++producer) {
    producers.emplace_back([&] {
      for (int i = 1; i <= kEach; ++i) channel.push(i);
    });
  }
  for (auto& t : producers) t.join();
  channel.close();
  for (auto& t : threads) t.join();
  EXPECT_EQ(std::accumulate(sums.begin(), sums.end(), 0L), 3L * kEach * (kEach + 1) / 2);
}

}  // namespace
}  // namespace sluice
