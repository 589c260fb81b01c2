// SPDX-License-Identifier: GPL-3.0-or-later
// Element-wise and reducing functions over one row of f32. Pure functions, thread-safe, run-time dispatch. A result
// depends on the row alone (and on the CPU's vector width), never on its batch. `out` may be the input where said.
#pragma once

#include <cstdint>

namespace sluice {

// out[i] = x[i] * w[i] / sqrt(mean(x^2) + eps). out may be x.
void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out);

// out[i] = gate[i] / (1 + exp(-gate[i])) * up[i]. out may be gate or up.
void silu_mul(const float* gate, const float* up, std::int64_t n, float* out);

// x becomes softmax(x), with the maximum subtracted first. n > 0.
void softmax(float* x, std::int64_t n);

// log(sum(exp(x * scale))), with the maximum subtracted first, summed in double. n > 0, scale > 0 (1 / temperature).
float log_sum_exp(const float* x, std::int64_t n, float scale = 1.0f);

// Sums over e = exp((x - largest) * scale), in double: of e, and of (x - largest) * scale * e. n > 0, scale > 0.
struct ExpSums {
  float largest = 0;
  double sum = 0, weighted = 0;
};
ExpSums exp_sums(const float* x, std::int64_t n, float scale);

// With u = x * scale and p = exp(u - log_z): x = -p * (a + b * (u + offset)). The gradient of a log-probability and of an
// entropy with respect to logits, without the one of the token itself.
struct ExpGradient {
  float scale, log_z, a, b, offset;
};
void exp_gradient(const ExpGradient& g, std::int64_t n, float* x);

// Index of the largest value, the first one on a tie. n > 0; NaN loses against everything.
std::int64_t arg_max(const float* x, std::int64_t n);

float dot(const float* a, const float* b, std::int64_t n);

// y[i] += a * x[i]
void axpy(float a, const float* x, std::int64_t n, float* y);

// y[i] += x[i]
void add_in_place(const float* x, std::int64_t n, float* y);

// Rotary embedding on one head, in place; head_size is a multiple of 8. `cos_sin` holds head_size / 2 cosines, then as many sines.
// Interleaved (Llama's GGUF order): pairs (2i, 2i+1). Split (Qwen, Hugging Face order): pairs (i, i + head_size / 2).
void rotary_interleaved(float* head, const float* cos_sin, std::int64_t head_size);
void rotary_split(float* head, const float* cos_sin, std::int64_t head_size);

}  // namespace sluice
