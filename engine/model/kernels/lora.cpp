// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <utility>

#include "model/kernels/blocks.h"

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
HWY_INLINE VF load_halves(const std::uint16_t* at) { return hn::Set(DF(), half_to_float(*at)); }
#else
HWY_INLINE VF load_halves(const std::uint16_t* at) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::LoadU(DH(), at)));
#else
  return low_halves_to_floats(hn::PromoteTo(DU(), hn::LoadU(DH(), at)));
#endif
}
#endif

// The first n halves, n < kLanes; zeros behind.
HWY_INLINE VF load_half_tail(const std::uint16_t* at, std::int64_t n) {
  std::uint16_t some[kLanes] = {};
  std::memcpy(some, at, static_cast<std::size_t>(n) * sizeof *at);
  return load_halves(some);
}

HWY_INLINE VF load_float_tail(const float* at, std::int64_t n) {
  float some[kLanes] = {};
  std::memcpy(some, at, static_cast<std::size_t>(n) * sizeof *at);
  return hn::LoadU(DF(), some);
}

// Rows of A as many as there are indices: x is read once for all of them.
template <std::size_t... K>
HWY_INLINE void down_rows(const float* x, const std::uint16_t* a, std::int64_t in, float* hidden, std::index_sequence<K...>) {
  VF acc[] = {(static_cast<void>(K), hn::Zero(DF()))...};
  std::int64_t c = 0;
  for (; c + kLanes <= in; c += kLanes) {
    const VF v = hn::LoadU(DF(), x + c);
    ((acc[K] = hn::MulAdd(load_halves(a + static_cast<std::int64_t>(K) * in + c), v, acc[K])), ...);
  }
  if (c < in) {
    const VF v = load_float_tail(x + c, in - c);
    ((acc[K] = hn::MulAdd(load_half_tail(a + static_cast<std::int64_t>(K) * in + c, in - c), v, acc[K])), ...);
  }
  ((hidden[K] = hn::GetLane(hn::SumOfLanes(DF(), acc[K]))), ...);
}

void down(const float* x, const std::uint16_t* a, std::int64_t in, std::int64_t rank, float* hidden) {
  std::int64_t k = 0;
  for (; k + 8 <= rank; k += 8) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<8>());
  for (; k < rank; ++k) down_rows(x, a + k * in, in, hidden + k, std::make_index_sequence<1>());
}

// kCount vectors of outputs from `o` on. Every output sums over k in the same order, wherever the split puts it.
template <std::size_t... J>
HWY_INLINE void up_vectors(const float* hidden, const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, VF scale,
                           std::int64_t o, float* y, std::index_sequence<J...>) {
  VF acc[] = {(static_cast<void>(J), hn::Zero(DF()))...};
  const std::uint16_t* b = b_t + o;
  for (std::int64_t k = 0; k < rank; ++k, b += out) {
    const VF h = hn::Set(DF(), hidden[k]);
    ((acc[J] = hn::MulAdd(h, load_halves(b + static_cast<std::int64_t>(J) * kLanes), acc[J])), ...);
  }
  float* to = y + o;
  (hn::StoreU(hn::MulAdd(scale, acc[J], hn::LoadU(DF(), to + static_cast<std::int64_t>(J) * kLanes)), DF(),
              to + static_cast<std::int64_t>(J) * kLanes),
   ...);
}

void up(const float* hidden, const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, float scale, std::int64_t begin,
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
    acc = hn::MulAdd(hn::Set(DF(), hidden[k]), load_half_tail(b_t + k * out + o, end - o), acc);
  }
  float some[kLanes];
  hn::StoreU(hn::MulAdd(s, acc, load_float_tail(y + o, end - o)), DF(), some);
  std::copy_n(some, end - o, y + o);
}

void to_floats(const std::uint16_t* x, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(load_halves(x + i), DF(), out + i);
  for (; i < n; ++i) out[i] = half_to_float(x[i]);
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(down);
HWY_EXPORT(up);
HWY_EXPORT(to_floats);

namespace {

// Round to nearest, ties to even; |x| below 65520.
std::uint16_t to_half(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
  const float magnitude = std::fabs(x);
  if (magnitude < 0x1p-14f) {  // subnormal: adding 0.5 leaves the last bit at 2^-24, where halves have theirs
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(magnitude + 0.5f) - 0x3f000000u));
  }
  const std::uint32_t m = bits & 0x7fffffffu;
  return static_cast<std::uint16_t>(sign | (m - (112u << 23) + 0xfffu + (m >> 13 & 1u)) >> 13);
}

}  // namespace

void lora_down(const float* x, const std::uint16_t* a, std::int64_t in, std::int64_t rank, float* hidden) {
  HWY_DYNAMIC_DISPATCH(down)(x, a, in, rank, hidden);
}

void lora_up(const float* hidden, const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, float scale,
             std::int64_t out_begin, std::int64_t out_end, float* y) {
  HWY_DYNAMIC_DISPATCH(up)(hidden, b_t, out, rank, scale, out_begin, out_end, y);
}

void lora_prefetch_up(const std::uint16_t* b_t, std::int64_t out, std::int64_t rank, std::int64_t out_begin,
                      std::int64_t out_end) {
  constexpr std::int64_t kLine = 32;  // halves
  for (std::int64_t k = 0; k < rank; ++k) {
    const std::uint16_t* row = b_t + k * out;
    for (std::int64_t o = out_begin; o < out_end; o += kLine) hwy::Prefetch(row + o);
  }
}

float lora_to_halves(const float* x, std::int64_t n, std::uint16_t* out) {
  float largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  // To [2^14, 2^15): no overflow in rounding, and 2^-38 of the largest is still above zero. Both powers stay finite.
  const int exponent = largest > 0 ? std::clamp(14 - std::ilogb(largest), -100, 100) : 0;
  const float power = std::ldexp(1.0f, exponent);
  for (std::int64_t i = 0; i < n; ++i) out[i] = to_half(x[i] * power);
  return std::ldexp(1.0f, -exponent);
}

void lora_to_floats(const std::uint16_t* x, std::int64_t n, float* out) { HWY_DYNAMIC_DISPATCH(to_floats)(x, n, out); }

void lora_transpose_b(const float* b, std::int64_t out, std::int64_t rank, float* b_t) {
  for (std::int64_t o = 0; o < out; ++o) {
    for (std::int64_t k = 0; k < rank; ++k) b_t[k * out + o] = b[o * rank + k];
  }
}

}  // namespace sluice
#endif
