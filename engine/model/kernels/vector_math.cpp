// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/vector_math.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/vector_math.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include <hwy/contrib/math/math-inl.h>

#include "model/kernels/tail-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());

HWY_INLINE auto first_lanes(std::int64_t n) { return hn::FirstN(DF(), static_cast<std::size_t>(n)); }

float dot(const float* a, const float* b, std::int64_t n) {
  VF s0 = hn::Zero(DF()), s1 = s0, s2 = s0, s3 = s0;
  std::int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    s0 = hn::MulAdd(hn::LoadU(DF(), a + i), hn::LoadU(DF(), b + i), s0);
    s1 = hn::MulAdd(hn::LoadU(DF(), a + i + kLanes), hn::LoadU(DF(), b + i + kLanes), s1);
    s2 = hn::MulAdd(hn::LoadU(DF(), a + i + 2 * kLanes), hn::LoadU(DF(), b + i + 2 * kLanes), s2);
    s3 = hn::MulAdd(hn::LoadU(DF(), a + i + 3 * kLanes), hn::LoadU(DF(), b + i + 3 * kLanes), s3);
  }
  for (; i + kLanes <= n; i += kLanes) s0 = hn::MulAdd(hn::LoadU(DF(), a + i), hn::LoadU(DF(), b + i), s0);
  if (i < n) s1 = hn::MulAdd(load_tail(a + i, n - i), load_tail(b + i, n - i), s1);
  return hn::GetLane(hn::SumOfLanes(DF(), hn::Add(hn::Add(s0, s1), hn::Add(s2, s3))));
}

void axpy(float a, const float* x, std::int64_t n, float* y) {
  const VF va = hn::Set(DF(), a);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::MulAdd(va, hn::LoadU(DF(), x + i), hn::LoadU(DF(), y + i)), DF(), y + i);
  }
  if (i < n) store_tail(hn::MulAdd(va, load_tail(x + i, n - i), load_tail(y + i, n - i)), n - i, y + i);
}

void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  const float factor = 1.0f / std::sqrt(dot(x, x, n) / static_cast<float>(n) + eps);
  const VF f = hn::Set(DF(), factor);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(hn::Mul(hn::Mul(hn::LoadU(DF(), x + i), f), hn::LoadU(DF(), weight + i)), DF(), out + i);
  }
  if (i < n) store_tail(hn::Mul(hn::Mul(load_tail(x + i, n - i), f), load_tail(weight + i, n - i)), n - i, out + i);
}

HWY_INLINE VF silu_times(VF gate, VF up) {
  // exp is defined up to 104; at 88 the quotient is zero for every purpose.
  const VF e = hn::Exp(DF(), hn::Min(hn::Neg(gate), hn::Set(DF(), 88.0f)));
  return hn::Mul(hn::Div(gate, hn::Add(hn::Set(DF(), 1.0f), e)), up);
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(silu_times(hn::LoadU(DF(), gate + i), hn::LoadU(DF(), up + i)), DF(), out + i);
  }
  if (i < n) store_tail(silu_times(load_tail(gate + i, n - i), load_tail(up + i, n - i)), n - i, out + i);
}

// Largest value; NaN compares false and so loses.
float largest(const float* x, std::int64_t n) {
  VF most = hn::Set(DF(), -std::numeric_limits<float>::infinity());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VF v = hn::LoadU(DF(), x + i);
    most = hn::IfThenElse(hn::Gt(v, most), v, most);
  }
  float result = hn::GetLane(hn::MaxOfLanes(DF(), most));
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

