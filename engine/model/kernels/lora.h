// SPDX-License-Identifier: GPL-3.0-or-later
// The low-rank part of a linear layer, unmerged: y += scale * B (A x) for one activation row. The factors are 16-bit
// integers with one scale each: in decode their bytes, not their arithmetic, are what an adapter costs, and halves would
// round ten times as coarsely. Sums are f32. Split in two, so that `down` runs once and `up` can be split over output
// rows. Both factors lie in the order in which they are read, one stream of whole cache lines:
//   A of the layers that share an input, stacked: rows in groups of eight (the last may be smaller), a group in panels of
//   32 columns, a panel row by row; columns behind the last are 0.
//   B in panels of 32 outputs, a panel column by column ([rank][32]); outputs behind the last are 0.
// Pure functions, thread-safe, run-time dispatch; a result depends on its row only and not on the split.
#pragma once

#include <cstdint>

namespace sluice {

inline constexpr std::int64_t kLoraPanel = 32;
inline constexpr std::int64_t kLoraGroup = 8;

// n up to whole panels.
constexpr std::int64_t lora_padded(std::int64_t n) { return (n + kLoraPanel - 1) / kLoraPanel * kLoraPanel; }

// hidden[k] = sum over c of A[k, c] * x[c] for the rows of group `group`; k counts from 0 over the whole stack of `rank`
// rows. x: [lora_padded(in)], finite behind in.
void lora_down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, std::int64_t group, float* hidden);

// y[o] += scale * sum over k of B[o, k] * hidden[k] for o in [out_begin, out_end).
void lora_up(const float* hidden, const std::int16_t* b, std::int64_t rank, float scale, std::int64_t out_begin,
             std::int64_t out_end, float* y);

// One module's rows, [n, in] row-major, to rows first .. first + n - 1 of a stack of `rank` rows. The stack is
// [rank * lora_padded(in)], zeros before.
void lora_pack_a(const std::int16_t* rows, std::int64_t in, std::int64_t n, std::int64_t rank, std::int64_t first, std::int16_t* a);
// b: [out, rank] row-major -> packed: [lora_padded(out) * rank], zeros before.
void lora_pack_b(const std::int16_t* b, std::int64_t out, std::int64_t rank, std::int16_t* packed);

// The way back, as floats of the integers: [rank, in], and B transposed: [rank, out].
void lora_unpack_a(const std::int16_t* a, std::int64_t in, std::int64_t rank, float* rows);
void lora_unpack_b(const std::int16_t* packed, std::int64_t out, std::int64_t rank, float* b_t);

// Rounds n finite values to integers of a scale that it returns: x[i] is out[i] * scale to within half of it. The largest
// magnitude becomes 32767.
float lora_to_words(const float* x, std::int64_t n, std::int16_t* out);

}  // namespace sluice
