// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "model/frozen_linear_at.h"
#include "model/kernels/dequant.h"
#include "model/kernels/gemm_float.h"
#include "model/kernels/vector_math.h"

namespace sluice {
namespace {

constexpr std::int64_t kPanelValues = std::int64_t{2} << 20;  // 8 MB: stays in the last-level cache

// fn(first, last) over pieces of [0, n) that are cut at multiples of `strip`; `work` products an element.
template <class Fn>
void each_strip(std::int64_t n, std::int64_t strip, std::int64_t work, const Fn& fn) {
  const std::int64_t grain = std::max<std::int64_t>(1, 262144 / std::max<std::int64_t>(1, strip * work));
  at::parallel_for(0, (n + strip - 1) / strip, grain,
                   [&](std::int64_t begin, std::int64_t end) { fn(begin * strip, std::min(end * strip, n)); });
}

LowRank low_rank(const AdapterPart& part) {
  if (part.rank == 0) return {};
  return {part.low.floats.const_data_ptr<float>(), part.factor.const_data_ptr<float>(), part.rank};
}

}  // namespace

at::Tensor dequantised_panel(const WeightMatrix& w, std::int64_t begin, std::int64_t end) {
  thread_local at::Tensor scratch;
  const std::int64_t n = (end - begin) * w.cols;
  if (!scratch.defined() || scratch.numel() < n) scratch = at::empty({std::max(n, kPanelValues)}, at::kFloat);
  float* out = scratch.data_ptr<float>();
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / w.cols);
  at::parallel_for(begin, end, grain, [&](std::int64_t first, std::int64_t last) {
    dequant_panel(w.type, w.data, w.cols, first, last, out + (first - begin) * w.cols);
  });
  return at::from_blob(out, {end - begin, w.cols}, at::kFloat);
}

PackedRows packed_rows(const at::Tensor& x) {
  const std::int64_t rows = x.size(0), n = x.size(1);
  PackedRows out{at::empty({packed_floats(rows, n)}, at::kFloat), rows};
  const float* from = x.const_data_ptr<float>();
  float* to = out.floats.mutable_data_ptr<float>();
  const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (kFloatTile * n));
  at::parallel_for(0, (rows + kFloatTile - 1) / kFloatTile, grain, [&](std::int64_t begin, std::int64_t end) {
    pack_float_rows(from, x.stride(0), rows, n, begin, end, to);
  });
  return out;
}

void frozen_linear_out(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const PackedRows& x, const at::Tensor& y,
                       const AdapterPart& adapter) {
  const FloatMatrix matrix{w.type, w.data, w.cols, begin, end};
  const float* packed = x.floats.const_data_ptr<float>();
  float* out = y.mutable_data_ptr<float>();
  const std::int64_t n = end - begin;
  const LowRank low = low_rank(adapter);
  each_strip(n, kFloatStrip, x.rows * w.cols, [&](std::int64_t first, std::int64_t last) {
    gemm_forward(matrix, first, last, packed, x.rows, out, n, low);
    for (std::int64_t r = 0; w.bias != nullptr && r < x.rows; ++r) add_in_place(w.bias + begin + first, last - first, out + r * n + first);
  });
}

void frozen_linear_piece(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const at::Tensor& x, const at::Tensor& y) {
  at::Tensor slice = y.narrow(1, begin, end - begin);
  at::mm_out(slice, x, dequantised_panel(w, begin, end).t());
  if (w.bias != nullptr) slice.add_(at::from_blob(const_cast<float*>(w.bias + begin), {end - begin}, at::kFloat));
}

std::int64_t serving_piece_rows(const WeightMatrix& w) {
  constexpr std::int64_t kPieceValues = 192 << 10, kMultiple = 64;
  return std::max(kMultiple, kPieceValues / w.cols / kMultiple * kMultiple);
}

void frozen_linear_backward_out(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const PackedRows& dy, const at::Tensor& dx,
                                bool accumulate, const AdapterPart& adapter) {
  const FloatMatrix matrix{w.type, w.data, w.cols, begin, end};
  const float* packed = dy.floats.const_data_ptr<float>();
  float* out = dx.mutable_data_ptr<float>();
  const LowRank low = low_rank(adapter);
  each_strip(w.cols, backward_columns(w.type), dy.rows * (end - begin), [&](std::int64_t first, std::int64_t last) {
    gemm_backward(matrix, first, last, packed, dy.rows, out, w.cols, accumulate, low);
  });
}

}  // namespace sluice
