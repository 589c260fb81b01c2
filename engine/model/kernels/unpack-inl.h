// SPDX-License-Identifier: GPL-3.0-or-later
// Weight blocks to vectors of 16-bit integers, once per instruction set. Included after lanes-inl.h.
//
// Each block gives four word vectors (w[0] .. w[3]); word j of w[v] is the block's value 16 * (v & 1) + 2 * j + (v >> 1).
// That is the order in which 16-bit lanes fall out of packed nibbles by shift and mask alone. Where a vector holds
// several blocks, their 32-bit lanes alternate (lane i belongs to block i % kBlocksPerVector), so that scales repeat
// with one broadcast. activations.cpp stores its values in the same order.
#if defined(SLUICE_UNPACK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_UNPACK_INL_H
#undef SLUICE_UNPACK_INL_H
#else
#define SLUICE_UNPACK_INL_H
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "model/kernels/blocks.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

#if HWY_TARGET != HWY_SCALAR

// Where the blocks of one vector are. Next to each other:
template <class Block>
struct NextBlocks {
  const std::uint8_t* first;
  HWY_INLINE const std::uint8_t* at(std::int64_t k) const { return first + k * sizeof(Block); }
};
// At a row's end: missing ones are replaced by the last, their activations and scales being zero.
template <class Block>
struct LastBlocks {
  const std::uint8_t* first;
  std::int64_t last;
  HWY_INLINE const std::uint8_t* at(std::int64_t k) const { return first + std::min(k, last) * sizeof(Block); }
};

// A row's scales, padded with zeros to whole sum chunks.
struct RowScales {
  float* d;
  float* m;             // minima, of types that have one
  std::uint32_t* qh;    // fifth bits, of types that have them
  std::uint32_t* pairs; // d and m as they are stored
};

#if HWY_MAX_BYTES >= 64
alignas(64) constexpr std::int32_t kAlternate[16] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
#elif HWY_MAX_BYTES == 32
alignas(32) constexpr std::int32_t kAlternate[8] = {0, 4, 1, 5, 2, 6, 3, 7};
#endif

// 16 bytes from `offset` of each block, 32-bit lanes alternating between blocks.
template <class Blocks>
HWY_INLINE VW load_sixteen(const Blocks& blocks, std::size_t offset) {
  const hn::Full128<std::uint8_t> d8;
#if HWY_MAX_BYTES >= 64
  const hn::Repartition<std::uint8_t, DF> d8x64;
  const hn::Half<decltype(d8x64)> d8x32;
  const auto low = hn::Combine(d8x32, hn::LoadU(d8, blocks.at(1) + offset), hn::LoadU(d8, blocks.at(0) + offset));
  const auto high = hn::Combine(d8x32, hn::LoadU(d8, blocks.at(3) + offset), hn::LoadU(d8, blocks.at(2) + offset));
  const auto all = hn::Combine(d8x64, high, low);
#elif HWY_MAX_BYTES == 32
  const hn::Repartition<std::uint8_t, DF> d8x32;
  const auto all = hn::Combine(d8x32, hn::LoadU(d8, blocks.at(1) + offset), hn::LoadU(d8, blocks.at(0) + offset));
#else
  return hn::BitCast(DW(), hn::LoadU(d8, blocks.at(0) + offset));
#endif
#if HWY_MAX_BYTES >= 32
  const auto order = hn::SetTableIndices(DI(), kAlternate);
  return hn::BitCast(DW(), hn::TableLookupLanes(hn::BitCast(DI(), all), order));
#endif
}

HWY_INLINE void split_nibbles(VW packed, VW (&w)[4]) {
  const VW mask = hn::Set(DW(), std::int16_t{15});
  const auto bits = hn::BitCast(DUW(), packed);
  w[0] = hn::And(packed, mask);
  w[1] = hn::And(hn::BitCast(DW(), hn::ShiftRight<4>(bits)), mask);
  w[2] = hn::And(hn::BitCast(DW(), hn::ShiftRight<8>(bits)), mask);
  w[3] = hn::BitCast(DW(), hn::ShiftRight<12>(bits));
}

