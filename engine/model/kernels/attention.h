// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of one position over a key/value cache in f32. The cache is visited block by block, as it lies in memory,
// with a running maximum, so that no score buffer grows with the context. Keys lie with their positions side by side:
// scores of a whole vector of positions come out of multiply-adds alone. All query heads that share a KV head go
// together: each key and value is read once for all of them. The result depends on queries, cache and block borders
// only, hence not on the batch. Run-time dispatch.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

inline constexpr std::int64_t kAttentionBlock = 32;  // positions

// Running softmax-weighted sum of the query heads of one KV head. begin() starts anew and keeps the memory. One thread.
class AttentionState {
 public:
  void begin(std::int64_t heads, std::int64_t head_size);

  // Takes in the first `n` of a block's positions, at most kAttentionBlock. queries: [heads, head_size]; keys:
  // [head_size, kAttentionBlock]; values: [kAttentionBlock, head_size]. `scale` multiplies each score, usually
  // 1 / sqrt(head_size). head_size: a multiple of 8. n may be 0; what lies behind n is read and not used.
  void add_block(const float* queries, const float* keys, const float* values, std::int64_t n, float scale);

  // out: [heads, head_size]. Precondition: at least one position was taken in.
  void finish(float* out) const;

 private:
  std::int64_t heads_ = 0;
  std::int64_t head_size_ = 0;
  std::vector<float> max_;       // per head, of the scaled scores so far
  std::vector<float> sum_;       // per head, of exp(score - max)
  std::vector<float> weighted_;  // [heads, head_size], sum of exp(score - max) * value
  std::vector<float> scores_;    // of one block, per head
};

}  // namespace sluice
