// SPDX-License-Identifier: GPL-3.0-or-later
// Events per second over the last five, in half-second buckets of fixed size. Used under its owner's lock.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace sluice {

class RateMeter {
 public:
  explicit RateMeter(SteadyTime start) : start_(start) {}

  void add(std::int64_t count, SteadyTime now) {
    advance(now);
    buckets_[static_cast<std::size_t>(last_ % kBuckets)] += count;
  }

  double per_second(SteadyTime now) {
    advance(now);
    std::int64_t sum = 0;
    for (const std::int64_t b : buckets_) sum += b;
    const double lived = std::chrono::duration<double>(now - start_).count();
    return static_cast<double>(sum) / std::clamp(lived, kBucketSeconds, kBuckets * kBucketSeconds);
  }

 private:
  static constexpr std::int64_t kBuckets = 10;
  static constexpr double kBucketSeconds = 0.5;

  void advance(SteadyTime now) {
    const auto bucket = static_cast<std::int64_t>(std::chrono::duration<double>(now - start_).count() / kBucketSeconds);
    for (std::int64_t b = std::max(last_ + 1, bucket - kBuckets + 1); b <= bucket; ++b) {
      buckets_[static_cast<std::size_t>(b % kBuckets)] = 0;
    }
    last_ = std::max(last_, bucket);
  }

  const SteadyTime start_;
  std::array<std::int64_t, kBuckets> buckets_{};
  std::int64_t last_ = 0;
};

}  // namespace sluice
