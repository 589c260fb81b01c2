// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <algorithm>
#include <cmath>
#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/lora.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
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

// Rows of a group as many as there are indices, from the first that `a` points at: x is read once for all of them.
// panel: words from a panel of the group to the next.
template <std::size_t... K>
HWY_INLINE void down_rows(const float* x, const std::int16_t* a, std::int64_t panels, std::int64_t panel, float* hidden,
                          std::index_sequence<K...>) {
  VF acc[] = {(static_cast<void>(K), hn::Zero(DF()))...};
  for (std::int64_t p = 0; p < panels; ++p, a += panel, x += kLoraPanel) {
    for (std::int64_t c = 0; c < kLoraPanel; c += kLanes) {
      const VF v = hn::LoadU(DF(), x + c);
      ((acc[K] = hn::MulAdd(load_words(a + static_cast<std::int64_t>(K) * kLoraPanel + c), v, acc[K])), ...);
    }
  }
  ((hidden[K] = hn::GetLane(hn::SumOfLanes(DF(), acc[K]))), ...);
}

void down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, std::int64_t group, float* hidden) {
  const std::int64_t first = group * kLoraGroup, n = std::min(kLoraGroup, rank - first), panels = lora_padded(in) / kLoraPanel;
  a += first * panels * kLoraPanel;
  if (n == kLoraGroup) return down_rows(x, a, panels, n * kLoraPanel, hidden + first, std::make_index_sequence<kLoraGroup>());
  for (std::int64_t k = 0; k < n; ++k) {
    down_rows(x, a + k * kLoraPanel, panels, n * kLoraPanel, hidden + first + k, std::make_index_sequence<1>());
  }
}

// One panel: y += scale * sum over k. Every output sums over k in the same order, wherever the split puts it.
template <std::size_t... J>
HWY_INLINE void up_panel(const float* hidden, const std::int16_t* b, std::int64_t rank, VF scale, float* y,
                         std::index_sequence<J...>) {
  VF acc[] = {(static_cast<void>(J), hn::Zero(DF()))...};
  for (std::int64_t k = 0; k < rank; ++k, b += kLoraPanel) {
    const VF h = hn::Set(DF(), hidden[k]);
    ((acc[J] = hn::MulAdd(h, load_words(b + static_cast<std::int64_t>(J) * kLanes), acc[J])), ...);
  }
  (hn::StoreU(hn::MulAdd(scale, acc[J], hn::LoadU(DF(), y + static_cast<std::int64_t>(J) * kLanes)), DF(),
              y + static_cast<std::int64_t>(J) * kLanes),
   ...);
}

void up(const float* hidden, const std::int16_t* b, std::int64_t rank, float scale, std::int64_t begin, std::int64_t end, float* y) {
  constexpr auto kVectors = std::make_index_sequence<kLoraPanel / kLanes>();
  const VF s = hn::Set(DF(), scale);
  for (std::int64_t o = begin / kLoraPanel * kLoraPanel; o < end; o += kLoraPanel) {
    const std::int64_t from = std::max(o, begin), to = std::min(o + kLoraPanel, end);
    if (to - from == kLoraPanel) {
      up_panel(hidden, b + o * rank, rank, s, y + o, kVectors);
      continue;
    }
    float some[kLoraPanel] = {};
    std::copy(y + from, y + to, some + (from - o));
    up_panel(hidden, b + o * rank, rank, s, some, kVectors);
    std::copy(some + (from - o), some + (to - o), y + from);
  }
}

void panel_to_floats(const std::int16_t* x, float* out) {
  for (std::int64_t i = 0; i < kLoraPanel; i += kLanes) hn::StoreU(load_words(x + i), DF(), out + i);
}

// [panel][row][kLoraPanel] -> [row, cols], the rows `cols` apart.
void to_floats(const std::int16_t* x, std::int64_t rows, std::int64_t cols, float* out) {
  for (std::int64_t c = 0; c < cols; c += kLoraPanel) {
    for (std::int64_t r = 0; r < rows; ++r, x += kLoraPanel) {
      float* to = out + r * cols + c;
      if (cols - c >= kLoraPanel) {
        panel_to_floats(x, to);
      } else {
        for (std::int64_t i = 0; i < cols - c; ++i) to[i] = static_cast<float>(x[i]);
      }
    }
  }
}

