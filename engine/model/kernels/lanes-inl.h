// SPDX-License-Identifier: GPL-3.0-or-later
// Vector types of the decode kernels, once per instruction set. Included after <hwy/highway.h>, inside no namespace.
#if defined(SLUICE_LANES_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_LANES_INL_H
#undef SLUICE_LANES_INL_H
#else
#define SLUICE_LANES_INL_H
#endif

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
constexpr std::int64_t kBlocksPerVector = 1;
#else
using DF = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<DF>;
using DU = hn::RebindToUnsigned<DF>;
using DW = hn::Repartition<std::int16_t, DF>;  // words: what is multiplied
using DUW = hn::RebindToUnsigned<DW>;
using DH = hn::Rebind<std::uint16_t, DF>;  // halves, as many as there are floats
using VF = hn::Vec<DF>;
using VI = hn::Vec<DI>;
using VW = hn::Vec<DW>;

constexpr std::int64_t kLanes = hn::MaxLanes(DF());
// A block's 32 words fill four groups of four 32-bit lanes, so a vector holds 1, 2 or 4 blocks.
constexpr std::int64_t kBlocksPerVector = kLanes / 4;
static_assert(kBlocksPerVector == 1 || kBlocksPerVector == 2 || kBlocksPerVector == 4);

// The IEEE halves in the low 16 bits of each lane. The generic way is half_to_float's (blocks.h).
HWY_INLINE VF low_halves_to_floats(hn::Vec<DU> bits) {
#if HWY_TARGET <= HWY_AVX2
  return hn::PromoteTo(DF(), hn::BitCast(hn::Rebind<hwy::float16_t, DF>(), hn::TruncateTo(DH(), bits)));
#else
  const auto magnitude = hn::And(bits, hn::Set(DU(), 0x7fffu));
  const auto scaled = hn::Mul(hn::BitCast(DF(), hn::ShiftLeft<13>(magnitude)), hn::Set(DF(), 0x1p112f));
  const auto special = hn::BitCast(DI(), magnitude) > hn::Set(DI(), 0x7bff);
  const auto ones = hn::IfThenElseZero(hn::RebindMask(DU(), special), hn::Set(DU(), 0x7f800000u));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(DU(), 0x8000u)));
  return hn::BitCast(DF(), hn::Or(hn::Or(hn::BitCast(DU(), scaled), ones), sign));
#endif
}

// kBlocksPerVector floats, repeated over the lanes: lane i gets at[i % kBlocksPerVector].
HWY_INLINE VF repeat_per_block(const float* at) {
#if HWY_MAX_BYTES >= 64
  return hn::LoadDup128(DF(), at);
#elif HWY_MAX_BYTES == 32
  double pair;
  std::memcpy(&pair, at, sizeof pair);
  return hn::BitCast(DF(), hn::Set(hn::Repartition<double, DF>(), pair));
#else
  return hn::Set(DF(), *at);
#endif
}
#endif

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_LANES_INL_H
