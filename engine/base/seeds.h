// SPDX-License-Identifier: GPL-3.0-or-later
// Seeded choices that must be the same on every machine and build: std::shuffle and the standard distributions promise no
// such thing. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/sha256.h"

namespace sluice {

// SplitMix64 (Steele, Lea, Flood 2014): a full-period generator; also a good mixer of one number.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0..bound-1; bound > 0. The bias of the remainder is below bound / 2^64.
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }

 private:
  std::uint64_t state_;
};

// 0..n-1 in an order that depends on the seed alone (Fisher-Yates).
inline std::vector<std::size_t> seeded_permutation(std::size_t n, std::uint64_t seed) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  SplitMix64 draws(seed);
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[draws.below(i)]);
  return order;
}

// The first eight bytes of a digest, big-endian.
inline std::uint64_t leading_u64(const Sha256Digest& digest) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i < 8; ++i) out = out << 8 | digest[i];
  return out;
}

}  // namespace sluice
