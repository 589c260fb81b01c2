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

// Of 256 values, which count as eight blocks of 32.
template <class Unpack>
constexpr bool kSuperBlock = sizeof(typename Unpack::Block) > 64;

using D8x16 = hn::Full128<std::uint8_t>;

// sixteen(k) gives 16 bytes of the vector's k-th block; 32-bit lanes then alternate between blocks.
template <class Sixteen>
HWY_INLINE VW join_blocks(const Sixteen& sixteen) {
#if HWY_MAX_BYTES >= 64
  const hn::Repartition<std::uint8_t, DF> d8x64;
  const hn::Half<decltype(d8x64)> d8x32;
  const auto low = hn::Combine(d8x32, sixteen(1), sixteen(0));
  const auto high = hn::Combine(d8x32, sixteen(3), sixteen(2));
  const auto all = hn::Combine(d8x64, high, low);
#elif HWY_MAX_BYTES == 32
  const hn::Repartition<std::uint8_t, DF> d8x32;
  const auto all = hn::Combine(d8x32, sixteen(1), sixteen(0));
#else
  return hn::BitCast(DW(), sixteen(0));
#endif
#if HWY_MAX_BYTES >= 32
  const auto order = hn::SetTableIndices(DI(), kAlternate);
  return hn::BitCast(DW(), hn::TableLookupLanes(hn::BitCast(DI(), all), order));
#endif
}

// 16 bytes from `offset` of each block.
template <class Blocks>
HWY_INLINE VW load_sixteen(const Blocks& blocks, std::size_t offset) {
  return join_blocks([&](std::int64_t k) HWY_ATTR { return hn::LoadU(D8x16(), blocks.at(k) + offset); });
}

HWY_INLINE void split_nibbles(VW packed, VW (&w)[4]) {
  const VW mask = hn::Set(DW(), std::int16_t{15});
  const auto bits = hn::BitCast(DUW(), packed);
  w[0] = hn::And(packed, mask);
  w[1] = hn::And(hn::BitCast(DW(), hn::ShiftRight<4>(bits)), mask);
  w[2] = hn::And(hn::BitCast(DW(), hn::ShiftRight<8>(bits)), mask);
  w[3] = hn::BitCast(DW(), hn::ShiftRight<12>(bits));
}

// kBlocksPerVector 32-bit values, repeated over the lanes.
HWY_INLINE VW words_per_block(const std::uint32_t* at) {
  float as_float[kBlocksPerVector];
  std::memcpy(as_float, at, sizeof as_float);
  return hn::BitCast(DW(), repeat_per_block(as_float));
}

// Words 2g and 2g + 1 of a block, in its g-th 32-bit lane, take the bits 4g and 4g + 2 (w[0], w[1]) or one above.
struct FifthBits {
  alignas(64) std::uint32_t lanes[kLanes];
  constexpr FifthBits() : lanes{} {
    for (std::int64_t i = 0; i < kLanes; ++i) lanes[i] = 0x00040001u << (4 * (i / kBlocksPerVector));
  }
};
constexpr FifthBits kFifthBits;

// Adds `set` where the fifth bit of a value is one and `clear` where it is zero. `qh` holds a block's 32 bits, repeated
// per block.
HWY_INLINE void add_fifth_bits(const std::uint32_t* qh, std::int16_t set, std::int16_t clear, VW (&w)[4]) {
  const auto bits = hn::BitCast(DU(), words_per_block(qh));
  const auto low = hn::BitCast(DW(), hn::Or(hn::And(bits, hn::Set(DU(), 0xffffu)), hn::ShiftLeft<16>(bits)));
  const auto high = hn::BitCast(DW(), hn::Or(hn::ShiftRight<16>(bits), hn::And(bits, hn::Set(DU(), 0xffff0000u))));
  const auto even = hn::BitCast(DW(), hn::Load(DU(), kFifthBits.lanes));
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
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    split_nibbles(load_sixteen(b, offsetof(Block, qs)), w);
    const VW eight = hn::Set(DW(), std::int16_t{8});
    w[0] = hn::Sub(w[0], eight);
    w[1] = hn::Sub(w[1], eight);
    w[2] = hn::Sub(w[2], eight);
    w[3] = hn::Sub(w[3], eight);
  }
};

