// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers of the GGUF format that its reader and its writer share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "model/format/gguf.h"

namespace sluice::gguf {

inline constexpr std::uint32_t kMagic = 0x46554747;  // "GGUF", little-endian
inline constexpr std::uint32_t kDefaultAlignment = 32;
inline constexpr std::size_t kMaxDims = 4;
inline constexpr char kAlignmentKey[] = "general.alignment";

// The type number of a scalar is its place in GgufValue up to string (8), then 9 is the array, then u64, i64, f64.
inline constexpr std::uint32_t kScalarKinds = 12;  // alternatives of GgufValue that are scalars or strings
inline constexpr std::uint32_t kArrayType = 9;
constexpr std::uint32_t type_number(std::size_t scalar_index) {
  return static_cast<std::uint32_t>(scalar_index < kArrayType ? scalar_index : scalar_index + 1);
}

}  // namespace sluice::gguf
