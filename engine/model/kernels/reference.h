// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels in plain loops: what the fast ones are tested against, and what each of them means. Pure, thread-safe, slow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice::reference {

// See dequant.h; bit-equal to it.
void dequantize_row(BlockType type, const std::byte* blocks, std::int64_t n, float* out);

// sum over c of W[row, c] * x[c] in double, with W dequantised and x as given: the exact value to compare with.
double row_times(BlockType type, const std::byte* matrix, std::int64_t row, std::int64_t cols, const float* x);

// x rounded to int16 blocks and back, as matvec.h describes: what the integer kernels really multiply with.
void round_to_blocks(const float* x, std::int64_t n, float* out);

// See vector_math.h, attention.h and lora.h; sums in double.
void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out);
void silu_mul(const float* gate, const float* up, std::int64_t n, float* out);
void softmax(float* x, std::int64_t n);
double log_sum_exp(const float* x, std::int64_t n, double scale);
double dot(const float* a, const float* b, std::int64_t n);
void attention(const float* query, std::int64_t head_size, const float* keys, const float* values, std::int64_t stride,
               std::int64_t n, float scale, float* out);
void lora_add(const float* x, const float* a, const float* b, std::int64_t in, std::int64_t out, std::int64_t rank,
              float scale, float* y);

}  // namespace sluice::reference
