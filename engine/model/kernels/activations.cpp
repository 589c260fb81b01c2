// SPDX-License-Identifier: GPL-3.0-or-later
// ActivationBlocks: f32 rows to int16 blocks in the kernels' order.
#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>

#include "model/kernels/activation_layout.h"
#include "model/kernels/matvec.h"

#undef HWY_TARGET_INCLUDE
#define HWY_WANT_AVX3_DL 1
#define HWY_TARGET_INCLUDE "model/kernels/activations.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.
#include <hwy/highway.h>

#include "model/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::HWY_NAMESPACE {

std::int64_t blocks_per_vector() { return kBlocksPerVector; }

struct QuantizedBlock {
  alignas(16) std::int16_t words[4][8];  // order of unpack-inl.h
  float scale;
  float sum;  // of the rounded values
};

// A magnitude below this counts as zero: its inverse would overflow.
constexpr float kLeast = 32768.0f * std::numeric_limits<float>::min();

void set_not_a_number(QuantizedBlock& out) {
  std::memset(out.words, 0, sizeof out.words);
  out.scale = out.sum = std::numeric_limits<float>::quiet_NaN();
}

#if HWY_TARGET == HWY_SCALAR
void quantize_block(const float* x, QuantizedBlock& out) {
  float largest = 0;
  for (int i = 0; i < 32; ++i) {
    if (!std::isfinite(x[i])) return set_not_a_number(out);
    largest = std::max(largest, std::fabs(x[i]));
  }
  const float inverse = largest < kLeast ? 0 : 32767.0f / largest;
  out.scale = largest < kLeast ? 0 : largest / 32767.0f;
  std::int32_t sum = 0;
  for (int i = 0; i < 32; ++i) {
    const auto q = static_cast<std::int32_t>(std::nearbyint(x[i] * inverse));
    out.words[2 * (i & 1) + i / 16][i % 16 / 2] = static_cast<std::int16_t>(q);
    sum += q;
  }
  out.sum = out.scale * static_cast<float>(sum);
}
#else
HWY_INLINE void quantize_block(const float* x, QuantizedBlock& out) {
  const hn::Full128<float> df;
  const hn::Full128<std::int32_t> di;
  const hn::Full128<std::int16_t> dw;
  const auto zero = hn::Zero(df);
  auto most = zero, test = zero;
  for (int i = 0; i < 32; i += 4) {
    const auto v = hn::LoadU(df, x + i);
    most = hn::Max(most, hn::Abs(v));
    test = hn::Add(test, hn::Mul(v, zero));  // NaN as soon as one value isn't finite
  }
  if (hn::GetLane(hn::SumOfLanes(df, test)) != 0) return set_not_a_number(out);
  const float largest = hn::GetLane(hn::MaxOfLanes(df, most));
  const auto inverse = hn::Set(df, largest < kLeast ? 0 : 32767.0f / largest);
  out.scale = largest < kLeast ? 0 : largest / 32767.0f;
  auto sum = hn::Zero(di);
  for (int half = 0; half < 2; ++half) {
    const float* at = x + 16 * half;
    const auto a = hn::NearestInt(hn::Mul(hn::LoadU(df, at), inverse));
    const auto b = hn::NearestInt(hn::Mul(hn::LoadU(df, at + 4), inverse));
    const auto c = hn::NearestInt(hn::Mul(hn::LoadU(df, at + 8), inverse));
    const auto d = hn::NearestInt(hn::Mul(hn::LoadU(df, at + 12), inverse));
    sum = hn::Add(sum, hn::Add(hn::Add(a, b), hn::Add(c, d)));
    const auto even = hn::ReorderDemote2To(dw, hn::ConcatEven(di, b, a), hn::ConcatEven(di, d, c));
    const auto odd = hn::ReorderDemote2To(dw, hn::ConcatOdd(di, b, a), hn::ConcatOdd(di, d, c));
    hn::Store(even, dw, out.words[half]);
    hn::Store(odd, dw, out.words[2 + half]);
  }
  out.sum = out.scale * static_cast<float>(hn::GetLane(hn::SumOfLanes(di, sum)));
}
#endif

