// SPDX-License-Identifier: GPL-3.0-or-later
// Random activations and weights that look like a model's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "base/block_type.h"

namespace sluice {

inline std::vector<float> random_floats(std::int64_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> normal;
  std::vector<float> out(static_cast<std::size_t>(n));
  for (float& v : out) v = normal(rng);
  return out;
}

// Random integers in the blocks; scales and minima are halves of magnitude 1/64 to 1/16, of both signs.
inline std::vector<std::byte> random_matrix(BlockType type, std::int64_t rows, std::int64_t cols, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::byte> out(static_cast<std::size_t>(row_bytes(type, cols) * rows));
  if (type == BlockType::kF32) {
    const std::vector<float> floats = random_floats(rows * cols, seed);
    std::memcpy(out.data(), floats.data(), out.size());
    return out;
  }
  for (std::byte& b : out) b = static_cast<std::byte>(rng());
  const auto put_half = [&](std::size_t at) {
    // Exponent 9 or 10 of half precision: 2^-6 and 2^-5; BF16 gets exponents 120 to 127.
    const std::uint16_t bits = static_cast<std::uint16_t>((rng() & 0x83ff) | (9u + (rng() & 1)) << 10);
    std::memcpy(out.data() + at, &bits, 2);
  };
  const auto size = static_cast<std::size_t>(block_bytes(type));
  for (std::size_t at = 0; at < out.size(); at += size) {
    switch (type) {
      case BlockType::kBF16: {
        const std::uint16_t bits = static_cast<std::uint16_t>((rng() & 0x807f) | (120u + (rng() & 7)) << 7);
        std::memcpy(out.data() + at, &bits, 2);
        break;
      }
      case BlockType::kQ4_1:
      case BlockType::kQ5_1:
      case BlockType::kQ4_K:
      case BlockType::kQ5_K: put_half(at + 2); [[fallthrough]];
      case BlockType::kF16:
      case BlockType::kQ4_0:
      case BlockType::kQ5_0:
      case BlockType::kQ8_0:
      case BlockType::kIQ4_NL: put_half(at); break;
      case BlockType::kQ2_K:
        put_half(at + 80);
        put_half(at + 82);
        break;
      case BlockType::kQ3_K: put_half(at + 108); break;
      case BlockType::kQ6_K: put_half(at + 208); break;
      default: break;
    }
  }
  return out;
}

inline constexpr BlockType kAllTypes[] = {BlockType::kF32,  BlockType::kF16,  BlockType::kBF16, BlockType::kQ4_0,
                                          BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ5_1, BlockType::kQ8_0,
                                          BlockType::kQ2_K, BlockType::kQ3_K, BlockType::kQ4_K, BlockType::kQ5_K,
                                          BlockType::kQ6_K, BlockType::kIQ4_NL};

}  // namespace sluice
