// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/gemm.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <type_traits>
#include <utility>

#include "model/kernels/activation_layout.h"
#include "model/kernels/blocks.h"
#include "model/kernels/matvec.h"
#include "model/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_WANT_AVX3_DL 1
#define HWY_TARGET_INCLUDE "model/kernels/gemm.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "model/kernels/lanes-inl.h"
#include "model/kernels/unpack-inl.h"

#ifndef SLUICE_GEMM_ONCE
#define SLUICE_GEMM_ONCE
namespace sluice {

struct GemmJob {
  const std::uint8_t* matrix;  // weight row 0
  std::int64_t row_bytes;
  std::int64_t row_end;
  std::int64_t blocks;  // of 32 values, in a row
  const ActivationBlocks* x;
  float* out;
  std::int64_t out_stride;
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

constexpr std::int64_t kPairs = kBlockValues / 2;  // 32-bit lanes of a block
// A strip is worked on in parts of two vectors of rows: their sums and one activation fill the registers.
constexpr std::int64_t kPart = 2 * kLanes;
static_assert(kGemmStrip % kPart == 0);
// Activation rows whose sums are in registers at a time.
constexpr std::int64_t kRowsAtOnce = HWY_MAX_BYTES >= 64 ? 8 : 4;

// Weights of kPart rows. Pair p of a block: two values of every row, as unpack-inl.h pairs them.
struct Part {
  std::int32_t* pairs;  // [block][kPairs][kPart]
  float* d;             // [block][kPart], or [block][2][kPart] for types with a scale every 16 values
  float* m;             // [block][kPart], of types with a minimum
};

// sum + a * b over the two words of each lane. Exact: 32 * 255 * 32767 < 2^31, and 16 * 32 * 32767 for Q6_K's halves.
HWY_INLINE VI add_products(VI sum, VW a, VW b) {
#if SLUICE_DPWSSD
  return VI{_mm512_dpwssd_epi32(sum.raw, a.raw, b.raw)};
#else
  VI odd = hn::Zero(DI());
  sum = hn::ReorderWidenMulAccumulate(DI(), a, b, sum, odd);
  return hn::RearrangeToOddPlusEven(sum, odd);
#endif
}

template <class Unpack>
constexpr bool kHasHalves = std::is_same_v<typename Unpack::Block, BlockQ6_K>;

// One step's vectors of row r into its place of the part.
HWY_INLINE void scatter(const VW (&w)[4], std::int64_t block, std::int64_t blocks, std::int64_t r, std::int32_t* pairs) {
  alignas(64) std::int32_t lanes[4 * kLanes];
  hn::Store(hn::BitCast(DI(), w[0]), DI(), lanes);
  hn::Store(hn::BitCast(DI(), w[1]), DI(), lanes + kLanes);
  hn::Store(hn::BitCast(DI(), w[2]), DI(), lanes + 2 * kLanes);
  hn::Store(hn::BitCast(DI(), w[3]), DI(), lanes + 3 * kLanes);
  const std::int64_t n = std::min(kBlocksPerVector, blocks - block);
  for (std::int64_t k = 0; k < n; ++k) {
    std::int32_t* to = pairs + (block + k) * kPairs * kPart + r;
#pragma GCC unroll 16
    for (std::int64_t p = 0; p < kPairs; ++p) to[p * kPart] = lanes[p * kBlocksPerVector + k];
  }
}

template <class Unpack>
HWY_INLINE void scatter_scales(const RowScales& s, std::int64_t blocks, std::int64_t r, const Part& part) {
  for (std::int64_t i = 0; i < blocks; ++i) {
    if constexpr (kHasHalves<Unpack>) {
      part.d[(2 * i) * kPart + r] = s.d[i] * static_cast<float>(static_cast<std::int16_t>(s.qh[i]));
      part.d[(2 * i + 1) * kPart + r] = s.d[i] * static_cast<float>(static_cast<std::int16_t>(s.pairs[i]));
    } else {
      part.d[i * kPart + r] = s.d[i];
    }
    if constexpr (Unpack::kMinimum) part.m[i * kPart + r] = s.m[i];
  }
}

// Row r of the part from its blocks.
template <class Unpack>
HWY_INLINE void unpack_row(const std::uint8_t* row, std::int64_t blocks, std::int64_t r, const RowScales& s, const Part& part) {
  using Block = typename Unpack::Block;
  Unpack::gather(row, blocks, s);
  scatter_scales<Unpack>(s, blocks, r, part);
  VW w[4];
  for (std::int64_t block = 0; block < blocks; block += kBlocksPerVector) {
    if constexpr (kSuperBlock<Unpack>) {
      Unpack::unpack_integers(row, block, w);
    } else {
      const std::uint8_t* at = row + block * static_cast<std::int64_t>(sizeof(Block));
      Unpack::unpack_blocks(LastBlocks<Block>{at, blocks - 1 - block}, s.qh + block, w);
    }
    scatter(w, block, blocks, r, part.pairs);
  }
}

// What a part is multiplied with: as many activation rows as there are indices.
struct Activations {
  const std::int16_t* values;  // row 0 of them, first step
  const float* scales;
  const float* sums;
  std::int64_t group;  // rows of the group they lie in
};

HWY_INLINE VW pair_everywhere(const std::int16_t* at) {
  std::int32_t pair;
  std::memcpy(&pair, at, sizeof pair);
  return hn::BitCast(DW(), hn::Set(DI(), pair));
}

// Integer sums of one pair: a for the part's first vector of weight rows, b for its second. Without lambdas: GCC keeps
// what they capture in memory.
template <std::size_t... R>
HWY_INLINE void add_pair(const std::int32_t* weights, const std::int16_t* x, VI (&a)[sizeof...(R)], VI (&b)[sizeof...(R)],
                         std::index_sequence<R...>) {
  constexpr std::int64_t kStride = kBlocksPerVector * kBlockValues;
  const VW w0 = hn::BitCast(DW(), hn::Load(DI(), weights)), w1 = hn::BitCast(DW(), hn::Load(DI(), weights + kLanes));
  ((a[R] = add_products(a[R], w0, pair_everywhere(x + static_cast<std::int64_t>(R) * kStride)),
    b[R] = add_products(b[R], w1, pair_everywhere(x + static_cast<std::int64_t>(R) * kStride))),
   ...);
}

// to += sums * d * scale
HWY_INLINE void add_scaled_sums(VI sums, VF d, const float* scale, float* to) {
  hn::Store(hn::MulAdd(hn::ConvertTo(DF(), sums), hn::Mul(d, hn::Set(DF(), *scale)), hn::Load(DF(), to)), DF(), to);
}

// tile[R] += sums * scales of the weights * scale of the activations' block.
template <std::size_t... R>
HWY_INLINE void add_scaled(const VI (&a)[sizeof...(R)], const VI (&b)[sizeof...(R)], const float* d, const float* scales,
                           float* tile, std::index_sequence<R...>) {
  const VF d0 = hn::Load(DF(), d), d1 = hn::Load(DF(), d + kLanes);
  ((add_scaled_sums(a[R], d0, scales + static_cast<std::int64_t>(R) * kBlocksPerVector, tile + static_cast<std::int64_t>(R) * kPart),
    add_scaled_sums(b[R], d1, scales + static_cast<std::int64_t>(R) * kBlocksPerVector,
                    tile + static_cast<std::int64_t>(R) * kPart + kLanes)),
   ...);
}

HWY_INLINE void add_product(VF m, const float* sum, float* to) {
  hn::Store(hn::MulAdd(m, hn::Set(DF(), *sum), hn::Load(DF(), to)), DF(), to);
}

template <std::size_t... R>
HWY_INLINE void add_minima(const float* m, const float* sums, float* tile, std::index_sequence<R...>) {
  const VF m0 = hn::Load(DF(), m), m1 = hn::Load(DF(), m + kLanes);
  ((add_product(m0, sums + static_cast<std::int64_t>(R) * kSumChunk, tile + static_cast<std::int64_t>(R) * kPart),
    add_product(m1, sums + static_cast<std::int64_t>(R) * kSumChunk, tile + static_cast<std::int64_t>(R) * kPart + kLanes)),
   ...);
}

// tile [sizeof...(R)][kPart] = the part times the rows.
template <class Unpack, std::size_t... R>
HWY_INLINE void part_times_rows(const Part& part, std::int64_t blocks, const Activations& x, float* tile,
                                std::index_sequence<R...> rows) {
  constexpr std::int64_t kHalves = kHasHalves<Unpack> ? 2 : 1;
  std::fill_n(tile, static_cast<std::int64_t>(sizeof...(R)) * kPart, 0.0f);
  for (std::int64_t i = 0; i < blocks; ++i) {
    const std::int64_t step = i / kBlocksPerVector * kBlocksPerVector * x.group, k = i % kBlocksPerVector;
    const std::int16_t* values = x.values + step * kBlockValues + 2 * k;
    const std::int32_t* pairs = part.pairs + i * kPairs * kPart;
    for (std::int64_t half = 0; half < kHalves; ++half) {
      VI a[] = {(static_cast<void>(R), hn::Zero(DI()))...};
      VI b[] = {(static_cast<void>(R), hn::Zero(DI()))...};
      // Vectors 0 and 2 of unpack-inl.h hold a block's first half, 1 and 3 its second.
      for (std::int64_t v = half; v < 4; v += kHalves) {
        for (std::int64_t p = 4 * v; p < 4 * v + 4; p += 2) {
          add_pair(pairs + p * kPart, values + 2 * kBlocksPerVector * p, a, b, rows);
          add_pair(pairs + (p + 1) * kPart, values + 2 * kBlocksPerVector * (p + 1), a, b, rows);
        }
      }
      add_scaled(a, b, part.d + (kHalves * i + half) * kPart, x.scales + step + k, tile, rows);
    }
    if constexpr (Unpack::kMinimum) {
      add_minima(part.m + i * kPart, x.sums + i / kSumChunk * x.group * kSumChunk + i % kSumChunk, tile, rows);
    }
  }
}

template <class Unpack, std::size_t kRows>
void rows_at(const GemmJob& job, const Part& part, std::int64_t weight_row, const Group& group, std::int64_t row) {
  const ActivationBlocks& x = *job.x;
  const std::int64_t at = row - group.first;
  const std::int64_t slot = group.first * x.row_blocks() + at * kBlocksPerVector;
  const Activations rows{x.values() + slot * kBlockValues, x.scales() + slot,
                         x.sums() + group.first * x.padded_blocks() + at * kSumChunk, group.size};
  alignas(64) float tile[kRows * kPart];
  part_times_rows<Unpack>(part, job.blocks, rows, tile, std::make_index_sequence<kRows>());
  const std::int64_t n = std::min(kPart, job.row_end - weight_row);
  for (std::size_t r = 0; r < kRows; ++r) {
    std::copy_n(tile + r * kPart, n, job.out + (row + static_cast<std::int64_t>(r)) * job.out_stride + weight_row);
  }
}

template <class Unpack>
void multiply_part(const GemmJob& job, const Part& part, std::int64_t weight_row) {
  const std::int64_t rows = job.x->rows();
  for (std::int64_t row = 0; row < rows;) {
    const Group group = activation::group_of(row, rows);
    const std::int64_t n = std::min(group.size, kRowsAtOnce);
    switch (n) {
      case 8: rows_at<Unpack, kRowsAtOnce>(job, part, weight_row, group, row); break;
      case 4: rows_at<Unpack, 4>(job, part, weight_row, group, row); break;
      case 2: rows_at<Unpack, 2>(job, part, weight_row, group, row); break;
      default: rows_at<Unpack, 1>(job, part, weight_row, group, row); break;
    }
    row += n;
  }
}

template <class Unpack>
void multiply(const GemmJob& job, std::int64_t row_begin, std::int64_t row_end) {
  const auto padded = static_cast<std::int64_t>(job.x->padded_blocks());
  const std::int64_t pairs = job.blocks * kPairs * kPart, scales = job.blocks * kPart;
  const std::int64_t floats = pairs + 3 * scales + 4 * padded;
  auto* at = reinterpret_cast<float*>(thread_scratch(static_cast<std::size_t>(floats) * sizeof(float)));
  const Part part{reinterpret_cast<std::int32_t*>(at), at + pairs, at + pairs + 2 * scales};
  float* own = at + pairs + 3 * scales;
  const RowScales s{own, own + padded, reinterpret_cast<std::uint32_t*>(own + 2 * padded),
                    reinterpret_cast<std::uint32_t*>(own + 3 * padded)};
  std::fill_n(own, 4 * padded, 0.0f);
  for (std::int64_t row = row_begin; row < row_end; row += kPart) {
    const std::int64_t n = std::min(kPart, row_end - row);
    if (n < kPart) std::fill_n(at, pairs + 3 * scales, 0.0f);
    for (std::int64_t r = 0; r < n; ++r) unpack_row<Unpack>(job.matrix + (row + r) * job.row_bytes, job.blocks, r, s, part);
    multiply_part<Unpack>(job, part, row);
  }
}

void multiply_gemm(BlockType type, const GemmJob& job, std::int64_t row_begin, std::int64_t row_end) {
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
    default: assert(false && "not a type with an integer kernel");
  }
}

#else  // HWY_SCALAR

void multiply_gemm(BlockType type, const GemmJob& job, std::int64_t row_begin, std::int64_t row_end) {
  matvec_rows(type, reinterpret_cast<const std::byte*>(job.matrix), row_begin, row_end, *job.x, job.out, job.out_stride);
}

#endif

}  // namespace sluice::HWY_NAMESPACE
#undef SLUICE_DPWSSD
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(multiply_gemm);

void gemm_rows(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
               const ActivationBlocks& x, float* out, std::int64_t out_stride) {
  assert(row_begin >= 0 && x.rows() > 0 && x.cols() % block_values(type) == 0);
  if (row_begin >= row_end) return;
  HWY_DYNAMIC_DISPATCH(multiply_gemm)
  (type,
   {reinterpret_cast<const std::uint8_t*>(matrix), row_bytes(type, x.cols()), row_end, x.cols() / 32, &x, out, out_stride},
   row_begin, row_end);
}

}  // namespace sluice
#endif
