// SPDX-License-Identifier: GPL-3.0-or-later
// The products of training: many f32 rows times a matrix in blocks, in f32, forwards (x W^T) and backwards (dy W). A strip
// of the matrix is unpacked once, with 32 outputs side by side, and then used for all rows, which are packed before.
//
// A result depends on its row and on the strip's weights only: not on the other rows, nor on how strips are split over
// threads. Single-threaded over a range; run-time dispatch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

// Rows that are packed together and outputs that are computed together.
inline constexpr std::int64_t kFloatTile = 12;
inline constexpr std::int64_t kFloatStrip = 32;

// Floats of `rows` packed rows of n values each.
constexpr std::int64_t packed_floats(std::int64_t rows, std::int64_t n) { return (rows + kFloatTile - 1) / kFloatTile * kFloatTile * n; }

// Tiles [tile_begin, tile_end) of x [rows, n] into their places of `packed`; missing rows of the last one become 0.
void pack_float_rows(const float* x, std::int64_t stride, std::int64_t rows, std::int64_t n, std::int64_t tile_begin,
                     std::int64_t tile_end, float* packed);

// A matrix in blocks [*, cols] of which weight rows [row_begin, row_end) are used.
struct FloatMatrix {
  BlockType type;
  const std::byte* data;  // weight row 0
  std::int64_t cols, row_begin, row_end;
};

// Columns a backward strip must be cut at: 32, or the block where that is longer.
std::int64_t backward_columns(BlockType type);

// A second product that is added to the first: packed rows [rows, rank] times an f32 matrix.
struct LowRank {
  const float* packed = nullptr;
  const float* factor = nullptr;  // forward: [weight rows, rank]; backward: [rank, cols]
  std::int64_t rank = 0;
};

// out[r, i] = x[r] . W[row_begin + i] (+ low[r] . factor[row_begin + i]) for i in [begin, end), both multiples of kFloatStrip or the end. Packed x [rows, cols].
void gemm_forward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* out,
                  std::int64_t stride, const LowRank& low = {});
// dx[r, c] = (accumulate: +=) sum over i of dy[r, i] W[row_begin + i, c] (+ over j of low[r, j] factor[j, c]), for c in [begin, end), both multiples of
// backward_columns() or the end. Packed dy [rows, row_end - row_begin].
void gemm_backward(const FloatMatrix& w, std::int64_t begin, std::int64_t end, const float* packed, std::int64_t rows, float* dx,
                   std::int64_t stride, bool accumulate, const LowRank& low = {});

}  // namespace sluice
