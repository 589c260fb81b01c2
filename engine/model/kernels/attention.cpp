// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/attention.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/attention.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#ifndef SLUICE_ATTENTION_ONCE
#define SLUICE_ATTENTION_ONCE
namespace sluice {

inline constexpr std::int64_t kChunk = 64;  // positions whose scores are held at once

struct AttentionJob {
  std::int64_t heads;
  std::int64_t head_size;
  const float* queries;
  const float* keys;
  const float* values;
  std::int64_t stride;
  std::int64_t n;  // at most kChunk
  float scale;
  float* max;
  float* sum;
  float* weighted;
  float* scores;  // [heads, kChunk]
};

}  // namespace sluice
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Head sizes are multiples of 8, hence at most 8 lanes.
using DF = hn::CappedTag<float, 8>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());

// scores[h][p] = scale * query h . key p, for as many heads as there are indices.
template <std::size_t... H>
HWY_INLINE void score_heads(const AttentionJob& job, std::int64_t first, std::index_sequence<H...>) {
  const float* queries = job.queries + first * job.head_size;
  float* scores = job.scores + first * kChunk;
  for (std::int64_t p = 0; p < job.n; ++p) {
    const float* key = job.keys + p * job.stride;
    VF acc[] = {(static_cast<void>(H), hn::Zero(DF()))...};
    for (std::int64_t c = 0; c < job.head_size; c += kLanes) {
      const VF k = hn::LoadU(DF(), key + c);
      ((acc[H] = hn::MulAdd(hn::LoadU(DF(), queries + static_cast<std::int64_t>(H) * job.head_size + c), k, acc[H])), ...);
    }
    ((scores[static_cast<std::int64_t>(H) * kChunk + p] = job.scale * hn::GetLane(hn::SumOfLanes(DF(), acc[H]))), ...);
  }
}

// Scores of one head become exp(score - max); what was summed before is scaled to the new maximum.
HWY_INLINE void exponentiate(const AttentionJob& job, std::int64_t head) {
  float* scores = job.scores + head * kChunk;
  const std::int64_t padded = (job.n + kLanes - 1) / kLanes * kLanes;
  std::fill(scores + job.n, scores + padded, -std::numeric_limits<float>::infinity());
  float most = job.max[head];
  for (std::int64_t p = 0; p < job.n; ++p) most = std::max(most, scores[p]);
  if (most != job.max[head]) {
    const float shrink = std::exp(job.max[head] - most);  // 0 at the first chunk
    job.sum[head] *= shrink;
    float* weighted = job.weighted + head * job.head_size;
    for (std::int64_t c = 0; c < job.head_size; ++c) weighted[c] *= shrink;
    job.max[head] = most;
  }
  VF total = hn::Zero(DF());
  for (std::int64_t p = 0; p < padded; p += kLanes) {
    const VF e = hn::Exp(DF(), hn::Sub(hn::LoadU(DF(), scores + p), hn::Set(DF(), most)));
    hn::StoreU(e, DF(), scores + p);
    total = hn::Add(total, e);
  }
  job.sum[head] += hn::GetLane(hn::SumOfLanes(DF(), total));
}

// weighted[h][c] += sum over p of scores[h][p] * value p[c].
template <std::size_t... H>
HWY_INLINE void add_values(const AttentionJob& job, std::int64_t first, std::index_sequence<H...>) {
  float* weighted = job.weighted + first * job.head_size;
  const float* scores = job.scores + first * kChunk;
  for (std::int64_t c = 0; c < job.head_size; c += kLanes) {
    VF acc[] = {hn::LoadU(DF(), weighted + static_cast<std::int64_t>(H) * job.head_size + c)...};
    for (std::int64_t p = 0; p < job.n; ++p) {
      const VF v = hn::LoadU(DF(), job.values + p * job.stride + c);
      ((acc[H] = hn::MulAdd(hn::Set(DF(), scores[static_cast<std::int64_t>(H) * kChunk + p]), v, acc[H])), ...);
    }
    (hn::StoreU(acc[H], DF(), weighted + static_cast<std::int64_t>(H) * job.head_size + c), ...);
  }
}

template <std::size_t kHeads>
void attend_heads(const AttentionJob& job, std::int64_t first) {
  score_heads(job, first, std::make_index_sequence<kHeads>());
  for (std::size_t h = 0; h < kHeads; ++h) exponentiate(job, first + static_cast<std::int64_t>(h));
  add_values(job, first, std::make_index_sequence<kHeads>());
}

void attend_chunk(const AttentionJob& job) {
  std::int64_t first = 0;
  for (; job.heads - first >= 4; first += 4) attend_heads<4>(job, first);
  switch (job.heads - first) {
    case 3: attend_heads<3>(job, first); break;
    case 2: attend_heads<2>(job, first); break;
    case 1: attend_heads<1>(job, first); break;
    default: break;
  }
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(attend_chunk);

void AttentionState::begin(std::int64_t heads, std::int64_t head_size) {
  assert(heads > 0 && head_size > 0 && head_size % 8 == 0);
  heads_ = heads;
  head_size_ = head_size;
  max_.assign(static_cast<std::size_t>(heads), -std::numeric_limits<float>::infinity());
  sum_.assign(static_cast<std::size_t>(heads), 0.0f);
  weighted_.assign(static_cast<std::size_t>(heads * head_size), 0.0f);
  scores_.resize(static_cast<std::size_t>(heads * kChunk));
}

void AttentionState::add_segment(const float* queries, const float* keys, const float* values, std::int64_t stride,
                                 std::int64_t n, float scale) {
  for (std::int64_t p = 0; p < n; p += kChunk) {
    HWY_DYNAMIC_DISPATCH(attend_chunk)
    ({heads_, head_size_, queries, keys + p * stride, values + p * stride, stride, std::min(kChunk, n - p), scale,
      max_.data(), sum_.data(), weighted_.data(), scores_.data()});
  }
}

void AttentionState::finish(float* out) const {
  for (std::int64_t h = 0; h < heads_; ++h) {
    const float inverse = 1.0f / sum_[h];
    for (std::int64_t c = 0; c < head_size_; ++c) out[h * head_size_ + c] = weighted_[h * head_size_ + c] * inverse;
  }
}

}  // namespace sluice
#endif
