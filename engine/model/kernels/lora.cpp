// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/lora.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "model/kernels/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());

// Rows of A as many as there are indices: x is read once for all of them.
template <std::size_t... K>
HWY_INLINE void down_rows(const float* x, const float* a, std::int64_t in, float* hidden, std::index_sequence<K...>) {
  VF acc[] = {(static_cast<void>(K), hn::Zero(DF()))...};
  std::int64_t c = 0;
  for (; c + kLanes <= in; c += kLanes) {
    const VF v = hn::LoadU(DF(), x + c);
    ((acc[K] = hn::MulAdd(hn::LoadU(DF(), a + static_cast<std::int64_t>(K) * in + c), v, acc[K])), ...);
  }
  if (c < in) {
    const VF v = load_tail(x + c, in - c);
    ((acc[K] = hn::MulAdd(load_tail(a + static_cast<std::int64_t>(K) * in + c, in - c), v, acc[K])), ...);
  }
  ((hidden[K] = hn::GetLane(hn::SumOfLanes(DF(), acc[K]))), ...);
}

void down(const float* x, const float* a, std::int64_t in, std::int64_t rank, float* hidden) {
  std::int64_t k = 0;
  for (; k + 8 <= rank; k += 8) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<8>());
  for (; k < rank; ++k) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<1>());
}

// kCount vectors of outputs from `o` on. Every output sums over k in the same order, wherever the split puts it.
template <std::size_t... J>
HWY_INLINE void up_vectors(const float* hidden, const float* b_t, std::int64_t out, std::int64_t rank, VF scale,
                           std::int64_t o, float* y, std::index_sequence<J...>) {
  VF acc[] = {(static_cast<void>(J), hn::Zero(DF()))...};
  const float* b = b_t + o;
  for (std::int64_t k = 0; k < rank; ++k, b += out) {
    const VF h = hn::Set(DF(), hidden[k]);
    ((acc[J] = hn::MulAdd(h, hn::LoadU(DF(), b + static_cast<std::int64_t>(J) * kLanes), acc[J])), ...);
  }
  float* to = y + o;
  (hn::StoreU(hn::MulAdd(scale, acc[J], hn::LoadU(DF(), to + static_cast<std::int64_t>(J) * kLanes)), DF(),
              to + static_cast<std::int64_t>(J) * kLanes),
   ...);
}

void up(const float* hidden, const float* b_t, std::int64_t out, std::int64_t rank, float scale, std::int64_t begin,
        std::int64_t end, float* y) {
  const VF s = hn::Set(DF(), scale);
  std::int64_t o = begin;
  for (; o + 4 * kLanes <= end; o += 4 * kLanes) {
    up_vectors(hidden, b_t, out, rank, s, o, y, std::make_index_sequence<4>());
  }
  for (; o + kLanes <= end; o += kLanes) up_vectors(hidden, b_t, out, rank, s, o, y, std::make_index_sequence<1>());
  if (o == end) return;
  VF acc = hn::Zero(DF());
  for (std::int64_t k = 0; k < rank; ++k) {
    acc = hn::MulAdd(hn::Set(DF(), hidden[k]), load_tail(b_t + k * out + o, end - o), acc);
  }
  store_tail(hn::MulAdd(s, acc, load_tail(y + o, end - o)), end - o, y + o);
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(down);
HWY_EXPORT(up);

void lora_down(const float* x, const float* a, std::int64_t in, std::int64_t rank, float* hidden) {
  HWY_DYNAMIC_DISPATCH(down)(x, a, in, rank, hidden);
}

void lora_up(const float* hidden, const float* b_t, std::int64_t out, std::int64_t rank, float scale,
             std::int64_t out_begin, std::int64_t out_end, float* y) {
  HWY_DYNAMIC_DISPATCH(up)(hidden, b_t, out, rank, scale, out_begin, out_end, y);
}

void lora_transpose_b(const float* b, std::int64_t out, std::int64_t rank, float* b_t) {
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t k = 0; k < rank; ++k) b_t[k * out + o] = b[o * rank + k];
  }
}

}  // namespace sluice
#endif
