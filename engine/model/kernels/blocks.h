// SPDX-License-Identifier: GPL-3.0-or-later
// Byte layouts of the block types, as GGUF files hold them (little-endian, unaligned, no padding). A block's value i is
// scale * (integer i) [+ minimum]; how the integers are packed stands with each type.
#pragma once

#include <bit>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

#pragma pack(push, 1)

// value = d * (q - 8); q of value i < 16 is the low nibble of qs[i], of value i + 16 the high nibble of qs[i].
struct BlockQ4_0 {
  std::uint16_t d;  // IEEE half, as all d, m and dmin below
  std::uint8_t qs[16];
};

// value = d * q + m; q as in Q4_0.
struct BlockQ4_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint8_t qs[16];
};

// value = d * (q - 16); the low four bits of q as in Q4_0, the fifth of value i is bit i of qh.
struct BlockQ5_0 {
  std::uint16_t d;
  std::uint32_t qh;
  std::uint8_t qs[16];
};

// value = d * q + m; q as in Q5_0.
struct BlockQ5_1 {
  std::uint16_t d;
  std::uint16_t m;
  std::uint32_t qh;
  std::uint8_t qs[16];
};

// value = d * q
struct BlockQ8_0 {
  std::uint16_t d;
  std::int8_t qs[32];
};

// value = d * kIq4Values[q]; q as in Q4_0.
struct BlockIQ4_NL {
  std::uint16_t d;
  std::uint8_t qs[16];
};

inline constexpr std::int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

// 256 values in sixteen parts of 16 with a 4-bit scale (low) and minimum (high) each:
// value = (d * scale) * q - (dmin * minimum). In each half of 128 values, value i is two bits of qs[i % 32] of that half,
// at bit 2 * (i / 32).
struct BlockQ2_K {
  std::uint8_t scales[16];
  std::uint8_t qs[64];
  std::uint16_t d;
  std::uint16_t dmin;
};

// 256 values in sixteen parts of 16 with a 6-bit scale each: value = (d * (scale - 32)) * (q - 4). The low two bits of q
// as in Q2_K; the third of value i is bit i / 32 of hmask[i % 32].
struct BlockQ3_K {
  std::uint8_t hmask[32];
  std::uint8_t qs[64];
  std::uint8_t scales[12];
  std::uint16_t d;
};

// Scale of a BlockQ3_K's part j, still with its offset of 32: four low bits in the nibbles of bytes 0-7, two high ones in
// bytes 8-11.
inline int q3_scale(const std::uint8_t* s, int j) {
  const int low = j < 8 ? s[j] & 15 : s[j - 8] >> 4;
  return low | ((s[8 + j % 4] >> (2 * (j / 4))) & 3) << 4;
}

// 256 values in eight parts of 32 with a 6-bit scale and minimum each:
// value = (d * scale) * q - (dmin * minimum). Parts 2j and 2j + 1 are the low and high nibbles of qs[32j .. 32j + 31].
struct BlockQ4_K {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qs[128];
};

// Q4_K with a fifth bit: that of value i is bit i / 32 of qh[i % 32].
struct BlockQ5_K {
  std::uint16_t d;
  std::uint16_t dmin;
  std::uint8_t scales[12];
  std::uint8_t qh[32];
  std::uint8_t qs[128];
};

// Scale and minimum of part j of a BlockQ4_K or BlockQ5_K: six bits each in twelve bytes. Parts 0-3 take the low six bits of bytes 0-3
// and 4-7; parts 4-7 take their low four bits from the nibbles of bytes 8-11 and their high two from the tops of bytes
// 0-7.
inline void scale_and_minimum(const std::uint8_t* s, int j, int& scale, int& minimum) {
  if (j < 4) {
    scale = s[j] & 63;
    minimum = s[j + 4] & 63;
  } else {
    scale = (s[j + 4] & 15) | (s[j - 4] >> 6) << 4;
    minimum = (s[j + 4] >> 4) | (s[j] >> 6) << 4;
  }
}

// 256 values in sixteen parts of 16 with an 8-bit scale each: value = (d * scale) * (q - 32).
struct BlockQ6_K {
  std::uint8_t ql[128];  // low four bits
  std::uint8_t qh[64];   // high two bits
  std::int8_t scales[16];
  std::uint16_t d;
};

#pragma pack(pop)

static_assert(sizeof(BlockQ4_0) == block_bytes(BlockType::kQ4_0));
static_assert(sizeof(BlockQ4_1) == block_bytes(BlockType::kQ4_1));
static_assert(sizeof(BlockQ5_0) == block_bytes(BlockType::kQ5_0));
static_assert(sizeof(BlockQ5_1) == block_bytes(BlockType::kQ5_1));
static_assert(sizeof(BlockQ8_0) == block_bytes(BlockType::kQ8_0));
static_assert(sizeof(BlockIQ4_NL) == block_bytes(BlockType::kIQ4_NL));
static_assert(sizeof(BlockQ2_K) == block_bytes(BlockType::kQ2_K));
static_assert(sizeof(BlockQ3_K) == block_bytes(BlockType::kQ3_K));
static_assert(sizeof(BlockQ5_K) == block_bytes(BlockType::kQ5_K));
static_assert(sizeof(BlockQ4_K) == block_bytes(BlockType::kQ4_K));
static_assert(sizeof(BlockQ6_K) == block_bytes(BlockType::kQ6_K));

// IEEE half to float, exact for all 65536 patterns. Shifted into place the exponent is short by 112; multiplying by 2^112
// repairs it and normalises subnormals. Infinity and NaN keep an exponent of ones.
inline float half_to_float(std::uint16_t half) {
  const float magnitude = std::bit_cast<float>((half & 0x7fffu) << 13) * 0x1p112f;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(magnitude);
  if ((half & 0x7c00u) == 0x7c00u) bits |= 0x7f800000u;
  return std::bit_cast<float>(bits | (half & 0x8000u) << 16);
}

inline float bfloat_to_float(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

}  // namespace sluice
