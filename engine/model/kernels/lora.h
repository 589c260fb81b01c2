// SPDX-License-Identifier: GPL-3.0-or-later
// The low-rank part of a linear layer, unmerged: y += scale * B (A x) for one activation row. The factors are IEEE
// halves: in decode their bytes, not their arithmetic, are what an adapter costs. Sums are f32. Split in two, so that
// `down` runs once and `up` can be split over output rows. Pure functions, thread-safe, run-time dispatch; a result
// depends on its row only and not on the split.
#pragma once

#include <cstdint>

namespace sluice {

// hidden[k] = sum over c of a[k, c] * x[c]. a: [rank, in] row-major. k runs over 0 .. rank-1.
void lora_down(const float* x, const std::uint16_t* a, std::int64_t in, std::int64_t rank, float* hidden);

// y[o] += scale * sum over k of b_t[k, o] * hidden[k] for o in [out_begin, out_end). b_t: [rank, out] row-major, that is
// B transposed (lora_transpose_b, once per adapter): output rows then fill whole vectors at any rank.
void lora_up(const float* hidden, const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, float scale,
             std::int64_t out_begin, std::int64_t out_end, float* y);

// Asks for what lora_up will read.
void lora_prefetch_up(const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, std::int64_t out_begin,
                      std::int64_t out_end);

// b: [out, rank] as PEFT stores it -> b_t: [rank, out].
void lora_transpose_b(const float* b, std::int64_t out, std::int64_t rank, float* b_t);

// Rounds n values to halves after multiplying them by a power of two that brings the largest to the upper end of their
// range, so that small factors keep their bits; returns the inverse of that power, for the scale. All values must be
// finite.
float lora_to_halves(const float* x, std::int64_t n, std::uint16_t* out);

// Halves to floats, n of them.
void lora_to_floats(const std::uint16_t* x, std::int64_t n, float* out);

}  // namespace sluice
