// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/reference.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>
#include <vector>

#include "model/kernels/blocks.h"

namespace sluice::reference {
namespace {

void dequantize(const BlockQ4_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((b.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((b.qs[i] >> 4) - 8);
  }
}

void dequantize(const BlockQ4_1& b, float* out) {
  const float d = half_to_float(b.d), m = half_to_float(b.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(b.qs[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(b.qs[i] >> 4) + m;
  }
}

int five_bits(const std::uint8_t* qs, std::uint32_t qh, int i) {
  const int low = i < 16 ? qs[i] & 15 : qs[i - 16] >> 4;
  return low | static_cast<int>((qh >> i) & 1) << 4;
}

void dequantize(const BlockQ5_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(b.qs, b.qh, i) - 16);
}

void dequantize(const BlockQ5_1& b, float* out) {
  const float d = half_to_float(b.d), m = half_to_float(b.m);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(b.qs, b.qh, i)) + m;
}

void dequantize(const BlockQ8_0& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 32; ++i) out[i] = static_cast<float>(b.qs[i]) * d;
}

void dequantize(const BlockIQ4_NL& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(kIq4Values[b.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(kIq4Values[b.qs[i] >> 4]);
  }
}

int two_bits(const std::uint8_t* qs, int i) { return (qs[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32))) & 3; }

void dequantize(const BlockQ2_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  for (int i = 0; i < 256; ++i) {
    const std::uint8_t part = b.scales[i / 16];
    out[i] = d * static_cast<float>(part & 15) * static_cast<float>(two_bits(b.qs, i)) - dmin * static_cast<float>(part >> 4);
  }
}

void dequantize(const BlockQ3_K& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 256; ++i) {
    const int q = two_bits(b.qs, i) | ((b.hmask[i % 32] >> (i / 32)) & 1) << 2;
    out[i] = d * static_cast<float>(q3_scale(b.scales, i / 16) - 32) * static_cast<float>(q - 4);
  }
}

void dequantize(const BlockQ5_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  for (int i = 0; i < 256; ++i) {
    int scale = 0, minimum = 0;
    scale_and_minimum(b.scales, i / 32, scale, minimum);
    const std::uint8_t pair = b.qs[i / 64 * 32 + i % 32];
    const int q = (i % 64 < 32 ? pair & 15 : pair >> 4) | ((b.qh[i % 32] >> (i / 32)) & 1) << 4;
    out[i] = d * static_cast<float>(scale) * static_cast<float>(q) - dmin * static_cast<float>(minimum);
  }
}

void dequantize(const BlockQ4_K& b, float* out) {
  const float d = half_to_float(b.d), dmin = half_to_float(b.dmin);
  for (int part = 0; part < 8; ++part) {
    int scale = 0, minimum = 0;
    scale_and_minimum(b.scales, part, scale, minimum);
    const float part_d = d * static_cast<float>(scale);
    const float part_m = dmin * static_cast<float>(minimum);
    const std::uint8_t* qs = b.qs + 32 * (part / 2);
    for (int i = 0; i < 32; ++i) {
      const int q = part % 2 == 0 ? qs[i] & 15 : qs[i] >> 4;
      out[32 * part + i] = part_d * static_cast<float>(q) - part_m;
    }
  }
}

// Each half of 128 values: value i takes its low bits from a nibble of ql[i % 64] and its high bits from two bits of
// qh[i % 32].
void dequantize(const BlockQ6_K& b, float* out) {
  const float d = half_to_float(b.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128, k = i % 128;
    const std::uint8_t low = b.ql[64 * half + k % 64];
    const std::uint8_t high = b.qh[32 * half + k % 32];
    const int q = (k < 64 ? low & 15 : low >> 4) | ((high >> (2 * (k / 32))) & 3) << 4;
    out[i] = d * static_cast<float>(b.scales[i / 16]) * static_cast<float>(q - 32);
  }
}

template <class Block>
void dequantize_blocks(const std::byte* blocks, std::int64_t n, std::int64_t values, float* out) {
  for (std::int64_t i = 0; i < n / values; ++i) {
    Block block;
    std::memcpy(&block, blocks + i * static_cast<std::int64_t>(sizeof block), sizeof block);
    dequantize(block, out + i * values);
  }
}

template <class Convert>
void convert_halves(const std::byte* from, std::int64_t n, float* out, Convert convert) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + 2 * i, 2);
    out[i] = convert(bits);
  }
}

}  // namespace