void softmax(float* x, std::int64_t n) {
  const VF most = hn::Set(DF(), largest(x, n));
  VF total = hn::Zero(DF());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const VF e = hn::Exp(DF(), hn::Sub(hn::LoadU(DF(), x + i), most));
    hn::StoreU(e, DF(), x + i);
    total = hn::Add(total, e);
  }
  if (i < n) {
    const VF e = hn::IfThenElseZero(first_lanes(n - i), hn::Exp(DF(), hn::Sub(load_tail(x + i, n - i), most)));
    store_tail(e, n - i, x + i);
    total = hn::Add(total, e);
  }
  const VF inverse = hn::Set(DF(), 1.0f / hn::GetLane(hn::SumOfLanes(DF(), total)));
  for (i = 0; i + kLanes <= n; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(DF(), x + i), inverse), DF(), x + i);
  if (i < n) store_tail(hn::Mul(load_tail(x + i, n - i), inverse), n - i, x + i);
}

float log_sum_exp(const float* x, std::int64_t n, float scale) {
  const float most = largest(x, n) * scale;
  const VF shift = hn::Set(DF(), most), factor = hn::Set(DF(), scale);
  constexpr std::int64_t kPart = 1024;  // f32 sums stay short; they are added up in double
  double total = 0;
  for (std::int64_t begin = 0; begin < n; begin += kPart) {
    const std::int64_t end = std::min(begin + kPart, n);
    VF part = hn::Zero(DF());
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      part = hn::Add(part, hn::Exp(DF(), hn::Sub(hn::Mul(hn::LoadU(DF(), x + i), factor), shift)));
    }
    if (i < end) {
      const VF e = hn::Exp(DF(), hn::Sub(hn::Mul(load_tail(x + i, end - i), factor), shift));
      part = hn::Add(part, hn::IfThenElseZero(first_lanes(end - i), e));
    }
    total += hn::GetLane(hn::SumOfLanes(DF(), part));
  }
  return static_cast<float>(most + std::log(total));
}

ExpSums exp_sums(const float* x, std::int64_t n, float scale) {
  ExpSums out;
  out.largest = largest(x, n);
  const VF most = hn::Set(DF(), out.largest), factor = hn::Set(DF(), scale);
  constexpr std::int64_t kPart = 1024;  // as above
  for (std::int64_t begin = 0; begin < n; begin += kPart) {
    const std::int64_t end = std::min(begin + kPart, n);
    VF sum = hn::Zero(DF()), weighted = sum;
    std::int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      const VF u = hn::Mul(hn::Sub(hn::LoadU(DF(), x + i), most), factor);
      const VF e = hn::Exp(DF(), u);
      sum = hn::Add(sum, e);
      weighted = hn::MulAdd(u, e, weighted);
    }
    if (i < end) {
      const VF u = hn::Mul(hn::Sub(load_tail(x + i, end - i), most), factor);
      const VF e = hn::IfThenElseZero(first_lanes(end - i), hn::Exp(DF(), u));
      sum = hn::Add(sum, e);
      weighted = hn::MulAdd(u, e, weighted);
    }
    out.sum += static_cast<double>(hn::GetLane(hn::SumOfLanes(DF(), sum)));
    out.weighted += static_cast<double>(hn::GetLane(hn::SumOfLanes(DF(), weighted)));
  }
  return out;
}

void exp_gradient(const ExpGradient& g, std::int64_t n, float* x) {
  const VF scale = hn::Set(DF(), g.scale), log_z = hn::Set(DF(), g.log_z), a = hn::Set(DF(), g.a), b = hn::Set(DF(), g.b);
  const VF offset = hn::Set(DF(), g.offset);
  const auto gradient = [&](VF v) HWY_ATTR {
    const VF u = hn::Mul(v, scale);
    const VF p = hn::Exp(DF(), hn::Sub(u, log_z));
    return hn::Neg(hn::Mul(p, hn::MulAdd(b, hn::Add(u, offset), a)));
  };
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(gradient(hn::LoadU(DF(), x + i)), DF(), x + i);
  if (i < n) store_tail(gradient(load_tail(x + i, n - i)), n - i, x + i);
}

std::int64_t arg_max(const float* x, std::int64_t n) {
  const float most = largest(x, n);
  std::int64_t i = 0;
  const VF wanted = hn::Set(DF(), most);
  for (; i + kLanes <= n; i += kLanes) {
    const auto at = hn::FindFirstTrue(DF(), hn::Eq(hn::LoadU(DF(), x + i), wanted));
    if (at >= 0) return i + at;
  }
  for (; i < n; ++i) {
    if (x[i] == most) return i;
  }
  return 0;  // nothing but NaN
}

