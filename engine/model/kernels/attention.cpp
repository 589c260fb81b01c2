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

struct AttentionJob {
  std::int64_t heads;  // of all rows
  std::int64_t heads_of_a_row;
  std::int64_t head_size;
  const float* queries;
  const float* keys;
  const float* values;
  std::int64_t first_sees;  // positions: the first row
  std::int64_t n;           // positions: the last row, which sees the most
  float scale;
  float* max;
  float* sum;
  float* weighted;
  float* scores;  // [heads, kAttentionBlock]
};

}  // namespace sluice
#endif

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());
static_assert(kAttentionBlock % (2 * kLanes) == 0);

// scores[h][p] = scale * query h . key p, two vectors of positions at a time, for as many heads as there are indices.
template <std::size_t... H>
HWY_INLINE void score_heads(const AttentionJob& job, std::int64_t first, std::index_sequence<H...>) {
  const float* queries = job.queries + first * job.head_size;
  float* scores = job.scores + first * kAttentionBlock;
  const VF scale = hn::Set(DF(), job.scale);
  for (std::int64_t p = 0; p < job.n; p += 2 * kLanes) {
    VF a[] = {(static_cast<void>(H), hn::Zero(DF()))...};
    VF b[] = {(static_cast<void>(H), hn::Zero(DF()))...};
    const float* key = job.keys + p;
    for (std::int64_t c = 0; c < job.head_size; ++c, key += kAttentionBlock) {
      const VF k0 = hn::LoadU(DF(), key), k1 = hn::LoadU(DF(), key + kLanes);
      ((a[H] = hn::MulAdd(hn::Set(DF(), queries[static_cast<std::int64_t>(H) * job.head_size + c]), k0, a[H]),
        b[H] = hn::MulAdd(hn::Set(DF(), queries[static_cast<std::int64_t>(H) * job.head_size + c]), k1, b[H])),
       ...);
    }
    (hn::StoreU(hn::Mul(scale, a[H]), DF(), scores + static_cast<std::int64_t>(H) * kAttentionBlock + p), ...);
    (hn::StoreU(hn::Mul(scale, b[H]), DF(), scores + static_cast<std::int64_t>(H) * kAttentionBlock + p + kLanes), ...);
  }
}

