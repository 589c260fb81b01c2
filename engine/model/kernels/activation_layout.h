// SPDX-License-Identifier: GPL-3.0-or-later
// Where ActivationBlocks keeps what; shared by the code that writes it and the kernels that read it.
//
// Rows are taken in groups of 8 for as long as they last, then 4, 2, 1. A kernel handles one group with one pass over
// the weights, so the rows of a group lie together: [group][quad][row in group][128 int16], and the scales and sums
// likewise, which leaves it one running pointer per array.
#pragma once

#include <cstdint>

namespace sluice::activation {

inline constexpr std::int64_t kQuadValues = 128;  // four blocks of 32
inline constexpr std::int64_t kQuadBlocks = 4;
inline constexpr std::int64_t kSumChunk = 16;  // sums are padded to whole chunks of as many blocks

struct Group {
  std::int64_t first;  // row
  std::int64_t size;   // 8, 4, 2 or 1
};

// The group of rows that begins at row `first` of `rows`.
constexpr Group group_at(std::int64_t first, std::int64_t rows) {
  const std::int64_t left = rows - first;
  return {first, left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1};
}

// The group that holds `row`.
constexpr Group group_of(std::int64_t row, std::int64_t rows) {
  Group group = group_at(row / 8 * 8, rows);
  while (row >= group.first + group.size) group = group_at(group.first + group.size, rows);
  return group;
}

}  // namespace sluice::activation
