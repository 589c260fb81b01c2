// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/finite.h"

#include <cstddef>
#include <cstring>

#include "model/kernels/blocks.h"

namespace sluice {
namespace {

// Whether the exponent bits of any of n words, `stride` bytes apart, are all ones.
template <class Word, Word kExponent>
bool any_special(const std::byte* at, std::int64_t n, std::int64_t stride) {
  unsigned found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    Word word;
    std::memcpy(&word, at + i * stride, sizeof word);
    found |= static_cast<unsigned>((word & kExponent) == kExponent);
  }
  return found != 0;
}

bool special_halves(const std::byte* at, std::int64_t n, std::int64_t stride) {
  return any_special<std::uint16_t, 0x7c00>(at, n, stride);
}

// Halves d and m next to each other.
bool special_pairs(const std::byte* at, std::int64_t n, std::int64_t stride) {
  return special_halves(at, n, stride) || special_halves(at + 2, n, stride);
}

}  // namespace

bool all_finite(BlockType type, const std::byte* blocks, std::int64_t n) {
  const std::int64_t count = n / block_values(type), size = block_bytes(type);
  switch (type) {
    case BlockType::kF32: return !any_special<std::uint32_t, 0x7f800000u>(blocks, n, 4);
    case BlockType::kF16: return !special_halves(blocks, n, 2);
    case BlockType::kBF16: return !any_special<std::uint16_t, 0x7f80>(blocks, n, 2);
    case BlockType::kQ4_0:
    case BlockType::kQ5_0:
    case BlockType::kQ8_0:
    case BlockType::kIQ4_NL: return !special_halves(blocks, count, size);
    case BlockType::kQ4_1:
    case BlockType::kQ5_1:
    case BlockType::kQ4_K:
    case BlockType::kQ5_K: return !special_pairs(blocks, count, size);
    case BlockType::kQ2_K: return !special_pairs(blocks + offsetof(BlockQ2_K, d), count, size);
    case BlockType::kQ3_K: return !special_halves(blocks + offsetof(BlockQ3_K, d), count, size);
    case BlockType::kQ6_K: return !special_halves(blocks + offsetof(BlockQ6_K, d), count, size);
  }
  return false;
}

}  // namespace sluice
