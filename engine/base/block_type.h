// SPDX-License-Identifier: GPL-3.0-or-later
// How the numbers of a stored tensor are laid out: plain, or in blocks that share a scale. Values are those of GGUF's
// tensor type field. Here because model/format reads it and model/kernels computes with it, and neither uses the other.
#pragma once

#include <cstdint>

namespace sluice {

enum class BlockType : std::uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kIQ4_NL = 20,
  kBF16 = 30,
};

// Values that share one block; 1 for the plain types. A row is a whole number of blocks.
constexpr std::int64_t block_values(BlockType type) {
  switch (type) {
    case BlockType::kF32:
    case BlockType::kF16:
    case BlockType::kBF16: return 1;
    case BlockType::kQ4_0:
    case BlockType::kQ4_1:
    case BlockType::kQ5_0:
    case BlockType::kQ5_1:
    case BlockType::kQ8_0:
    case BlockType::kIQ4_NL: return 32;
    case BlockType::kQ2_K:
    case BlockType::kQ3_K:
    case BlockType::kQ4_K:
    case BlockType::kQ5_K:
    case BlockType::kQ6_K: return 256;
  }
  return 0;
}

// Bytes of one block.
constexpr std::int64_t block_bytes(BlockType type) {
  switch (type) {
    case BlockType::kF32: return 4;
    case BlockType::kF16:
    case BlockType::kBF16: return 2;
    case BlockType::kQ4_0:
    case BlockType::kIQ4_NL: return 18;
    case BlockType::kQ4_1: return 20;
    case BlockType::kQ5_0: return 22;
    case BlockType::kQ5_1: return 24;
    case BlockType::kQ8_0: return 34;
    case BlockType::kQ2_K: return 84;
    case BlockType::kQ3_K: return 110;
    case BlockType::kQ4_K: return 144;
    case BlockType::kQ5_K: return 176;
    case BlockType::kQ6_K: return 210;
  }
  return 0;
}

constexpr bool is_quantised(BlockType type) { return block_values(type) > 1; }

// Bytes of a row of `cols` values. Precondition: cols is a multiple of block_values(type).
constexpr std::int64_t row_bytes(BlockType type, std::int64_t cols) {
  return cols / block_values(type) * block_bytes(type);
}

constexpr const char* block_type_name(BlockType type) {
  switch (type) {
    case BlockType::kF32: return "F32";
    case BlockType::kF16: return "F16";
    case BlockType::kQ4_0: return "Q4_0";
    case BlockType::kQ4_1: return "Q4_1";
    case BlockType::kQ5_0: return "Q5_0";
    case BlockType::kQ5_1: return "Q5_1";
    case BlockType::kQ8_0: return "Q8_0";
    case BlockType::kQ2_K: return "Q2_K";
    case BlockType::kQ3_K: return "Q3_K";
    case BlockType::kQ4_K: return "Q4_K";
    case BlockType::kQ5_K: return "Q5_K";
    case BlockType::kQ6_K: return "Q6_K";
    case BlockType::kIQ4_NL: return "IQ4_NL";
    case BlockType::kBF16: return "BF16";
  }
  return "unknown";
}

}  // namespace sluice
