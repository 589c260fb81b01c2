// SPDX-License-Identifier: GPL-3.0-or-later
// A look for numbers that no model has. Pure function, thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/block_type.h"

namespace sluice {

// Whether none of n stored values is NaN or infinite: looks at the values of plain types, at the scales and minima of
// blocks. Precondition: n is a multiple of block_values(type).
bool all_finite(BlockType type, const std::byte* blocks, std::int64_t n);

}  // namespace sluice
