// SPDX-License-Identifier: GPL-3.0-or-later
// Products with frozen block-quantised matrices as f32 GEMM over dequantised panels; no graph. A panel is thread-local
// scratch that is reused. Work is split over the calling thread's torch cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "model/weights.h"

namespace sluice {

// Rows [begin, end) of w in f32, [end - begin, cols]; valid until this thread's next panel.
at::Tensor dequantised_panel(const WeightMatrix& w, std::int64_t begin, std::int64_t end);
// Rows of w that fill a panel.
std::int64_t panel_rows(const WeightMatrix& w);

// y = x W^T + bias. x [M, cols], y [M, rows], both with unit column stride.
void frozen_linear_out(const WeightMatrix& w, const at::Tensor& x, at::Tensor& y);
// Several inputs over each panel in turn; every product is computed by itself, so it does not depend on the others.
void frozen_linear_out(const WeightMatrix& w, std::span<const at::Tensor> xs, std::span<at::Tensor> ys);
// dx = dy W, or dx += dy W.
void frozen_linear_backward_out(const WeightMatrix& w, const at::Tensor& dy, at::Tensor& dx, bool accumulate);

}  // namespace sluice
