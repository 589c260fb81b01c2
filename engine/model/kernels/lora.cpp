// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>


#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/lora.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include "model/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = 1;
HWY_INLINE VF load_words(const std::int16_t* at) { return hn::Set(DF(), static_cast<float>(*at)); }
#else
HWY_INLINE VF load_words(const std::int16_t* at) {
  return hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(hn::Rebind<std::int16_t, DF>(), at)));
}
#endif

// The first n words, n < kLanes; zeros behind.
HWY_INLINE VF load_word_tail(const std::int16_t* at, std::int64_t n) {
  std::int16_t some[kLanes] = {};
  std::memcpy(some, at, static_cast<std::size_t>(n) * sizeof *at);
  return load_words(some);
}

HWY_INLINE VF load_float_tail(const float* at, std::int64_t n) {
  float some[kLanes] = {};
  std::memcpy(some, at, static_cast<std::size_t>(n) * sizeof *at);
  return hn::LoadU(DF(), some);
}

// Rows of A as many as there are indices: x is read once for all of them.
template <std::size_t... K>
HWY_INLINE void down_rows(const float* x, const std::int16_t* a, std::int64_t in, float* hidden, std::index_sequence<K...>) {
  VF acc[] = {(static_cast<void>(K), hn::Zero(DF()))...};
  std::int64_t c = 0;
  for (; c + kLanes <= in; c += kLanes) {
    const VF v = hn::LoadU(DF(), x + c);
    ((acc[K] = hn::MulAdd(load_words(a + static_cast<std::int64_t>(K) * in + c), v, acc[K])), ...);
  }
  if (c < in) {
    const VF v = load_float_tail(x + c, in - c);
    ((acc[K] = hn::MulAdd(load_word_tail(a + static_cast<std::int64_t>(K) * in + c, in - c), v, acc[K])), ...);
  }
  ((hidden[K] = hn::GetLane(hn::SumOfLanes(DF(), acc[K]))), ...);
}

void down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, float* hidden) {
  std::int64_t k = 0;
  for (; k + 8 <= rank; k += 8) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<8>());
  for (; k < rank; ++k) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<1>());
}

// kCount vectors of outputs from `o` on. Every output sums over k in the same order, wherever the split puts it.
template <std::size_t... J>
HWY_INLINE void up_vectors(const float* hidden, const std::int16_t* b_t, std::int64_t out, std::int64_t rank, VF scale,
                           std::int64_t o, float* y, std::index_sequence<J...>) {
  VF acc[] = {(static_cast<void>(J), hn::Zero(DF()))...};
  const std::int16_t* b = b_t + o;
  for (std::int64_t k = 0; k < rank; ++k, b += out) {
    const VF h = hn::Set(DF(), hidden[k]);
    ((acc[J] = hn::MulAdd(h, load_words(b + static_cast<std::int64_t>(J) * kLanes), acc[J])), ...);
  }
  float* to = y + o;
  (hn::StoreU(hn::MulAdd(scale, acc[J], hn::LoadU(DF(), to + static_cast<std::int64_t>(J) * kLanes)), DF(),
              to + static_cast<std::int64_t>(J) * kLanes),
   ...);
}

void up(const float* hidden, const std::int16_t* b_t, std::int64_t out, std::int64_t rank, float scale, std::int64_t begin,
        std::int64_t end, float* y) {
  const VF s = hn::Set(DF(), scale);
  std::int64_t o = begin;
  for (; o + 8 * kLanes <= end; o += 8 * kLanes) {
    up_vectors(hidden, b_t, out, rank, s, o, y, std::make_index_sequence<8>());
  }
  for (; o + kLanes <= end; o += kLanes) up_vectors(hidden, b_t, out, rank, s, o, y, std::make_index_sequence<1>());
  if (o == end) return;
  VF acc = hn::Zero(DF());
  for (std::int64_t k = 0; k < rank; ++k) {
    acc = hn::MulAdd(hn::Set(DF(), hidden[k]), load_word_tail(b_t + k * out + o, end - o), acc);
  }
  float some[kLanes];
  hn::StoreU(hn::MulAdd(s, acc, load_float_tail(y + o, end - o)), DF(), some);
  std::copy_n(some, end - o, y + o);
}

void to_floats(const std::int16_t* x, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(load_words(x + i), DF(), out + i);
  for (; i < n; ++i) out[i] = static_cast<float>(x[i]);
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(down);
HWY_EXPORT(up);
HWY_EXPORT(to_floats);

void lora_down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, float* hidden) {
  HWY_DYNAMIC_DISPATCH(down)(x, a, in, rank, hidden);
}

void lora_up(const float* hidden, const std::int16_t* b_t, std::int64_t out, std::int64_t rank, float scale,
             std::int64_t out_begin, std::int64_t out_end, float* y) {
  HWY_DYNAMIC_DISPATCH(up)(hidden, b_t, out, rank, scale, out_begin, out_end, y);
}

void lora_prefetch_up(const std::int16_t* b_t, std::int64_t out, std::int64_t rank, std::int64_t out_begin,
                      std::int64_t out_end) {
  constexpr std::int64_t kLine = 32;  // words
  for (std::int64_t k = 0; k < rank; ++k) {
    const std::int16_t* row = b_t + k * out;
    for (std::int64_t o = out_begin; o < out_end; o += kLine) hwy::Prefetch(row + o);
  }
}

float lora_to_words(const float* x, std::int64_t n, std::int16_t* out) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  const float scale = largest / 32767;
  const double inverse = scale > 0 ? 1.0 / static_cast<double>(scale) : 0;  // also where f32 has no inverse
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<std::int16_t>(std::clamp(std::lrint(static_cast<double>(x[i]) * inverse), -32767L, 32767L));
  }
  return scale;
}

void lora_to_floats(const std::int16_t* x, std::int64_t n, float* out) { HWY_DYNAMIC_DISPATCH(to_floats)(x, n, out); }

void lora_transpose_b(const float* b, std::int64_t out, std::int64_t rank, float* b_t) {
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t k = 0; k < rank; ++k) b_t[k * out + o] = b[o * rank + k];
  }
}

}  // namespace sluice
#endif
