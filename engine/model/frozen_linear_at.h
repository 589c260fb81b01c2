// SPDX-License-Identifier: GPL-3.0-or-later
// Products with frozen block-quantised matrices in f32; no graph. Training multiplies with the kernels of gemm_float.h,
// which unpack a strip of the matrix at a time; serving with GEMM over a dequantised panel, thread-local scratch that is
// reused. Work is split over the calling thread's torch cores.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "model/weights.h"

namespace sluice {

// Rows [begin, end) of w in f32, [end - begin, cols]; valid until this thread's next panel.
at::Tensor dequantised_panel(const WeightMatrix& w, std::int64_t begin, std::int64_t end);

// Rows of f32 laid out for the products below.
struct PackedRows {
  at::Tensor floats;
  std::int64_t rows = 0;
};
PackedRows packed_rows(const at::Tensor& x);  // [M, n] with unit column stride

// An adapter's part of a product: x [M, rank] times a factor, which outlives the call; rank 0: none.
struct AdapterPart {
  PackedRows low;
  at::Tensor factor;  // forward B [rows, rank], backward A [rank, cols]; dense
  std::int64_t rank = 0;
};

// y [M, end - begin] = x W^T + low B^T + bias over rows [begin, end) of w. x [M, cols]; y dense. Equal bits at every core count.
void frozen_linear_out(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const PackedRows& x, const at::Tensor& y,
                       const AdapterPart& adapter = {});
// dx [M, cols] = dy W + low A, or dx += that, over the same rows. dy [M, end - begin]; dx dense.
void frozen_linear_backward_out(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const PackedRows& dy, const at::Tensor& dx,
                                bool accumulate, const AdapterPart& adapter = {});

// Serving: columns [begin, end) of y [M, rows] = x W^T + bias. The product's shape is the caller's, so cut at
// multiples of serving_piece_rows() it does not depend on which thread computes it.
void frozen_linear_piece(const WeightMatrix& w, std::int64_t begin, std::int64_t end, const at::Tensor& x, const at::Tensor& y);
std::int64_t serving_piece_rows(const WeightMatrix& w);  // a panel of these stays in a core's own cache

}  // namespace sluice
