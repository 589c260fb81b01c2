// SPDX-License-Identifier: GPL-3.0-or-later
// Products with frozen block-quantised matrices as f32 GEMM over dequantised panels; no graph. A panel is thread-local
// scratch that is reused. Work is split over the calling thread's torch cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/weights.h"

namespace sluice {

// Rows [begin, end) of w in f32, [end - begin, cols]; valid until this thread's next panel.
at::Tensor dequantised_panel(const WeightMatrix& w, std::int64_t begin, std::int64_t end);
// Rows of w that fill a panel.
std::int64_t panel_rows(const WeightMatrix& w);

// y = x W^T + bias. x [M, cols], y [M, rows], both with unit column stride.
void frozen_linear_out(const WeightMatrix& w, const at::Tensor& x, at::Tensor& y);
// The same for rows [begin, end) of w only: columns [begin, end) of y. The product's shape is the caller's, so cut at
// multiples of serving_piece_rows() it does not depend on which thread computes it.
void frozen_linear_piece(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const at::Tensor& x, const at::Tensor& y);
std::int64_t serving_piece_rows(const WeightMatrix& w);  // a panel of these stays in a core's own cache
// dx = dy W, or dx += dy W.
void frozen_linear_backward_out(const WeightMatrix& w, const at::Tensor& dy, at::Tensor& dx, bool accumulate);

}  // namespace sluice
