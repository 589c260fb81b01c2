// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/gemm_float.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "model/kernels/dequant.h"
#include "model/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/gemm_float.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());
// What the registers hold at a time: rows, and two vectors of outputs.
constexpr std::int64_t kRows = HWY_MAX_BYTES >= 64 ? 12 : 6;
constexpr std::int64_t kOutputs = 2 * kLanes;
static_assert(kFloatTile % kRows == 0 && kFloatStrip % kOutputs == 0);

// to[j * to_stride + i] = from[i * stride + j] for i < 4, j < n.
void transpose_four(const float* from, std::int64_t stride, std::int64_t n, float* to, std::int64_t to_stride) {
  std::int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  const hn::Full128<float> d;
  const hn::Full128<double> pairs;
  for (; j + 4 <= n; j += 4) {
    const auto a = hn::LoadU(d, from + j), b = hn::LoadU(d, from + stride + j);
    const auto c = hn::LoadU(d, from + 2 * stride + j), e = hn::LoadU(d, from + 3 * stride + j);
    const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b)), ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
    const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e)), ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
    float* at = to + j * to_stride;
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, at);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, at + to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, at + 2 * to_stride);
    hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, at + 3 * to_stride);
  }
#endif
  for (; j < n; ++j) {
    for (std::int64_t i = 0; i < 4; ++i) to[j * to_stride + i] = from[i * stride + j];
  }
}

void transpose_one(const float* from, std::int64_t n, float* to, std::int64_t to_stride) {
  for (std::int64_t j = 0; j < n; ++j) to[j * to_stride] = from[j];
}

void pack_rows(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t n, std::int64_t tile_begin,
               std::int64_t tile_end, float* packed) {
  for (std::int64_t tile = tile_begin; tile < tile_end; ++tile) {
    const std::int64_t first = tile * kFloatTile, count = std::min(kFloatTile, rows - first);
    float* to = packed + first * n;
    if (count < kFloatTile) std::fill_n(to, kFloatTile * n, 0.0f);
    std::int64_t r = 0;
    for (; r + 4 <= count; r += 4) transpose_four(x + (first + r) * stride, stride, n, to + r, kFloatTile);
    for (; r < count; ++r) transpose_one(x + (first + r) * stride, n, to + r, kFloatTile);
  }
}

HWY_INLINE void add_product(VF x, VF w0, VF w1, VF& a, VF& b) {
  a = hn::MulAdd(x, w0, a);
  b = hn::MulAdd(x, w1, b);
}

// Without lambdas: GCC keeps what they capture in memory.
template <std::size_t... R>
HWY_INLINE void add_products(const float* x, const float* w, VF (&a)[sizeof...(R)], VF (&b)[sizeof...(R)], std::index_sequence<R...>) {
  const VF w0 = hn::Load(DF(), w), w1 = hn::Load(DF(), w + kLanes);
  (add_product(hn::Set(DF(), x[R]), w0, w1, a[R], b[R]), ...);
}

template <std::size_t... R>
HWY_INLINE void store_sums(const VF (&a)[sizeof...(R)], const VF (&b)[sizeof...(R)], float* out, std::index_sequence<R...>) {
  ((hn::Store(a[R], DF(), out + static_cast<std::int64_t>(R) * kFloatStrip),
    hn::Store(b[R], DF(), out + static_cast<std::int64_t>(R) * kFloatStrip + kLanes)),
   ...);
}

// Packed rows that are multiplied with a strip [n + rank, kFloatStrip].
struct Rows {
  const float* packed;
  std::int64_t rows, n;
  const LowRank& low;
};

// out [kRows, kOutputs of kFloatStrip] = sum over k of x[k, row] w[k, output] + sum over k of low[k, row] w[n + k, output].
template <std::size_t... R>
HWY_NOINLINE void part_of_tile(const float* x, std::int64_t n, const float* low, std::int64_t rank, const float* w, float* out,
                               std::index_sequence<R...> rows) {
  VF a[] = {(static_cast<void>(R), hn::Zero(DF()))...};
  VF b[] = {(static_cast<void>(R), hn::Zero(DF()))...};
  for (std::int64_t k = 0; k < n; ++k) add_products(x + k * kFloatTile, w + k * kFloatStrip, a, b, rows);
  w += n * kFloatStrip;
  for (std::int64_t k = 0; k < rank; ++k) add_products(low + k * kFloatTile, w + k * kFloatStrip, a, b, rows);
  store_sums(a, b, out, rows);
}

