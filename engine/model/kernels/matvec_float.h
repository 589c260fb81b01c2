// SPDX-License-Identifier: GPL-3.0-or-later
// The part of matvec_rows that works in f32: plain types, types without an integer
// kernel, and K types on CPUs without vectors. Same contract.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

class ActivationBlocks;

void matvec_float(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
                  const ActivationBlocks& x, float* out, std::int64_t out_stride);

}  // namespace sluice
