// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/dequant.h"

#include <cassert>
#include <cstring>

#include "model/kernels/blocks.h"
#include "model/kernels/reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "model/kernels/dequant.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
// The target without vectors lacks 16-byte operations; plain loops serve it.
void dequantize_any(BlockType type, const std::byte* bytes, std::int64_t n, float* out) {
  reference::dequantize_row(type, bytes, n, out);
}
#else
using DF = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<DF>;
using DI8 = hn::Rebind<std::int8_t, DF>;
using DU16 = hn::Rebind<std::uint16_t, DF>;
using D8x16 = hn::Full128<std::uint8_t>;
constexpr std::int64_t kLanes = hn::MaxLanes(DF());
static_assert(kLanes <= 16, "a block of 32 is a whole number of vectors");

// out[i] = q[i] * d, or q[i] * d + m: each operation rounded by itself, as the gguf package does it.
HWY_INLINE void scale_block(const std::int8_t* q, float d, float* out) {
  const auto vd = hn::Set(DF(), d);
  for (std::int64_t i = 0; i < 32; i += kLanes) {
    const auto v = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DI8(), q + i)));
    hn::StoreU(hn::Mul(v, vd), DF(), out + i);
  }
}

HWY_INLINE void scale_shift_block(const std::int8_t* q, float d, float m, float* out) {
  const auto vd = hn::Set(DF(), d);
  const auto vm = hn::Set(DF(), m);
  for (std::int64_t i = 0; i < 32; i += kLanes) {
    const auto v = hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DI8(), q + i)));
    hn::StoreU(hn::Add(hn::Mul(v, vd), vm), DF(), out + i);
  }
}

// Nibbles minus `offset` in the order of the values.
HWY_INLINE void unpack_nibbles(const std::uint8_t* qs, int offset, std::int8_t* q) {
  const D8x16 d8;
  const auto packed = hn::LoadU(d8, qs);
  const auto off = hn::Set(d8, static_cast<std::uint8_t>(offset));
  auto* bytes = reinterpret_cast<std::uint8_t*>(q);
  const auto high = hn::BitCast(d8, hn::ShiftRight<4>(hn::BitCast(hn::Repartition<std::uint16_t, D8x16>(), packed)));
  const auto mask = hn::Set(d8, std::uint8_t{15});
  hn::StoreU(hn::Sub(hn::And(packed, mask), off), d8, bytes);
  hn::StoreU(hn::Sub(hn::And(high, mask), off), d8, bytes + 16);
}

HWY_INLINE void add_fifth_bits(std::uint32_t qh, std::int8_t* q) {
  const D8x16 d8;
  std::uint8_t bits[8] = {};
  std::memcpy(bits, &qh, sizeof qh);
  auto* bytes = reinterpret_cast<std::uint8_t*>(q);
  const auto sixteen = hn::Set(d8, std::uint8_t{16});
  for (int half = 0; half < 2; ++half) {
    const auto set = hn::LoadMaskBits(d8, bits + 2 * half);
    hn::StoreU(hn::Add(hn::LoadU(d8, bytes + 16 * half), hn::IfThenElseZero(set, sixteen)), d8, bytes + 16 * half);
  }
}

HWY_INLINE void dequantize(const BlockQ4_0& b, float* out) {
  alignas(16) std::int8_t q[32];
  unpack_nibbles(b.qs, 8, q);
  scale_block(q, half_to_float(b.d), out);
}
HWY_INLINE void dequantize(const BlockQ4_1& b, float* out) {
  alignas(16) std::int8_t q[32];
  unpack_nibbles(b.qs, 0, q);
  scale_shift_block(q, half_to_float(b.d), half_to_float(b.m), out);
}
HWY_INLINE void dequantize(const BlockQ5_0& b, float* out) {
  alignas(16) std::int8_t q[32];
  unpack_nibbles(b.qs, 16, q);
  add_fifth_bits(b.qh, q);
  scale_block(q, half_to_float(b.d), out);
}
HWY_INLINE void dequantize(const BlockQ5_1& b, float* out) {
  alignas(16) std::int8_t q[32];
  unpack_nibbles(b.qs, 0, q);
  add_fifth_bits(b.qh, q);
  scale_shift_block(q, half_to_float(b.d), half_to_float(b.m), out);
}
HWY_INLINE void dequantize(const BlockQ8_0& b, float* out) { scale_block(b.qs, half_to_float(b.d), out); }