// Scores of one head become exp(score - max), 0 where its row doesn't see; what was summed before is scaled to the new
// maximum.
HWY_INLINE void exponentiate(const AttentionJob& job, std::int64_t head) {
  float* scores = job.scores + head * kAttentionBlock;
  const std::int64_t padded = (job.n + kLanes - 1) / kLanes * kLanes;
  const std::int64_t sees = std::clamp<std::int64_t>(job.first_sees + head / job.heads_of_a_row, 0, job.n);
  std::fill(scores + sees, scores + padded, -std::numeric_limits<float>::infinity());
  VF largest = hn::Set(DF(), job.max[head]);
  for (std::int64_t p = 0; p < padded; p += kLanes) largest = hn::Max(hn::LoadU(DF(), scores + p), largest);
  const float most = hn::GetLane(hn::MaxOfLanes(DF(), largest));
  if (most != job.max[head]) {
    const float shrink = std::exp(job.max[head] - most);  // 0 at the first block
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

// weighted[h][c] += sum over p of scores[h][p] * value p[c], for a vector of d from c on.
template <class D, std::size_t... H>
HWY_INLINE void add_values(D d, const AttentionJob& job, std::int64_t first, std::int64_t c, std::index_sequence<H...>) {
  float* weighted = job.weighted + first * job.head_size + c;
  const float* scores = job.scores + first * kAttentionBlock;
  hn::Vec<D> acc[] = {hn::LoadU(d, weighted + static_cast<std::int64_t>(H) * job.head_size)...};
  const float* value = job.values + c;
  for (std::int64_t p = 0; p < job.n; ++p, value += job.head_size) {
    const auto x = hn::LoadU(d, value);
    ((acc[H] = hn::MulAdd(hn::Set(d, scores[static_cast<std::int64_t>(H) * kAttentionBlock + p]), x, acc[H])), ...);
  }
  (hn::StoreU(acc[H], d, weighted + static_cast<std::int64_t>(H) * job.head_size), ...);
}

// The same for two vectors from c on, so that more sums are under way than a multiply-add takes cycles.
template <std::size_t... H>
HWY_INLINE void add_value_pairs(const AttentionJob& job, std::int64_t first, std::int64_t c, std::index_sequence<H...>) {
  float* weighted = job.weighted + first * job.head_size + c;
  const float* scores = job.scores + first * kAttentionBlock;
  VF a[] = {hn::LoadU(DF(), weighted + static_cast<std::int64_t>(H) * job.head_size)...};
  VF b[] = {hn::LoadU(DF(), weighted + static_cast<std::int64_t>(H) * job.head_size + kLanes)...};
  const float* value = job.values + c;
  for (std::int64_t p = 0; p < job.n; ++p, value += job.head_size) {
    const VF x = hn::LoadU(DF(), value), y = hn::LoadU(DF(), value + kLanes);
    ((a[H] = hn::MulAdd(hn::Set(DF(), scores[static_cast<std::int64_t>(H) * kAttentionBlock + p]), x, a[H]),
      b[H] = hn::MulAdd(hn::Set(DF(), scores[static_cast<std::int64_t>(H) * kAttentionBlock + p]), y, b[H])),
     ...);
  }
  (hn::StoreU(a[H], DF(), weighted + static_cast<std::int64_t>(H) * job.head_size), ...);
  (hn::StoreU(b[H], DF(), weighted + static_cast<std::int64_t>(H) * job.head_size + kLanes), ...);
}

template <std::size_t... H>
HWY_INLINE void add_all_values(const AttentionJob& job, std::int64_t first, std::index_sequence<H...> heads) {
  std::int64_t c = 0;
  for (; c + 2 * kLanes <= job.head_size; c += 2 * kLanes) add_value_pairs(job, first, c, heads);
  for (; c + kLanes <= job.head_size; c += kLanes) add_values(DF(), job, first, c, heads);
  for (; c < job.head_size; c += 8) {  // head sizes are multiples of 8
    const hn::CappedTag<float, 8> d8;
    for (std::int64_t i = 0; i < 8; i += hn::MaxLanes(d8)) add_values(d8, job, first, c + i, heads);
  }
}

template <std::size_t kHeads>
void attend_heads(const AttentionJob& job, std::int64_t first) {
  score_heads(job, first, std::make_index_sequence<kHeads>());
  for (std::size_t h = 0; h < kHeads; ++h) exponentiate(job, first + static_cast<std::int64_t>(h));
  add_all_values(job, first, std::make_index_sequence<kHeads>());
}

void attend_block(const AttentionJob& job) {
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

HWY_EXPORT(attend_block);

void AttentionState::begin(const float* queries, std::int64_t rows, std::int64_t row_stride, std::int64_t heads,
                           std::int64_t head_size, float scale) {
  assert(rows > 0 && heads > 0 && head_size > 0 && head_size % 8 == 0);
  rows_ = rows;
  heads_ = heads;
  head_size_ = head_size;
  scale_ = scale;
  const std::int64_t row = heads * head_size;
  queries_.resize(static_cast<std::size_t>(rows * row));
  for (std::int64_t r = 0; r < rows; ++r) std::copy_n(queries + r * row_stride, row, queries_.data() + r * row);
  max_.assign(static_cast<std::size_t>(rows * heads), -std::numeric_limits<float>::infinity());
  sum_.assign(static_cast<std::size_t>(rows * heads), 0.0f);
  weighted_.assign(static_cast<std::size_t>(rows * row), 0.0f);
  scores_.resize(static_cast<std::size_t>(rows * heads * kAttentionBlock));
}

void AttentionState::add_block(const float* keys, const float* values, std::int64_t first_sees) {
  const std::int64_t n = std::min(first_sees + rows_ - 1, kAttentionBlock);
  if (n <= 0) return;
  HWY_DYNAMIC_DISPATCH(attend_block)
  ({rows_ * heads_, heads_, head_size_, queries_.data(), keys, values, first_sees, n, scale_, max_.data(), sum_.data(),
    weighted_.data(), scores_.data()});
}

void AttentionState::finish(float* out, std::int64_t row_stride) const {
  const float* weighted = weighted_.data();
  const float* sum = sum_.data();
  for (std::int64_t r = 0; r < rows_; ++r, out += row_stride) {
    for (std::int64_t h = 0; h < heads_; ++h, weighted += head_size_) {
      const float inverse = 1.0f / *sum++;
      for (std::int64_t c = 0; c < head_size_; ++c) out[h * head_size_ + c] = weighted[c] * inverse;
    }
  }
}

}  // namespace sluice
#endif
