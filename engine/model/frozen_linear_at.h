// SPDX-License-Identifier: GPL-3.0-or-later
// Products with frozen block-quantised matrices as f32 GEMM over dequantised panels, and every custom autograd function
// of the model. Panels are thread-local scratch that is reused. Splits work over the calling thread's torch cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/config.h"
#include "model/lora_at.h"
#include "model/weights.h"

namespace sluice {

// y = x W^T + bias, no graph. x [M, cols] with unit column stride, y [M, rows] likewise.
void frozen_linear_out(const WeightMatrix& w, const at::Tensor& x, at::Tensor& y);
// dx (+)= dy W. accumulate: add to what dx holds.
void frozen_linear_backward_out(const WeightMatrix& w, const at::Tensor& dy, at::Tensor& dx, bool accumulate);

// Rows [begin, end) of w in f32, [end - begin, cols]; valid until the next panel on this thread.
at::Tensor dequantised_panel(const WeightMatrix& w, std::int64_t begin, std::int64_t end);

// Differentiable in x, A and B. lora may be null.
at::Tensor lora_linear(const WeightMatrix& w, const LoraModule* lora, const at::Tensor& x);

}  // namespace sluice
