// SPDX-License-Identifier: GPL-3.0-or-later
// Where ActivationBlocks keeps what; shared by the code that writes it and the kernels that read it.
//
// Rows are taken in groups of 8 for as long as they last, then 4, 2, 1. A kernel handles one group with one pass over
// the weights, so the rows of a group lie together: [group][step][row in group][32 * blocks a step], scales and sums
// likewise, which leaves it one running pointer per array. A step is one vector of weights: 1, 2 or 4 blocks (see
// unpack-inl.h); the last one is filled up with zeros.
#pragma once

#include <cstdint>

namespace sluice::activation {

inline constexpr std::int64_t kBlockValues = 32;
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
