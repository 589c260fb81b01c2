// SPDX-License-Identifier: GPL-3.0-or-later
// matvec_rows for the quantised types; matvec_float.cpp has the plain ones.
#include "model/kernels/matvec.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "model/kernels/activation_layout.h"
#include "model/kernels/blocks.h"
#include "model/kernels/matvec_float.h"
#include "model/kernels/prefetch.h"
#include "model/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_WANT_AVX3_DL 1
#define HWY_TARGET_INCLUDE "model/kernels/matvec.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "model/kernels/lanes-inl.h"
#include "model/kernels/unpack-inl.h"

#ifndef SLUICE_MATVEC_ONCE
#define SLUICE_MATVEC_ONCE
namespace sluice {

struct QuantisedJob {
  const std::uint8_t* matrix;  // weight row 0
  std::int64_t row_bytes;
  std::int64_t blocks;  // of 32 values, in a row
  const ActivationBlocks* x;
  float* out;
  std::int64_t out_stride;
  PrefetchStream* ahead;  // may be null
};

}  // namespace sluice
#endif

HWY_BEFORE_NAMESPACE();
#include "model/kernels/vnni-inl.h"
namespace sluice::HWY_NAMESPACE {

using activation::Group;
using activation::kBlockValues;
using activation::kSumChunk;

#if HWY_TARGET != HWY_SCALAR

// Sum of the products of four word vectors, in 32-bit lanes: exact, at most 8 * 128 * 32767 < 2^25.
HWY_INLINE VI multiply_words(const VW (&w)[4], const std::int16_t* x) {
  constexpr std::int64_t kWords = 2 * kLanes;
#if SLUICE_DPWSSD
  auto sum = _mm512_madd_epi16(w[0].raw, hn::Load(DW(), x).raw);
  sum = _mm512_dpwssd_epi32(sum, w[1].raw, hn::Load(DW(), x + kWords).raw);
  sum = _mm512_dpwssd_epi32(sum, w[2].raw, hn::Load(DW(), x + 2 * kWords).raw);
  return VI{_mm512_dpwssd_epi32(sum, w[3].raw, hn::Load(DW(), x + 3 * kWords).raw)};
#else
  // Written out: GCC keeps a loop over w, and w in memory.
  VI sum0 = hn::Zero(DI()), sum1 = hn::Zero(DI());
  sum0 = hn::ReorderWidenMulAccumulate(DI(), w[0], hn::Load(DW(), x), sum0, sum1);
  sum0 = hn::ReorderWidenMulAccumulate(DI(), w[1], hn::Load(DW(), x + kWords), sum0, sum1);
  sum0 = hn::ReorderWidenMulAccumulate(DI(), w[2], hn::Load(DW(), x + 2 * kWords), sum0, sum1);
  sum0 = hn::ReorderWidenMulAccumulate(DI(), w[3], hn::Load(DW(), x + 3 * kWords), sum0, sum1);
  return hn::RearrangeToOddPlusEven(sum0, sum1);
#endif
}

// Adds the products of one vector of blocks to the sums of every row of the group. d: the blocks' scales, repeated.
template <std::size_t... I>
HWY_INLINE void accumulate(const VW (&w)[4], VF d, const std::int16_t* x, const float* scales, VF (&acc)[sizeof...(I)],
                           std::index_sequence<I...>) {
  ((acc[I] = hn::MulAdd(hn::ConvertTo(DF(), multiply_words(w, x + I * kBlocksPerVector * kBlockValues)),
                        hn::Mul(d, repeat_per_block(scales + I * kBlocksPerVector)), acc[I])),
   ...);
}

// What the kernel reads of a group.
struct GroupData {
  const std::int16_t* values;
  const float* scales;
  const float* sums;
  std::int64_t padded_blocks;
};

HWY_INLINE hn::Vec<hn::Full128<float>> fold_to_four(VF v) {
#if HWY_MAX_BYTES >= 64
  const hn::Half<DF> d8;
  const hn::Half<decltype(d8)> d4;
  const auto v8 = hn::Add(hn::LowerHalf(d8, v), hn::UpperHalf(d8, v));
  return hn::Add(hn::LowerHalf(d4, v8), hn::UpperHalf(d4, v8));
#elif HWY_MAX_BYTES == 32
  const hn::Half<DF> d4;
  return hn::Add(hn::LowerHalf(d4, v), hn::UpperHalf(d4, v));
#else
  return v;
#endif
}

// The minima of a row's blocks times the sums of the activations' blocks.
template <std::size_t... I>
HWY_INLINE void accumulate_minima(const float* m, std::int64_t padded, const float* sums, VF (&acc)[sizeof...(I)],
                                  std::index_sequence<I...>) {
  for (std::int64_t i = 0; i < padded; i += kSumChunk, sums += sizeof...(I) * kSumChunk) {
    for (std::int64_t k = 0; k < kSumChunk; k += kLanes) {
      const VF minima = hn::Load(DF(), m + i + k);
      ((acc[I] = hn::MulAdd(minima, hn::Load(DF(), sums + I * kSumChunk + k), acc[I])), ...);
    }
  }
}

// The sums over the lanes of four vectors.
HWY_INLINE void store_sums(VF a, VF b, VF c, VF d, float* out, std::int64_t stride) {
  const hn::Full128<float> d4;
  const auto va = fold_to_four(a), vb = fold_to_four(b), vc = fold_to_four(c), vd = fold_to_four(d);
  const auto ab = hn::Add(hn::InterleaveLower(d4, va, vb), hn::InterleaveUpper(d4, va, vb));
  const auto cd = hn::Add(hn::InterleaveLower(d4, vc, vd), hn::InterleaveUpper(d4, vc, vd));
  alignas(16) float sums[4];
  hn::Store(hn::Add(hn::ConcatLowerLower(d4, cd, ab), hn::ConcatUpperUpper(d4, cd, ab)), d4, sums);
  for (int i = 0; i < 4; ++i) out[i * stride] = sums[i];
}

template <std::size_t kRows>
HWY_INLINE void store_rows(const VF (&acc)[kRows], float* out, std::int64_t stride) {
  if constexpr (kRows >= 4) {
    store_sums(acc[0], acc[1], acc[2], acc[3], out, stride);
    if constexpr (kRows == 8) store_sums(acc[4], acc[5], acc[6], acc[7], out + 4 * stride, stride);
  } else if constexpr (kRows == 2) {
    float four[4];
    store_sums(acc[0], acc[1], acc[1], acc[1], four, 1);
    out[0] = four[0];
    out[stride] = four[1];
  } else {
    float four[4];
    store_sums(acc[0], acc[0], acc[0], acc[0], four, 1);
    out[0] = four[0];
  }
}

// One weight row times the sizeof...(I) rows of a group.
template <class Unpack, std::size_t... I>
HWY_INLINE void row_times_group(const std::uint8_t* row, const RowScales& s, std::int64_t blocks, const GroupData& x,
                                float* out, std::int64_t out_stride, std::index_sequence<I...> rows) {
  using Block = typename Unpack::Block;
  constexpr bool kSuper = kSuperBlock<Unpack>;
  VF acc[] = {(static_cast<void>(I), hn::Zero(DF()))...};
  if constexpr (Unpack::kMinimum) accumulate_minima(s.m, x.padded_blocks, x.sums, acc, rows);
  const std::int16_t* values = x.values;
  const float* scales = x.scales;
  [[maybe_unused]] const std::uint8_t* at = row;
  std::int64_t block = 0;
  for (; block + kBlocksPerVector <= blocks; block += kBlocksPerVector) {
    VW w[4];
    if constexpr (kSuper) {
      Unpack::unpack(row, block, s, w);
    } else {
      Unpack::unpack_blocks(NextBlocks<Block>{at}, s.qh + block, w);
      at += kBlocksPerVector * sizeof(Block);
    }
    accumulate(w, repeat_per_block(s.d + block), values, scales, acc, rows);
    values += sizeof...(I) * kBlocksPerVector * kBlockValues;
    scales += sizeof...(I) * kBlocksPerVector;
  }
  if constexpr (kBlocksPerVector > 1 && !kSuper) {
    if (block < blocks) {
      VW w[4];
      Unpack::unpack_blocks(LastBlocks<Block>{at, blocks - 1 - block}, s.qh + block, w);
      accumulate(w, repeat_per_block(s.d + block), values, scales, acc, rows);
    }
  }
  store_rows(acc, out, out_stride);
}

// How far ahead of use weights are asked for.
constexpr std::int64_t kPrefetchBytes = 2048;

// Weight rows [begin, end) times one group. The scales of a row are gathered while the row before it is multiplied, so
// that their stores have long ended when vectors load them.
template <class Unpack, std::size_t kRows>
void rows_times_group(const QuantisedJob& job, std::int64_t begin, std::int64_t end, std::int64_t first,
                      const RowScales (&scratch)[2]) {
  const ActivationBlocks& x = *job.x;
  const GroupData group{x.values() + first * x.row_blocks() * kBlockValues, x.scales() + first * x.row_blocks(),
                        x.sums() + first * x.padded_blocks(), x.padded_blocks()};
  const std::int64_t blocks = job.blocks, row_bytes = job.row_bytes, out_stride = job.out_stride;
  const std::uint8_t* row = job.matrix + begin * row_bytes;
  float* out = job.out + first * out_stride + begin;
  RowScales now = scratch[0], next = scratch[1];
  Unpack::gather(row, blocks, now);
  for (std::int64_t r = begin; r < end; ++r, row += row_bytes, ++out) {
    if (r + 1 < end) Unpack::gather(row + row_bytes, blocks, next);
    for (std::int64_t i = 0; i < row_bytes; i += 64) hwy::Prefetch(row + kPrefetchBytes + i);
    if (job.ahead != nullptr) job.ahead->step();
    row_times_group<Unpack>(row, now, blocks, group, out, out_stride, std::make_index_sequence<kRows>());
    std::swap(now, next);
  }
}

template <class Unpack>
void multiply(const QuantisedJob& job, std::int64_t row_begin, std::int64_t row_end) {
  const auto padded = static_cast<std::size_t>(job.x->padded_blocks());
  auto* memory = reinterpret_cast<float*>(thread_scratch(8 * padded * sizeof(float)));
  std::fill_n(memory, 8 * padded, 0.0f);
  RowScales scratch[2];
  for (int i = 0; i < 2; ++i) {
    float* at = memory + 4 * padded * i;
    scratch[i] = {at, at + padded, reinterpret_cast<std::uint32_t*>(at + 2 * padded),
                  reinterpret_cast<std::uint32_t*>(at + 3 * padded)};
  }
  // With more than one group a tile of weight rows stays in the cache while all of them use it.
  const std::int64_t rows = job.x->rows();
  const std::int64_t tile =
      rows <= 8 ? row_end - row_begin : std::max<std::int64_t>(8, (std::int64_t{64} << 10) / job.row_bytes);
  for (std::int64_t begin = row_begin; begin < row_end; begin += tile) {
    const std::int64_t end = std::min(begin + tile, row_end);
    for (std::int64_t first = 0; first < rows;) {
      const Group group = activation::group_at(first, rows);
      switch (group.size) {
        case 8: rows_times_group<Unpack, 8>(job, begin, end, first, scratch); break;
        case 4: rows_times_group<Unpack, 4>(job, begin, end, first, scratch); break;
        case 2: rows_times_group<Unpack, 2>(job, begin, end, first, scratch); break;
        default: rows_times_group<Unpack, 1>(job, begin, end, first, scratch); break;
      }
      first += group.size;
    }
  }
}

void multiply_quantised(BlockType type, const QuantisedJob& job, std::int64_t row_begin, std::int64_t row_end) {
  switch (type) {
    case BlockType::kQ4_0: return multiply<UnpackQ4_0>(job, row_begin, row_end);
    case BlockType::kQ4_1: return multiply<UnpackQ4_1>(job, row_begin, row_end);
    case BlockType::kQ5_0: return multiply<UnpackQ5_0>(job, row_begin, row_end);
    case BlockType::kQ5_1: return multiply<UnpackQ5_1>(job, row_begin, row_end);
    case BlockType::kQ8_0: return multiply<UnpackQ8_0>(job, row_begin, row_end);
    case BlockType::kIQ4_NL: return multiply<UnpackIQ4_NL>(job, row_begin, row_end);
    case BlockType::kQ4_K: return multiply<UnpackQ4_K>(job, row_begin, row_end);
    case BlockType::kQ5_K: return multiply<UnpackQ5_K>(job, row_begin, row_end);
    case BlockType::kQ6_K: return multiply<UnpackQ6_K>(job, row_begin, row_end);
    default: assert(false && "not a quantised type");
  }
}

#else  // HWY_SCALAR: the same arithmetic, a block at a time; the K types in f32

struct PlainBlock {
  int q[32];
  float d;
  float m;
};

int fifth_bit(std::uint32_t qh, int i) { return static_cast<int>((qh >> i) & 1) << 4; }
int nibble(const std::uint8_t* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

template <class Block>
Block read(const std::uint8_t* at) {
  Block block;
  std::memcpy(&block, at, sizeof block);
  return block;
}

PlainBlock unpack_block(BlockType type, const std::uint8_t* at) {
  PlainBlock out{};
  const auto fill = [&out](std::uint16_t d, std::uint16_t m, auto integer) {
    out.d = half_to_float(d);
    out.m = half_to_float(m);
    for (int i = 0; i < 32; ++i) out.q[i] = integer(i);
  };
  if (type == BlockType::kQ4_0) {
    const auto b = read<BlockQ4_0>(at);
    fill(b.d, 0, [&b](int i) { return nibble(b.qs, i) - 8; });
  } else if (type == BlockType::kQ4_1) {
    const auto b = read<BlockQ4_1>(at);
    fill(b.d, b.m, [&b](int i) { return nibble(b.qs, i); });
  } else if (type == BlockType::kQ5_0) {
    const auto b = read<BlockQ5_0>(at);
    fill(b.d, 0, [&b](int i) { return (nibble(b.qs, i) | fifth_bit(b.qh, i)) - 16; });
  } else if (type == BlockType::kQ5_1) {
    const auto b = read<BlockQ5_1>(at);
    fill(b.d, b.m, [&b](int i) { return nibble(b.qs, i) | fifth_bit(b.qh, i); });
  } else if (type == BlockType::kIQ4_NL) {
    const auto b = read<BlockIQ4_NL>(at);
    fill(b.d, 0, [&b](int i) { return kIq4Values[nibble(b.qs, i)]; });
  } else {
    const auto b = read<BlockQ8_0>(at);
    fill(b.d, 0, [&b](int i) { return b.qs[i]; });
  }
  return out;
}

void multiply_quantised(BlockType type, const QuantisedJob& job, std::int64_t row_begin, std::int64_t row_end) {
  const ActivationBlocks& x = *job.x;
  if (block_values(type) != 32) {
    const auto* matrix = reinterpret_cast<const std::byte*>(job.matrix);
    return matvec_float(type, matrix, row_begin, row_end, x, job.out, job.out_stride);
  }
  for (std::int64_t r = row_begin; r < row_end; ++r) {
    for (std::int64_t b = 0; b < x.rows(); ++b) job.out[b * job.out_stride + r] = 0;
    for (std::int64_t i = 0; i < job.blocks; ++i) {
      const PlainBlock w = unpack_block(type, job.matrix + r * job.row_bytes + i * block_bytes(type));
      for (std::int64_t b = 0; b < x.rows(); ++b) {
        const Group group = activation::group_of(b, x.rows());
        const std::int64_t slot = group.first * x.row_blocks() + i * group.size + (b - group.first);
        const std::int16_t* words = x.values() + slot * kBlockValues;
        std::int32_t sum = 0;
        for (int k = 0; k < 32; ++k) sum += w.q[k] * words[8 * (2 * (k & 1) + k / 16) + k % 16 / 2];
        const float scale = x.scales()[slot];
        const float block_sum = x.sums()[group.first * x.padded_blocks() +
                                         (i / kSumChunk * group.size + (b - group.first)) * kSumChunk + i % kSumChunk];
        job.out[b * job.out_stride + r] += static_cast<float>(sum) * (w.d * scale) + w.m * block_sum;
      }
    }
  }
}

#endif

}  // namespace sluice::HWY_NAMESPACE
#undef SLUICE_DPWSSD
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(multiply_quantised);

void matvec_rows(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
                 const ActivationBlocks& x, float* out, std::int64_t out_stride, PrefetchStream* ahead) {
  assert(row_begin >= 0 && x.rows() > 0 && x.cols() % block_values(type) == 0);
  if (row_begin >= row_end) return;
  if (!has_integer_kernel(type)) return matvec_float(type, matrix, row_begin, row_end, x, out, out_stride);
  const QuantisedJob job{reinterpret_cast<const std::uint8_t*>(matrix), row_bytes(type, x.cols()), x.cols() / 32, &x, out,
                         out_stride, ahead};
  HWY_DYNAMIC_DISPATCH(multiply_quantised)(type, job, row_begin, row_end);
}

}  // namespace sluice
#endif