// Puts a block's words where the kernel's vectors find them; `step` is this row's part of the step.
HWY_INLINE void place_words(const QuantizedBlock& block, std::int64_t block_in_step, std::int16_t* step) {
  for (int v = 0; v < 4; ++v) {
    std::int16_t* to = step + 8 * kBlocksPerVector * v + 2 * block_in_step;
    for (int g = 0; g < 4; ++g) std::memcpy(to + 2 * kBlocksPerVector * g, &block.words[v][2 * g], 4);
  }
}

// One row of `blocks` blocks into its slots; `group` rows lie between its steps.
void quantize_row(const float* x, std::int64_t blocks, std::int64_t row_blocks, std::int64_t padded_blocks,
                  std::int64_t group, std::int16_t* values, float* scales, float* sums) {
  using namespace activation;
  QuantizedBlock block;
  for (std::int64_t i = 0; i < row_blocks; ++i) {
    if (i < blocks) {
      quantize_block(x + kBlockValues * i, block);
    } else {
      std::memset(&block, 0, sizeof block);
    }
    const std::int64_t step = i / kBlocksPerVector * kBlocksPerVector * group, k = i % kBlocksPerVector;
    place_words(block, k, values + step * kBlockValues);
    scales[step + k] = block.scale;
    sums[i / kSumChunk * group * kSumChunk + i % kSumChunk] = block.sum;
  }
  for (std::int64_t i = row_blocks; i < padded_blocks; ++i) {
    sums[i / kSumChunk * group * kSumChunk + i % kSumChunk] = 0;
  }
}

}  // namespace sluice::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice {

HWY_EXPORT(blocks_per_vector);
HWY_EXPORT(quantize_row);

template <class T>
void ActivationBlocks::Aligned<T>::reserve(std::int64_t n) {
  if (static_cast<std::size_t>(n) <= capacity) return;
  const std::size_t bytes = (static_cast<std::size_t>(n) * sizeof(T) + 63) / 64 * 64;
  begin.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
  if (begin == nullptr) throw std::bad_alloc();
  capacity = static_cast<std::size_t>(n);
}

void ActivationBlocks::resize(std::int64_t rows, std::int64_t cols) {
  using namespace activation;
  assert(rows > 0 && cols > 0);
  rows_ = rows;
  cols_ = cols;
  step_blocks_ = HWY_DYNAMIC_DISPATCH(blocks_per_vector)();
  const std::int64_t blocks = (cols + kBlockValues - 1) / kBlockValues;
  row_blocks_ = (blocks + step_blocks_ - 1) / step_blocks_ * step_blocks_;
  padded_blocks_ = (blocks + kSumChunk - 1) / kSumChunk * kSumChunk;
  float_stride_ = padded_blocks_ * kBlockValues;
  floats_.reserve(rows * float_stride_);
  values_.reserve(rows * row_blocks_ * kBlockValues);
  scales_.reserve(rows * row_blocks_);
  sums_.reserve(rows * padded_blocks_);
}

void ActivationBlocks::set_row(std::int64_t row, const float* x) {
  using namespace activation;
  assert(row >= 0 && row < rows_ && step_blocks_ == HWY_DYNAMIC_DISPATCH(blocks_per_vector)());
  float* copy = floats_.begin.get() + row * float_stride_;
  std::copy(x, x + cols_, copy);
  std::fill(copy + cols_, copy + float_stride_, 0.0f);
  const Group group = group_of(row, rows_);
  const std::int64_t at = row - group.first;
  const std::int64_t blocks = (cols_ + kBlockValues - 1) / kBlockValues;
  const std::int64_t slot = group.first * row_blocks_ + at * step_blocks_;
  HWY_DYNAMIC_DISPATCH(quantize_row)
  (copy, blocks, row_blocks_, padded_blocks_, group.size, values_.begin.get() + slot * kBlockValues,
   scales_.begin.get() + slot, sums_.begin.get() + group.first * padded_blocks_ + at * kSumChunk);
}

void quantize_activations(const float* x, std::int64_t n_rows, std::int64_t n_cols, std::int64_t x_stride,
                          ActivationBlocks& out) {
  out.resize(n_rows, n_cols);
  for (std::int64_t row = 0; row < n_rows; ++row) out.set_row(row, x + row * x_stride);
}

}  // namespace sluice
#endif
