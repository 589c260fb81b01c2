// SPDX-License-Identifier: GPL-3.0-or-later
// A step's samples cut into pieces that fit the memory: by length, so that a piece holds like with like. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "learn/train_batch.h"

namespace sluice {

// Some samples of a batch laid out on their own.
struct MicroBatch {
  std::vector<std::int64_t> samples;      // their numbers in the batch
  std::vector<std::int32_t> ids, pos;     // [n]
  std::vector<std::int32_t> seq_start;    // [samples + 1]
  std::vector<std::int64_t> resp_index;   // [m] rows of this piece
  std::vector<std::int64_t> target;       // [m]
  std::vector<std::int64_t> token;        // [m] index into the batch's M-vectors
  std::vector<float> tau;                 // [m]
};

// Longest first; a piece takes samples while it stays within max_tokens, and always one.
std::vector<MicroBatch> cut(const TrainBatch& batch, std::int64_t max_tokens);

}  // namespace sluice
