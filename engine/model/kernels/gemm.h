// SPDX-License-Identifier: GPL-3.0-or-later
// Prefill arithmetic: many activation rows times a quantised matrix, with the same 16-bit integers as matvec.h. A strip of
// weight rows is unpacked once, with its rows side by side in the lanes, and then used for all activations: unlike
// matvec_rows nothing is unpacked or summed over lanes per eight activations.
//
// A result depends on its weight row and its activation row only, bit for bit, but not to the last bit on the same sum
// order as matvec_rows. Single-threaded over a row range; run-time dispatch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

class ActivationBlocks;

// Weight rows that are unpacked together: callers split rows at multiples of it.
inline constexpr std::int64_t kGemmStrip = 32;

// As matvec_rows, for types with an integer kernel.
void gemm_rows(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
               const ActivationBlocks& x, float* out, std::int64_t out_stride);

}  // namespace sluice