// The rotation of pairs (a, b) by the angles whose cosines and sines are given.
using DR = hn::CappedTag<float, 4>;  // half a head is a multiple of 4
constexpr std::int64_t kPairs = hn::MaxLanes(DR());

void rotary_interleaved(float* head, const float* cos_sin, std::int64_t head_size) {
  for (std::int64_t i = 0; i < head_size / 2; i += kPairs) {
    hn::Vec<DR> a, b;
    hn::LoadInterleaved2(DR(), head + 2 * i, a, b);
    const auto c = hn::LoadU(DR(), cos_sin + i), s = hn::LoadU(DR(), cos_sin + head_size / 2 + i);
    hn::StoreInterleaved2(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), hn::Add(hn::Mul(a, s), hn::Mul(b, c)), DR(),
                          head + 2 * i);
  }
}

void rotary_split(float* head, const float* cos_sin, std::int64_t head_size) {
  float* second = head + head_size / 2;
  for (std::int64_t i = 0; i < head_size / 2; i += kPairs) {
    const auto a = hn::LoadU(DR(), head + i), b = hn::LoadU(DR(), second + i);
    const auto c = hn::LoadU(DR(), cos_sin + i), s = hn::LoadU(DR(), cos_sin + head_size / 2 + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), DR(), head + i);
    hn::StoreU(hn::Add(hn::Mul(a, s), hn::Mul(b, c)), DR(), second + i);
  }
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(dot);
HWY_EXPORT(axpy);
HWY_EXPORT(rms_norm);
HWY_EXPORT(silu_mul);
HWY_EXPORT(softmax);
HWY_EXPORT(log_sum_exp);
HWY_EXPORT(exp_sums);
HWY_EXPORT(exp_gradient);
HWY_EXPORT(arg_max);
HWY_EXPORT(rotary_interleaved);
HWY_EXPORT(rotary_split);

void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  HWY_DYNAMIC_DISPATCH(rms_norm)(x, weight, n, eps, out);
}
void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(silu_mul)(gate, up, n, out);
}
void softmax(float* x, std::int64_t n) {
  assert(n > 0);
  HWY_DYNAMIC_DISPATCH(softmax)(x, n);
}
float log_sum_exp(const float* x, std::int64_t n, float scale) {
  assert(n > 0 && scale > 0);
  return HWY_DYNAMIC_DISPATCH(log_sum_exp)(x, n, scale);
}
ExpSums exp_sums(const float* x, std::int64_t n, float scale) {
  assert(n > 0 && scale > 0);
  return HWY_DYNAMIC_DISPATCH(exp_sums)(x, n, scale);
}
void exp_gradient(const ExpGradient& g, std::int64_t n, float* x) { HWY_DYNAMIC_DISPATCH(exp_gradient)(g, n, x); }
std::int64_t arg_max(const float* x, std::int64_t n) {
  assert(n > 0);
  return HWY_DYNAMIC_DISPATCH(arg_max)(x, n);
}
float dot(const float* a, const float* b, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(dot)(a, b, n); }
void axpy(float a, const float* x, std::int64_t n, float* y) { HWY_DYNAMIC_DISPATCH(axpy)(a, x, n, y); }
void add_in_place(const float* x, std::int64_t n, float* y) { axpy(1.0f, x, n, y); }
void rotary_interleaved(float* head, const float* cos_sin, std::int64_t head_size) {
  assert(head_size % 8 == 0);
  HWY_DYNAMIC_DISPATCH(rotary_interleaved)(head, cos_sin, head_size);
}
void rotary_split(float* head, const float* cos_sin, std::int64_t head_size) {
  assert(head_size % 8 == 0);
  HWY_DYNAMIC_DISPATCH(rotary_split)(head, cos_sin, head_size);
}

}  // namespace sluice
#endif