void dequantize_row(BlockType type, const std::byte* blocks, std::int64_t n, float* out) {
  assert(n % block_values(type) == 0);
  switch (type) {
    case BlockType::kF32: std::memcpy(out, blocks, static_cast<std::size_t>(4 * n)); return;
    case BlockType::kF16: convert_halves(blocks, n, out, half_to_float); return;
    case BlockType::kBF16: convert_halves(blocks, n, out, bfloat_to_float); return;
    case BlockType::kQ4_0: dequantize_blocks<BlockQ4_0>(blocks, n, 32, out); return;
    case BlockType::kQ4_1: dequantize_blocks<BlockQ4_1>(blocks, n, 32, out); return;
    case BlockType::kQ5_0: dequantize_blocks<BlockQ5_0>(blocks, n, 32, out); return;
    case BlockType::kQ5_1: dequantize_blocks<BlockQ5_1>(blocks, n, 32, out); return;
    case BlockType::kQ8_0: dequantize_blocks<BlockQ8_0>(blocks, n, 32, out); return;
    case BlockType::kIQ4_NL: dequantize_blocks<BlockIQ4_NL>(blocks, n, 32, out); return;
    case BlockType::kQ2_K: dequantize_blocks<BlockQ2_K>(blocks, n, 256, out); return;
    case BlockType::kQ3_K: dequantize_blocks<BlockQ3_K>(blocks, n, 256, out); return;
    case BlockType::kQ4_K: dequantize_blocks<BlockQ4_K>(blocks, n, 256, out); return;
    case BlockType::kQ5_K: dequantize_blocks<BlockQ5_K>(blocks, n, 256, out); return;
    case BlockType::kQ6_K: dequantize_blocks<BlockQ6_K>(blocks, n, 256, out); return;
  }
  assert(false && "unknown block type");
}

double row_times(BlockType type, const std::byte* matrix, std::int64_t row, std::int64_t cols, const float* x) {
  std::vector<float> w(static_cast<std::size_t>(cols));
  dequantize_row(type, matrix + row * row_bytes(type, cols), cols, w.data());
  return dot(w.data(), x, cols);
}

void round_to_blocks(const float* x, std::int64_t n, float* out) {
  for (std::int64_t begin = 0; begin < n; begin += 32) {
    const std::int64_t end = std::min(begin + 32, n);
    float largest = 0;
    for (std::int64_t i = begin; i < end; ++i) largest = std::max(largest, std::fabs(x[i]));
    const float scale = largest / 32767.0f;
    for (std::int64_t i = begin; i < end; ++i) {
      out[i] = largest == 0 ? 0 : scale * std::nearbyint(x[i] * (32767.0f / largest));
    }
  }
}

void rms_norm(const float* x, const float* weight, std::int64_t n, float eps, float* out) {
  const double scale = 1.0 / std::sqrt(dot(x, x, n) / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(x[i] * scale * weight[i]);
}

void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) {
  for (std::int64_t i = 0; i < n; ++i) {
    const double g = gate[i];
    out[i] = static_cast<float>(g / (1.0 + std::exp(-g)) * up[i]);
  }
}

void softmax(float* x, std::int64_t n) {
  const double total = log_sum_exp(x, n, 1.0);
  for (std::int64_t i = 0; i < n; ++i) x[i] = static_cast<float>(std::exp(x[i] - total));
}

double log_sum_exp(const float* x, std::int64_t n, double scale) {
  const double largest = *std::max_element(x, x + n) * scale;
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += std::exp(x[i] * scale - largest);
  return largest + std::log(sum);
}

double dot(const float* a, const float* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(a[i]) * b[i];
  return sum;
}

void attention(const float* query, std::int64_t head_size, const float* keys, const float* values, std::int64_t stride,
               std::int64_t n, float scale, float* out) {
  std::vector<float> p(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<float>(scale * dot(query, keys + i * stride, head_size));
  softmax(p.data(), n);
  for (std::int64_t c = 0; c < head_size; ++c) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) sum += static_cast<double>(p[i]) * values[i * stride + c];
    out[c] = static_cast<float>(sum);
  }
}

void lora_add(const float* x, const float* a, const float* b, std::int64_t in, std::int64_t out, std::int64_t rank,
              float scale, float* y) {
  std::vector<double> hidden(static_cast<std::size_t>(rank));
  for (std::int64_t k = 0; k < rank; ++k) hidden[k] = dot(a + k * in, x, in);
  for (std::int64_t o = 0; o < out; ++o) {
    double sum = 0;
    for (std::int64_t k = 0; k < rank; ++k) sum += b[o * rank + k] * hidden[k];
    y[o] = static_cast<float>(y[o] + scale * sum);
  }
}

}  // namespace sluice::reference
