// SPDX-License-Identifier: GPL-3.0-or-later
// The low-rank part of a linear layer, unmerged: y += scale * B (A x) for one activation row. The factors are 16-bit
// integers with one scale each: in decode their bytes, not their arithmetic, are what an adapter costs, and halves would
// round ten times as coarsely. Sums are f32. Split in two, so that `down` runs once and `up` can be split over output rows. Pure functions, thread-safe, run-time dispatch; a result
// depends on its row only and not on the split.
#pragma once

#include <cstdint>

namespace sluice {

// hidden[k] = sum over c of a[k, c] * x[c]. a: [rank, in] row-major. k runs over 0 .. rank-1.
void lora_down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, float* hidden);

// y[o] += scale * sum over k of b_t[k, o] * hidden[k] for o in [out_begin, out_end). b_t: [rank, out] row-major, that is
// B transposed (lora_transpose_b, once per adapter): output rows then fill whole vectors at any rank.
void lora_up(const float* hidden, const std::int16_t* b_t, std::int64_t out, std::int64_t rank, float scale,
             std::int64_t out_begin, std::int64_t out_end, float* y);

// Asks for what lora_up will read.
void lora_prefetch_up(const std::int16_t* b_t, std::int64_t out, std::int64_t rank, std::int64_t out_begin,
                      std::int64_t out_end);

// b: [out, rank] as PEFT stores it -> b_t: [rank, out].
void lora_transpose_b(const float* b, std::int64_t out, std::int64_t rank, float* b_t);

// Rounds n finite values to integers of a scale that it returns: x[i] is out[i] * scale to within half of it. The largest
// magnitude becomes 32767.
float lora_to_words(const float* x, std::int64_t n, std::int16_t* out);

// The integers as floats, n of them.
void lora_to_floats(const std::int16_t* x, std::int64_t n, float* out);

}  // namespace sluice