HWY_INLINE void dequantize(const BlockIQ4_NL& b, float* out) {
  const D8x16 d8;
  alignas(16) std::uint8_t q[32];
  unpack_nibbles(b.qs, 0, reinterpret_cast<std::int8_t*>(q));
  const auto table = hn::LoadU(d8, reinterpret_cast<const std::uint8_t*>(kIq4Values));
  for (int i = 0; i < 32; i += 16) hn::Store(hn::TableLookupBytes(table, hn::Load(d8, q + i)), d8, q + i);
  scale_block(reinterpret_cast<const std::int8_t*>(q), half_to_float(b.d), out);
}

// The K types. out[i] = q[i] * d - m over n values, a multiple of 16; without m where the type has no minima.
template <bool kMinimum>
HWY_INLINE void scale_part(const std::uint8_t* q, int n, float d, float m, float* out) {
  const auto* at = reinterpret_cast<const std::int8_t*>(q);
  const auto vd = hn::Set(DF(), d);
  [[maybe_unused]] const auto vm = hn::Set(DF(), m);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    auto v = hn::Mul(hn::ConvertTo(DF(), hn::PromoteTo(DI(), hn::LoadU(DI8(), at + i))), vd);
    if constexpr (kMinimum) v = hn::Sub(v, vm);
    hn::StoreU(v, DF(), out + i);
  }
}

// `bits` bits of each of 16 bytes, from bit `shift` on, moved up to bit `to`.
HWY_INLINE hn::Vec<D8x16> bits_of(const std::uint8_t* at, int shift, int bits, int to) {
  const D8x16 d8;
  const hn::Repartition<std::uint16_t, D8x16> d16;
  const auto low = hn::BitCast(d8, hn::ShiftRightSame(hn::BitCast(d16, hn::LoadU(d8, at)), shift));
  const auto kept = hn::And(low, hn::Set(d8, static_cast<std::uint8_t>((1 << bits) - 1)));
  return hn::BitCast(d8, hn::ShiftLeftSame(hn::BitCast(d16, kept), to));
}

HWY_INLINE void dequantize(const BlockQ2_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  alignas(16) std::uint8_t q[16];
  for (int part = 0; part < 16; ++part) {
    hn::Store(bits_of(b.qs + part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2, 2, 0), D8x16(), q);
    const float m = dmin * static_cast<float>(b.scales[part] >> 4);
    scale_part<true>(q, 16, d * static_cast<float>(b.scales[part] & 15), m, out + 16 * part);
  }
}

HWY_INLINE void dequantize(const BlockQ3_K& b, float* out) {
  const float d = half_to_float(b.d);
  const auto four = hn::Set(D8x16(), std::uint8_t{4});
  alignas(16) std::uint8_t q[16];
  for (int part = 0; part < 16; ++part) {
    const auto low = bits_of(b.qs + part / 8 * 32 + part % 2 * 16, part % 8 / 2 * 2, 2, 0);
    const auto high = bits_of(b.hmask + part % 2 * 16, part / 2, 1, 2);
    hn::Store(hn::Sub(hn::Or(low, high), four), D8x16(), q);
    scale_part<false>(q, 16, d * static_cast<float>(q3_scale(b.scales, part) - 32), 0, out + 16 * part);
  }
}

HWY_INLINE void dequantize(const BlockQ4_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  alignas(16) std::uint8_t q[32];
  for (int part = 0; part < 8; ++part) {
    int scale = 0, minimum = 0;
    scale_and_minimum(b.scales, part, scale, minimum);
    for (int i = 0; i < 32; i += 16) hn::Store(bits_of(b.qs + part / 2 * 32 + i, part % 2 * 4, 4, 0), D8x16(), q + i);
    scale_part<true>(q, 32, d * static_cast<float>(scale), dmin * static_cast<float>(minimum), out + 32 * part);
  }
}

HWY_INLINE void dequantize(const BlockQ5_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  alignas(16) std::uint8_t q[32];
  for (int part = 0; part < 8; ++part) {
    int scale = 0, minimum = 0;
    scale_and_minimum(b.scales, part, scale, minimum);
    for (int i = 0; i < 32; i += 16) {
      const auto low = bits_of(b.qs + part / 2 * 32 + i, part % 2 * 4, 4, 0);
      hn::Store(hn::Or(low, bits_of(b.qh + i, part, 1, 4)), D8x16(), q + i);
    }
    scale_part<true>(q, 32, d * static_cast<float>(scale), dmin * static_cast<float>(minimum), out + 32 * part);
  }
}