float largest_of(const float* x, std::int64_t n) {
  VF most = hn::Zero(DF());
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) most = hn::Max(most, hn::Abs(hn::LoadU(DF(), x + i)));
  float largest = hn::GetLane(hn::MaxOfLanes(DF(), most));
  for (; i < n; ++i) largest = std::max(largest, std::fabs(x[i]));
  return largest;
}

// In f64: a product in f32 would be off by more than half a word.
void to_words(const float* x, std::int64_t n, double inverse, std::int16_t* out) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const hn::Rebind<std::int32_t, decltype(d)> di;
  const hn::Rebind<std::int16_t, decltype(d)> dw;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto scale = hn::Set(d, inverse), most = hn::Set(d, 32767.0), least = hn::Set(d, -32767.0);
  const auto words = [&](const float* from) {
    const auto scaled = hn::Mul(hn::PromoteTo(d, hn::LoadU(df, from)), scale);
    return hn::DemoteTo(dw, hn::DemoteTo(di, hn::Round(hn::Min(hn::Max(scaled, least), most))));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(words(x + i), dw, out + i);
  if (i == n) return;
  float rest[hn::MaxLanes(df)] = {};
  std::int16_t last[hn::MaxLanes(dw)];
  std::copy(x + i, x + n, rest);
  hn::StoreU(words(rest), dw, last);
  std::copy(last, last + (n - i), out + i);
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(down);
HWY_EXPORT(up);
HWY_EXPORT(to_floats);
HWY_EXPORT(largest_of);
HWY_EXPORT(to_words);

void lora_down(const float* x, const std::int16_t* a, std::int64_t in, std::int64_t rank, std::int64_t group, float* hidden) {
  HWY_DYNAMIC_DISPATCH(down)(x, a, in, rank, group, hidden);
}

void lora_up(const float* hidden, const std::int16_t* b, std::int64_t rank, float scale, std::int64_t out_begin,
             std::int64_t out_end, float* y) {
  HWY_DYNAMIC_DISPATCH(up)(hidden, b, rank, scale, out_begin, out_end, y);
}

void lora_pack_a(const std::int16_t* rows, std::int64_t in, std::int64_t n, std::int64_t rank, std::int64_t first, std::int16_t* a) {
  for (std::int64_t r = 0; r < n; ++r) {
    const std::int64_t group = (first + r) / kLoraGroup * kLoraGroup, in_group = std::min(kLoraGroup, rank - group);
    std::int16_t* to = a + group * lora_padded(in) + (first + r - group) * kLoraPanel;
    for (std::int64_t c = 0; c < in; c += kLoraPanel, to += in_group * kLoraPanel) {
      std::copy_n(rows + r * in + c, std::min(kLoraPanel, in - c), to);
    }
  }
}

void lora_pack_b(const std::int16_t* b, std::int64_t out, std::int64_t rank, std::int16_t* packed) {
  for (std::int64_t o = 0; o < out; o += kLoraPanel, packed += kLoraPanel * rank, b += kLoraPanel * rank) {
    const std::int64_t n = std::min(kLoraPanel, out - o);
    for (std::int64_t k = 0; k < rank; ++k) {
      for (std::int64_t i = 0; i < n; ++i) packed[k * kLoraPanel + i] = b[i * rank + k];
    }
  }
}

void lora_unpack_a(const std::int16_t* a, std::int64_t in, std::int64_t rank, float* rows) {
  for (std::int64_t k = 0; k < rank; k += kLoraGroup) {
    HWY_DYNAMIC_DISPATCH(to_floats)(a + k * lora_padded(in), std::min(kLoraGroup, rank - k), in, rows + k * in);
  }
}

void lora_unpack_b(const std::int16_t* packed, std::int64_t out, std::int64_t rank, float* b_t) {
  HWY_DYNAMIC_DISPATCH(to_floats)(packed, rank, out, b_t);
}

float lora_to_words(const float* x, std::int64_t n, std::int16_t* out) {
  const float scale = HWY_DYNAMIC_DISPATCH(largest_of)(x, n) / 32767;
  const double inverse = scale > 0 ? 1.0 / static_cast<double>(scale) : 0;  // also where f32 has no inverse
  HWY_DYNAMIC_DISPATCH(to_words)(x, n, inverse, out);
  return scale;
}

}  // namespace sluice
#endif
