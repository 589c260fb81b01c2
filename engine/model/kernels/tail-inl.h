// SPDX-License-Identifier: GPL-3.0-or-later
// The last, partly filled vector of a row of floats. Through a buffer: Highway's masked loads and stores touch memory
// outside the mask on instruction sets without masks. Included after <hwy/highway.h>, inside no namespace.
#if defined(SLUICE_TAIL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_TAIL_INL_H
#undef SLUICE_TAIL_INL_H
#else
#define SLUICE_TAIL_INL_H
#endif

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

using TailTag = hwy::HWY_NAMESPACE::ScalableTag<float>;

// n values, fewer than a vector holds; zero behind them.
HWY_INLINE hwy::HWY_NAMESPACE::Vec<TailTag> load_tail(const float* x, std::int64_t n) {
  alignas(64) float buffer[hwy::HWY_NAMESPACE::MaxLanes(TailTag())] = {};
  std::memcpy(buffer, x, static_cast<std::size_t>(n) * sizeof(float));
  return hwy::HWY_NAMESPACE::Load(TailTag(), buffer);
}

// The first n values of v.
HWY_INLINE void store_tail(hwy::HWY_NAMESPACE::Vec<TailTag> v, std::int64_t n, float* x) {
  alignas(64) float buffer[hwy::HWY_NAMESPACE::MaxLanes(TailTag())];
  hwy::HWY_NAMESPACE::Store(v, TailTag(), buffer);
  std::memcpy(x, buffer, static_cast<std::size_t>(n) * sizeof(float));
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_TAIL_INL_H