struct UnpackQ4_1 {
  using Block = BlockQ4_1;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 4>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
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
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t* qh, VW (&w)[4]) {
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
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t* qh, VW (&w)[4]) {
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
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    const VW first = load_sixteen(b, offsetof(Block, qs));
    const VW second = load_sixteen(b, offsetof(Block, qs) + 16);
    w[0] = hn::ShiftRight<8>(hn::ShiftLeft<8>(first));
    w[1] = hn::ShiftRight<8>(hn::ShiftLeft<8>(second));
    w[2] = hn::ShiftRight<8>(first);
    w[3] = hn::ShiftRight<8>(second);
  }
};

// Bytes that index a table of signed bytes: nibbles. Even and odd bytes become words.
struct UnpackIQ4_NL {
  using Block = BlockIQ4_NL;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_scales<Block, 2>(row, blocks, s);
  }
  template <class Blocks>
  static HWY_INLINE void unpack_blocks(const Blocks& b, const std::uint32_t*, VW (&w)[4]) {
    const hn::Repartition<std::uint8_t, DF> d8;
    const auto packed = hn::BitCast(DUW(), load_sixteen(b, offsetof(Block, qs)));
    const auto mask = hn::Set(d8, std::uint8_t{15});
    const auto table = hn::LoadDup128(d8, reinterpret_cast<const std::uint8_t*>(kIq4Values));
    const VW first = hn::BitCast(DW(), hn::TableLookupBytes(table, hn::And(hn::BitCast(d8, packed), mask)));
    const VW second = hn::BitCast(DW(), hn::TableLookupBytes(table, hn::And(hn::BitCast(d8, hn::ShiftRight<4>(packed)), mask)));
    w[0] = hn::ShiftRight<8>(hn::ShiftLeft<8>(first));
    w[1] = hn::ShiftRight<8>(hn::ShiftLeft<8>(second));
    w[2] = hn::ShiftRight<8>(first);
    w[3] = hn::ShiftRight<8>(second);
  }
};

// The K types: 256 values to a block, which count as eight blocks of 32 here. `row` is the weight row, `block` the first
// block of 32 of the vector; a vector never straddles two blocks of 256.

HWY_INLINE hn::Vec<D8x16> shift_bytes(const std::uint8_t* at, int count, std::uint8_t mask) {
  const hn::Full128<std::uint16_t> d16;
  const auto shifted = hn::ShiftRightSame(hn::BitCast(d16, hn::LoadU(D8x16(), at)), count);
  return hn::And(hn::BitCast(D8x16(), shifted), hn::Set(D8x16(), mask));
}

// Bytes of the first and of the second half of each block to words, minus `offset`.
HWY_INLINE void split_bytes(VW first, VW second, std::int16_t offset, VW (&w)[4]) {
  const VW low = hn::Set(DW(), std::int16_t{255}), off = hn::Set(DW(), offset);
  w[0] = hn::Sub(hn::And(first, low), off);
  w[1] = hn::Sub(hn::And(second, low), off);
  w[2] = hn::Sub(hn::BitCast(DW(), hn::ShiftRight<8>(hn::BitCast(DUW(), first))), off);
  w[3] = hn::Sub(hn::BitCast(DW(), hn::ShiftRight<8>(hn::BitCast(DUW(), second))), off);
}

// Scales and minima of Q4_K and Q5_K.
template <class Block>
HWY_INLINE void gather_parts(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
  for (std::int64_t i = 0; i < blocks; i += 8, row += sizeof(Block)) {
    const auto* b = reinterpret_cast<const Block*>(row);
    const float d = half_to_float(b->d), dmin = half_to_float(b->dmin);
    for (int j = 0; j < 8; ++j) {
      int scale = 0, minimum = 0;
      scale_and_minimum(b->scales, j, scale, minimum);
      s.d[i + j] = d * static_cast<float>(scale);
      s.m[i + j] = -(dmin * static_cast<float>(minimum));
    }
  }
}

struct UnpackQ4_K {
  using Block = BlockQ4_K;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_parts<Block>(row, blocks, s);
  }
  static HWY_INLINE void unpack_integers(const std::uint8_t* row, std::int64_t block, VW (&w)[4]) {
    const std::uint8_t* qs = row + block / 8 * sizeof(Block) + offsetof(Block, qs);
    const auto half = [&](std::int64_t offset) HWY_ATTR {
      return join_blocks([&](std::int64_t k) HWY_ATTR {
        const std::int64_t part = block % 8 + k;
        return shift_bytes(qs + part / 2 * 32 + offset, static_cast<int>(part % 2 * 4), 15);
      });
    };
    split_bytes(half(0), half(16), 0, w);
  }
  static HWY_INLINE void unpack(const std::uint8_t* row, std::int64_t block, const RowScales&, VW (&w)[4]) {
    unpack_integers(row, block, w);
  }
};

