// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of a few consecutive positions over a key/value cache in f32. The cache is visited block by block, as it lies
// in memory, with a running maximum, so that no score buffer grows with the context. Keys lie with their positions side by
// side: scores of a whole vector of positions come out of multiply-adds alone. All query heads that share a KV head go
// together, of all the positions: each key and value comes from far memory once for all of them. The result of a position
// depends on its queries, the cache and the block borders only, hence not on what goes with it. Run-time dispatch.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

inline constexpr std::int64_t kAttentionBlock = 32;  // positions

// Running softmax-weighted sums of the query heads of one KV head. begin() starts anew and keeps the memory. One thread.
class AttentionState {
 public:
  // queries: [rows][heads, head_size], of rows that follow each other in one sequence, `row_stride` floats apart; copied.
  // `scale` multiplies each score, usually 1 / sqrt(head_size). head_size: a multiple of 8.
  void begin(const float* queries, std::int64_t rows, std::int64_t row_stride, std::int64_t heads, std::int64_t head_size,
             float scale);

  // Takes in a block's positions, of which the first row sees the first `first_sees` and each later row one more, none more
  // than there are. keys: [head_size, kAttentionBlock]; values: [kAttentionBlock, head_size]. What a row doesn't see is
  // read and not used. Precondition: of the first block that any row sees, each sees a position.
  void add_block(const float* keys, const float* values, std::int64_t first_sees);

  // out: as queries. Precondition: a block was taken in.
  void finish(float* out, std::int64_t row_stride) const;

 private:
  std::int64_t rows_ = 0;
  std::int64_t heads_ = 0;  // of a row
  std::int64_t head_size_ = 0;
  float scale_ = 1;
  // Per row and head:
  std::vector<float> queries_;   // [rows, heads, head_size]
  std::vector<float> max_;       // of the scaled scores so far
  std::vector<float> sum_;       // of exp(score - max)
  std::vector<float> weighted_;  // [rows, heads, head_size], sum of exp(score - max) * value
  std::vector<float> scores_;    // of one block
};

}  // namespace sluice