HWY_INLINE void dequantize(const BlockQ6_K& b, float* out) {
  const float d = half_to_float(b.d);
  const auto offset = hn::Set(D8x16(), std::uint8_t{32});
  alignas(16) std::uint8_t q[16];
  for (int part = 0; part < 16; ++part) {
    const int in_half = part % 8;  // of eight parts, 128 values
    const auto low = bits_of(b.ql + part / 8 * 64 + in_half % 4 * 16, in_half / 4 * 4, 4, 0);
    const auto high = bits_of(b.qh + part / 8 * 32 + in_half % 2 * 16, in_half / 2 * 2, 2, 4);
    hn::Store(hn::Sub(hn::Or(low, high), offset), D8x16(), q);
    scale_part<false>(q, 16, d * static_cast<float>(b.scales[part]), 0, out + 16 * part);
  }
}

template <class Block, std::int64_t kValues = 32>
void dequantize_blocks(const std::byte* bytes, std::int64_t n, float* out) {
  // Layouts are packed, so a block may be read in place at any address.
  const auto* blocks = reinterpret_cast<const Block*>(bytes);
  for (std::int64_t i = 0; i < n / kValues; ++i) dequantize(blocks[i], out + kValues * i);
}

// The arithmetic of half_to_float (blocks.h) on vectors.
HWY_INLINE auto halves_to_floats(hn::Vec<DU16> halves) {
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::PromoteTo(du, halves);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffu));
  const auto scaled = hn::Mul(hn::BitCast(DF(), hn::ShiftLeft<13>(magnitude)), hn::Set(DF(), 0x1p112f));
  const auto special = hn::BitCast(DI(), magnitude) > hn::Set(DI(), 0x7bff);
  const auto ones = hn::IfThenElseZero(hn::RebindMask(du, special), hn::Set(du, 0x7f800000u));
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  return hn::BitCast(DF(), hn::Or(hn::Or(hn::BitCast(du, scaled), ones), sign));
}

void convert_f16(const std::byte* bytes, std::int64_t n, float* out) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(bytes);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) hn::StoreU(halves_to_floats(hn::LoadU(DU16(), halves + i)), DF(), out + i);
  for (; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, 2);
    out[i] = half_to_float(half);
  }
}

void convert_bf16(const std::byte* bytes, std::int64_t n, float* out) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(bytes);
  const hn::RebindToUnsigned<DF> du;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const auto bits = hn::PromoteTo(du, hn::LoadU(DU16(), halves + i));
    hn::StoreU(hn::BitCast(DF(), hn::ShiftLeft<16>(bits)), DF(), out + i);
  }
  for (; i < n; ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes + 2 * i, 2);
    out[i] = bfloat_to_float(half);
  }
}

void dequantize_any(BlockType type, const std::byte* bytes, std::int64_t n, float* out) {
  switch (type) {
    case BlockType::kF32: std::memcpy(out, bytes, static_cast<std::size_t>(4 * n)); return;
    case BlockType::kF16: convert_f16(bytes, n, out); return;
    case BlockType::kBF16: convert_bf16(bytes, n, out); return;
    case BlockType::kQ4_0: dequantize_blocks<BlockQ4_0>(bytes, n, out); return;
    case BlockType::kQ4_1: dequantize_blocks<BlockQ4_1>(bytes, n, out); return;
    case BlockType::kQ5_0: dequantize_blocks<BlockQ5_0>(bytes, n, out); return;
    case BlockType::kQ5_1: dequantize_blocks<BlockQ5_1>(bytes, n, out); return;
    case BlockType::kQ8_0: dequantize_blocks<BlockQ8_0>(bytes, n, out); return;
    case BlockType::kIQ4_NL: dequantize_blocks<BlockIQ4_NL>(bytes, n, out); return;
    case BlockType::kQ2_K: dequantize_blocks<BlockQ2_K, 256>(bytes, n, out); return;
    case BlockType::kQ3_K: dequantize_blocks<BlockQ3_K, 256>(bytes, n, out); return;
    case BlockType::kQ4_K: dequantize_blocks<BlockQ4_K, 256>(bytes, n, out); return;
    case BlockType::kQ5_K: dequantize_blocks<BlockQ5_K, 256>(bytes, n, out); return;
    case BlockType::kQ6_K: dequantize_blocks<BlockQ6_K, 256>(bytes, n, out); return;
  }
}
#endif

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(dequantize_any);

void dequantize_row(BlockType type, const std::byte* blocks, std::int64_t n, float* out) {
  assert(n % block_values(type) == 0);
  HWY_DYNAMIC_DISPATCH(dequantize_any)(type, blocks, n, out);
}

void dequant_panel(BlockType type, const std::byte* matrix, std::int64_t cols, std::int64_t row_begin,
                   std::int64_t row_end, float* out) {
  // Rows follow each other without a gap, so a panel is one long row.
  assert(cols % block_values(type) == 0 && row_begin <= row_end);
  dequantize_row(type, matrix + row_begin * row_bytes(type, cols), (row_end - row_begin) * cols, out);
}

}  // namespace sluice
#endif
