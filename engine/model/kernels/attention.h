// SPDX-License-Identifier: GPL-3.0-or-later
// Attention of one position over a key/value cache in f32, for decode and small prefill chunks. The cache is visited
// segment by segment (as its blocks lie in memory) with a running maximum, so that no score buffer grows with the
// context. All query heads that share a KV head go together: each key and value row is read once for all of them.
// The result depends on queries, rows and segment borders only: batch-invariant where the cache's blocks have a fixed
// size. Run-time dispatch.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

// Running softmax-weighted sum of the query heads of one KV head. begin() starts anew and keeps the memory. One thread.
class AttentionState {
 public:
  void begin(std::int64_t heads, std::int64_t head_size);

  // Takes in `n` positions. queries: [heads, head_size], rows head_size apart. Key row p is at keys + p * stride, its
  // value row at values + p * stride (floats). `scale` multiplies each score, usually 1 / sqrt(head_size).
  // head_size: a multiple of 8. n may be 0.
  void add_segment(const float* queries, const float* keys, const float* values, std::int64_t stride, std::int64_t n,
                   float scale);

  // out: [heads, head_size]. Precondition: at least one position was taken in.
  void finish(float* out) const;

 private:
  std::int64_t heads_ = 0;
  std::int64_t head_size_ = 0;
  std::vector<float> max_;       // per head, of the scaled scores so far
  std::vector<float> sum_;       // per head, of exp(score - max)
  std::vector<float> weighted_;  // [heads, head_size], sum of exp(score - max) * value
  std::vector<float> scores_;    // of one chunk, per head
};

}  // namespace sluice
