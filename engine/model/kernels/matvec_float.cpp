// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/matvec_float.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "model/kernels/dequant.h"
#include "model/kernels/matvec.h"
#include "model/kernels/scratch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/matvec_float.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());
constexpr std::int64_t kChains = 2;  // independent sums a row: hides the latency of multiply-add

// w: `padded` floats, a multiple of 32, as are the rows of x.
template <std::size_t... I>
HWY_INLINE void row_times_group(const float* w, std::int64_t padded, const float* const (&x)[sizeof...(I)], float* out,
                                std::int64_t out_stride, std::index_sequence<I...>) {
  VF a[] = {(static_cast<void>(I), hn::Zero(DF()))...};
  VF b[] = {(static_cast<void>(I), hn::Zero(DF()))...};
  for (std::int64_t c = 0; c < padded; c += kChains * kLanes) {
    const VF w0 = hn::LoadU(DF(), w + c), w1 = hn::LoadU(DF(), w + c + kLanes);
    ((a[I] = hn::MulAdd(w0, hn::LoadU(DF(), x[I] + c), a[I])), ...);
    ((b[I] = hn::MulAdd(w1, hn::LoadU(DF(), x[I] + c + kLanes), b[I])), ...);
  }
  ((out[I * out_stride] = hn::GetLane(hn::SumOfLanes(DF(), hn::Add(a[I], b[I])))), ...);
}

// A weight row, padded with zeros, times every activation row.
void float_row(const float* w, std::int64_t padded, const ActivationBlocks& x, float* out, std::int64_t out_stride) {
  std::int64_t b = 0;
  for (; b + 4 <= x.rows(); b += 4) {
    const float* const rows[4] = {x.floats(b), x.floats(b + 1), x.floats(b + 2), x.floats(b + 3)};
    row_times_group(w, padded, rows, out + b * out_stride, out_stride, std::make_index_sequence<4>());
  }
  for (; b < x.rows(); ++b) {
    const float* const rows[1] = {x.floats(b)};
    row_times_group(w, padded, rows, out + b * out_stride, out_stride, std::make_index_sequence<1>());
  }
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(float_row);

void matvec_float(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
                  const ActivationBlocks& x, float* out, std::int64_t out_stride) {
  const std::int64_t bytes = row_bytes(type, x.cols());
  const std::int64_t padded = (x.cols() + 31) / 32 * 32;
  auto* row = reinterpret_cast<float*>(thread_scratch(static_cast<std::size_t>(padded) * sizeof(float)));
  std::fill_n(row, padded, 0.0f);
  for (std::int64_t r = row_begin; r < row_end; ++r) {
    dequantize_row(type, matrix + r * bytes, x.cols(), row);
    HWY_DYNAMIC_DISPATCH(float_row)(row, padded, x, out + r, out_stride);
  }
}

}  // namespace sluice
#endif