// Adds `set` where the fifth bit of a value is one and `clear` where it is zero. `qh` holds a block's 32 bits, repeated
// per block.
HWY_INLINE void add_fifth_bits(const std::uint32_t* qh, std::int16_t set, std::int16_t clear, VW (&w)[4]) {
  float as_float[kBlocksPerVector];
  std::memcpy(as_float, qh, sizeof as_float);
  const auto bits = hn::BitCast(DU(), repeat_per_block(as_float));
  const auto low = hn::BitCast(DW(), hn::Or(hn::And(bits, hn::Set(DU(), 0xffffu)), hn::ShiftLeft<16>(bits)));
  const auto high = hn::BitCast(DW(), hn::Or(hn::ShiftRight<16>(bits), hn::And(bits, hn::Set(DU(), 0xffff0000u))));
  // Words 2g and 2g + 1 of a block, in its g-th 32-bit lane, take the bits 4g and 4g + 2 (w[0], w[1]) or one above.
  alignas(64) std::uint32_t first[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) first[i] = 0x00040001u << (4 * (i / kBlocksPerVector));
  const auto even = hn::BitCast(DW(), hn::Load(DU(), first));
  const auto odd = hn::ShiftLeft<1>(even);
  const VW one = hn::Set(DW(), set), zero = hn::Set(DW(), clear);
  w[0] = hn::Add(w[0], hn::IfThenElse(hn::TestBit(low, even), one, zero));
  w[1] = hn::Add(w[1], hn::IfThenElse(hn::TestBit(high, even), one, zero));
  w[2] = hn::Add(w[2], hn::IfThenElse(hn::TestBit(low, odd), one, zero));
  w[3] = hn::Add(w[3], hn::IfThenElse(hn::TestBit(high, odd), one, zero));
}

// The first `kBytes` bytes of every block of a row, 2 (the half d) or 4 (the halves d and m), as floats. Those behind the
// row's end stay zero.
template <class Block, std::size_t kBytes>
HWY_INLINE void gather_scales(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
#pragma GCC unroll 6
  for (std::int64_t i = 0; i < blocks; ++i) {
    std::uint32_t pair = 0;
    std::memcpy(&pair, row + i * sizeof(Block), kBytes);
    s.pairs[i] = pair;
  }
  for (std::int64_t i = 0; i < blocks; i += kLanes) {
    const auto pairs = hn::Load(DU(), s.pairs + i);
    hn::Store(low_halves_to_floats(pairs), DF(), s.d + i);
    if constexpr (kBytes == 4) hn::Store(low_halves_to_floats(hn::ShiftRight<16>(pairs)), DF(), s.m + i);
  }
}

template <class Block>
HWY_INLINE void gather_fifth_bits(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
#pragma GCC unroll 6
  for (std::int64_t i = 0; i < blocks; ++i) std::memcpy(s.qh + i, row + i * sizeof(Block) + offsetof(Block, qh), 4);
}

struct UnpackQ4_0 {
  using Block = BlockQ4_0;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 2>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    split_nibbles(load_sixteen(b, offsetof(Block, qs)), w);
    for (VW& words : w) words = hn::Sub(words, hn::Set(DW(), std::int16_t{8}));
  }
};

struct UnpackQ4_1 {
  using Block = BlockQ4_1;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 4>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    split_nibbles(load_sixteen(b, offsetof(Block, qs)), w);
  }
};

struct UnpackQ5_0 {
  using Block = BlockQ5_0;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 2>(row, blocks, s);
    gather_fifth_bits<Block>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack(const Blocks& b, const std::uint32_t* qh, VW (&w)[4]) {
    split_nibbles(load_sixteen(b, offsetof(Block, qs)), w);
    add_fifth_bits(qh, 0, -16, w);
  }
};

struct UnpackQ5_1 {
  using Block = BlockQ5_1;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 4>(row, blocks, s);
    gather_fifth_bits<Block>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack(const Blocks& b, const std::uint32_t* qh, VW (&w)[4]) {
    split_nibbles(load_sixteen(b, offsetof(Block, qs)), w);
    add_fifth_bits(qh, 16, 0, w);
  }
};

struct UnpackQ8_0 {
  using Block = BlockQ8_0;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 2>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    const VW first = load_sixteen(b, offsetof(Block, qs));
    const VW second = load_sixteen(b, offsetof(Block, qs) + 16);
    w[0] = hn::ShiftRight<8>(hn::ShiftLeft<8>(first));
    w[1] = hn::ShiftRight<8>(hn::ShiftLeft<8>(second));
    w[2] = hn::ShiftRight<8>(first);
    w[3] = hn::ShiftRight<8>(second);
  }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_UNPACK_INL_H
