// SPDX-License-Identifier: GPL-3.0-or-later
#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/mm.h>

#include <algorithm>

#include "model/frozen_linear_at.h"
#include "model/kernels/dequant.h"

namespace sluice {
namespace {

constexpr std::int64_t kPanelValues = std::int64_t{2} << 20;  // 8 MB: stays in the last-level cache

}  // namespace

std::int64_t panel_rows(const WeightMatrix& w) { return std::clamp<std::int64_t>(kPanelValues / w.cols, 1, w.rows); }

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

void frozen_linear_out(const WeightMatrix& w, const at::Tensor& x, at::Tensor& y) {
  const std::int64_t step = panel_rows(w);
  for (std::int64_t begin = 0; begin < w.rows; begin += step) {
    frozen_linear_piece(w, begin, std::min(begin + step, w.rows), x, y);
  }
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

void frozen_linear_backward_out(const WeightMatrix& w, const at::Tensor& dy, at::Tensor& dx, bool accumulate) {
  const std::int64_t step = panel_rows(w);
  for (std::int64_t begin = 0; begin < w.rows; begin += step) {
    const std::int64_t n = std::min(step, w.rows - begin);
    const at::Tensor panel = dequantised_panel(w, begin, begin + n);
    const at::Tensor slice = dy.narrow(1, begin, n);
    if (accumulate || begin > 0) {
      dx.addmm_(slice, panel);
    } else {
      at::mm_out(dx, slice, panel);
    }
  }
}

}  // namespace sluice