// All rows times an unpacked strip, into the `outputs` first columns of out.
void multiply_strip(const Rows& x, const float* strip, std::int64_t outputs, float* out, std::int64_t stride, bool accumulate) {
  alignas(64) float tile[kFloatTile * kFloatStrip];
  for (std::int64_t first = 0; first < x.rows; first += kFloatTile) {
    const float* packed = x.packed + first * x.n;
    const float* low = x.low.rank == 0 ? nullptr : x.low.packed + first * x.low.rank;
    for (std::int64_t r = 0; r < kFloatTile; r += kRows) {
      for (std::int64_t o = 0; o < kFloatStrip; o += kOutputs) {
        part_of_tile(packed + r, x.n, low == nullptr ? nullptr : low + r, x.low.rank, strip + o, tile + r * kFloatStrip + o, std::make_index_sequence<kRows>());
      }
    }
    const std::int64_t count = std::min(kFloatTile, x.rows - first);
    for (std::int64_t r = 0; r < count; ++r) {
      float* to = out + (first + r) * stride;
      const float* from = tile + r * kFloatStrip;
      if (accumulate) {
        for (std::int64_t o = 0; o < outputs; ++o) to[o] += from[o];
      } else {
        std::copy_n(from, outputs, to);
      }
    }
  }
}

void multiply_forward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* out,
                      std::int64_t stride, const LowRank& low) {
  const std::int64_t n = w.cols, depth = n + low.rank;
  auto* strip = reinterpret_cast<float*>(thread_scratch(static_cast<std::size_t>(kFloatStrip * depth + 4 * n) * sizeof(float)));
  float* unpacked = strip + kFloatStrip * depth;
  for (std::int64_t at = begin; at < end; at += kFloatStrip) {
    const std::int64_t count = std::min(kFloatStrip, end - at), row = w.row_begin + at;
    if (count < kFloatStrip) std::fill_n(strip, kFloatStrip * depth, 0.0f);
    for (std::int64_t r = 0; r < count; r += 4) {
      const std::int64_t some = std::min<std::int64_t>(4, count - r);
      dequant_panel(w.type, w.data, n, row + r, row + r + some, unpacked);
      if (some == 4) {
        transpose_four(unpacked, n, n, strip + r, kFloatStrip);
      } else {
        for (std::int64_t i = 0; i < some; ++i) transpose_one(unpacked + i * n, n, strip + r + i, kFloatStrip);
      }
    }
    for (std::int64_t r = 0; low.rank > 0 && r < count; ++r) {
      transpose_one(low.factor + (row + r) * low.rank, low.rank, strip + n * kFloatStrip + r, kFloatStrip);
    }
    multiply_strip({packed, rows, n, low}, strip, count, out + at, stride, false);
  }
}

void multiply_backward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* dx,
                       std::int64_t stride, bool accumulate, const LowRank& low) {
  const std::int64_t n = w.row_end - w.row_begin, depth = n + low.rank, width = backward_columns(w.type);
  const std::int64_t bytes_a_row = row_bytes(w.type, w.cols), strip_size = depth * kFloatStrip;
  auto* strips = reinterpret_cast<float*>(thread_scratch(static_cast<std::size_t>(width * (depth + 1)) * sizeof(float)));
  float* unpacked = strips + width * depth;
  for (std::int64_t at = begin; at < end; at += width) {
    const std::int64_t count = std::min(width, end - at);
    if (count < width) std::fill_n(strips, width * depth, 0.0f);
    const std::byte* block = w.data + w.row_begin * bytes_a_row + row_bytes(w.type, at);
    for (std::int64_t i = 0; i < n; ++i, block += bytes_a_row) {
      if (width == kFloatStrip) {
        dequantize_row(w.type, block, count, strips + i * kFloatStrip);
        continue;
      }
      dequantize_row(w.type, block, count, unpacked);
      for (std::int64_t c = 0; c < count; c += kFloatStrip) std::copy_n(unpacked + c, kFloatStrip, strips + c * depth + i * kFloatStrip);
    }
    for (std::int64_t c = 0; c < count; c += kFloatStrip) {
      const std::int64_t outputs = std::min(kFloatStrip, count - c);
      float* strip = strips + c / kFloatStrip * strip_size;
      for (std::int64_t i = 0; i < low.rank; ++i) std::copy_n(low.factor + i * w.cols + at + c, outputs, strip + (n + i) * kFloatStrip);
      multiply_strip({packed, rows, n, low}, strip, outputs, dx + at + c, stride, accumulate);
    }
  }
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(pack_rows);
HWY_EXPORT(multiply_forward);
HWY_EXPORT(multiply_backward);

std::int64_t backward_columns(BlockType type) { return std::max<std::int64_t>(kFloatStrip, block_values(type)); }

void pack_float_rows(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t n, std::int64_t tile_begin,
                     std::int64_t tile_end, float* packed) {
  HWY_DYNAMIC_DISPATCH(pack_rows)(x, stride, rows, n, tile_begin, tile_end, packed);
}

void gemm_forward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* out,
                  std::int64_t stride, const LowRank& low) {
  assert(begin % kFloatStrip == 0 && w.row_begin + end <= w.row_end);
  HWY_DYNAMIC_DISPATCH(multiply_forward)(w, begin, end, packed, rows, out, stride, low);
}

void gemm_backward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* dx,
                   std::int64_t stride, bool accumulate, const LowRank& low) {
  assert(begin % backward_columns(w.type) == 0 && end <= w.cols);
  HWY_DYNAMIC_DISPATCH(multiply_backward)(w, begin, end, packed, rows, dx, stride, accumulate, low);
}

}  // namespace sluice
#endif
