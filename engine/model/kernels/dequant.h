// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks to f32, as prefill, training and look-ups in an embedding need them. Values are bit-equal to what the `gguf`
// Python package computes (one rounding per operation, no fused multiply-add). Pure functions, thread-safe, run-time
// dispatch to the CPU's vectors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

// n values starting at the first byte of a block. Precondition: n is a multiple of block_values(type).
void dequantize_row(BlockType type, const std::byte* blocks, std::int64_t n, float* out);

// Rows [row_begin, row_end) of a matrix whose row 0 begins at `matrix` and whose rows have `cols` values, densely into
// out[(row - row_begin) * cols + col].
void dequant_panel(BlockType type, const std::byte* matrix, std::int64_t cols, std::int64_t row_begin,
                   std::int64_t row_end, float* out);

}  // namespace sluice