struct UnpackQ5_K {
  using Block = BlockQ5_K;
  static constexpr bool kMinimum = true;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    gather_parts<Block>(row, blocks, s);
  }
  static HWY_INLINE void unpack_integers(const std::uint8_t* row, std::int64_t block, VW (&w)[4]) {
    const std::uint8_t* at = row + block / 8 * sizeof(Block);
    const auto half = [&](std::int64_t offset) HWY_ATTR {
      return join_blocks([&](std::int64_t k) HWY_ATTR {
        const std::int64_t part = block % 8 + k;
        const auto low = shift_bytes(at + offsetof(Block, qs) + part / 2 * 32 + offset, static_cast<int>(part % 2 * 4), 15);
        const auto high = shift_bytes(at + offsetof(Block, qh) + offset, static_cast<int>(part), 1);
        const hn::Full128<std::uint16_t> d16;
        return hn::Or(low, hn::BitCast(D8x16(), hn::ShiftLeft<4>(hn::BitCast(d16, high))));
      });
    };
    split_bytes(half(0), half(16), 0, w);
  }
  static HWY_INLINE void unpack(const std::uint8_t* row, std::int64_t block, const RowScales&, VW (&w)[4]) {
    unpack_integers(row, block, w);
  }
};

// The 8-bit scale of each 16 values is multiplied into them: at most 32 * 128, which still leaves no overflow in a sum of
// eight products (8 * 4096 * 32767 < 2^31).
struct UnpackQ6_K {
  using Block = BlockQ6_K;
  static constexpr bool kMinimum = false;
  static HWY_INLINE void gather(const std::uint8_t* row, std::int64_t blocks, const RowScales& s) {
    const auto both_words = [](std::int8_t scale) { return (static_cast<std::uint32_t>(scale) & 0xffff) * 0x10001u; };
    for (std::int64_t i = 0; i < blocks; i += 8, row += sizeof(Block)) {
      const auto* b = reinterpret_cast<const Block*>(row);
      const float d = half_to_float(b->d);
      for (int j = 0; j < 8; ++j) {
        s.d[i + j] = d;
        s.qh[i + j] = both_words(b->scales[2 * j]);
        s.pairs[i + j] = both_words(b->scales[2 * j + 1]);
      }
    }
  }
  // Without the scales.
  static HWY_INLINE void unpack_integers(const std::uint8_t* row, std::int64_t block, VW (&w)[4]) {
    const std::uint8_t* at = row + block / 8 * sizeof(Block);
    const auto half = [&](std::int64_t offset) HWY_ATTR {
      return join_blocks([&](std::int64_t k) HWY_ATTR {
        const std::int64_t part = block % 8 + k, of_half = part % 4;
        const std::uint8_t* ql = at + offsetof(Block, ql) + part / 4 * 64 + of_half % 2 * 32 + offset;
        const std::uint8_t* qh = at + offsetof(Block, qh) + part / 4 * 32 + offset;
        const auto low = shift_bytes(ql, static_cast<int>(of_half / 2 * 4), 15);
        const auto high = shift_bytes(qh, static_cast<int>(2 * of_half), 3);
        const hn::Full128<std::uint16_t> d16;
        return hn::Or(low, hn::BitCast(D8x16(), hn::ShiftLeft<4>(hn::BitCast(d16, high))));
      });
    };
    split_bytes(half(0), half(16), 32, w);
  }
  static HWY_INLINE void unpack(const std::uint8_t* row, std::int64_t block, const RowScales& s, VW (&w)[4]) {
    unpack_integers(row, block, w);
    const VW first = words_per_block(s.qh + block), second = words_per_block(s.pairs + block);
    w[0] = hn::Mul(w[0], first);
    w[1] = hn::Mul(w[1], second);
    w[2] = hn::Mul(w[2], first);
    w[3] = hn::Mul(w[3], second);
  }
};

#endif  // HWY_TARGET != HWY_SCALAR

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_UNPACK_INL_H
