// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/matvec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/model/kernels/expect_products.h"
#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/prefetch.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::uint32_t bits_of(float v) {
  std::uint32_t bits;
  std::memcpy(&bits, &v, 4);
  return bits;
}

// x times the matrix, for a batch made of the given rows of `x`.
std::vector<float> product(BlockType type, const std::vector<std::byte>& matrix, std::int64_t rows, std::int64_t cols,
                           const std::vector<float>& x, std::int64_t batch) {
  ActivationBlocks blocks;
  quantize_activations(x.data(), batch, cols, cols, blocks);
  std::vector<float> out(static_cast<std::size_t>(batch * rows), kNan);
  matvec_rows(type, matrix.data(), 0, rows, blocks, out.data(), rows);
  return out;
}

TEST(Matvec, TargetsInThisBuild) {
#if defined(__x86_64__)
  EXPECT_GE(kernel_targets().size(), 2u) << "only one instruction set would be tested";
#endif
}

// Against exact arithmetic on what the kernels multiply: the rounded activations (or, in f32 types, the given ones).
TEST(Matvec, MatchesTheReference) {
  const std::int64_t rows = 7, batch = 3;
  for (const BlockType type : kAllTypes) {
    for (const std::int64_t cols : {256, 512, 1536}) {
      SCOPED_TRACE(std::string(block_type_name(type)) + " " + std::to_string(cols));
      const auto matrix = random_matrix(type, rows, cols, 1);
      const auto x = random_floats(batch * cols, 2);
      on_every_target([&] {
        std::vector<float> rounded(x);
        const bool in_f32 = !has_integer_kernel(type) || (block_values(type) == 256 && kernel_target() == "SCALAR");
        if (!in_f32) reference::round_to_blocks(x.data(), batch * cols, rounded.data());
        const auto out = product(type, matrix, rows, cols, x, batch);
        expect_products(type, matrix, rows, cols, x, rounded, batch, out, 2e-6);
      });
    }
  }
}

// Rounding activations to 16 bits costs less than 1e-4 of the magnitude.
TEST(Matvec, SixteenBitsAreNearExact) {
  const std::int64_t cols = 576, rows = 64;
  const auto matrix = random_matrix(BlockType::kQ4_1, rows, cols, 3);
  const auto x = random_floats(cols, 4);
  const auto out = product(BlockType::kQ4_1, matrix, rows, cols, x, 1);
  double error = 0, size = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    const double exact = reference::row_times(BlockType::kQ4_1, matrix.data(), r, cols, x.data());
    error += (out[r] - exact) * (out[r] - exact);
    size += exact * exact;
  }
  EXPECT_LT(std::sqrt(error / size), 1e-4);
}

// The promise that replay, the gate and the ratio against the sampler rest on.
TEST(Matvec, BitEqualForEveryBatchSizeAndRowSplit) {
  const std::int64_t rows = 13, most = 19;
  for (const BlockType type : kAllTypes) {
    const std::int64_t cols = block_values(type) == 256 ? 512 : 576;  // 18 blocks: not a multiple of four
    SCOPED_TRACE(block_type_name(type));
    const auto matrix = random_matrix(type, rows, cols, 5);
    const auto x = random_floats(most * cols, 6);
    on_every_target([&] {
      std::vector<float> alone;
      for (std::int64_t b = 0; b < most; ++b) {
        const std::vector<float> row(x.begin() + b * cols, x.begin() + (b + 1) * cols);
        const auto out = product(type, matrix, rows, cols, row, 1);
        alone.insert(alone.end(), out.begin(), out.end());
      }
      for (std::int64_t batch = 1; batch <= most; ++batch) {
        const auto out = product(type, matrix, rows, cols, x, batch);
        for (std::size_t i = 0; i < out.size(); ++i) {
          ASSERT_EQ(bits_of(out[i]), bits_of(alone[i])) << "batch " << batch << " at " << i;
        }
      }
      ActivationBlocks blocks;
      quantize_activations(x.data(), 5, cols, cols, blocks);
      PrefetchStream ahead;  // changes nothing, whatever it holds
      ahead.add(nullptr, 0);
      ahead.add(reinterpret_cast<const std::int16_t*>(x.data()), 37);
      ahead.spread(3);
      for (std::int64_t split = 0; split <= rows; ++split) {
        std::vector<float> out(5 * rows, kNan);
        matvec_rows(type, matrix.data(), 0, split, blocks, out.data(), rows, &ahead);
        matvec_rows(type, matrix.data(), split, rows, blocks, out.data(), rows);
        for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(bits_of(out[i]), bits_of(alone[i])) << "split " << split;
      }
    });
  }
}

// Every number of blocks in a row: the tail of a quad must neither read nor count what isn't there.
TEST(Matvec, EveryRowLength) {
  for (const BlockType type : {BlockType::kQ4_0, BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ5_1, BlockType::kQ8_0}) {
    for (std::int64_t cols = 32; cols <= 32 * 34; cols += 32) {
      const auto matrix = random_matrix(type, 2, cols, static_cast<unsigned>(cols));
      const auto x = random_floats(cols, 8);
      std::vector<float> rounded(x);
      reference::round_to_blocks(x.data(), cols, rounded.data());
      on_every_target([&] {
        const auto out = product(type, matrix, 2, cols, x, 1);
        for (std::int64_t r = 0; r < 2; ++r) {
          const double exact = reference::row_times(type, matrix.data(), r, cols, rounded.data());
          ASSERT_NEAR(out[r], exact, 1e-4 * std::sqrt(static_cast<double>(cols))) << block_type_name(type) << " " << cols;
        }
      });
    }
  }
}

TEST(Matvec, PlainTypesOfAnyLength) {
  for (const BlockType type : {BlockType::kF32, BlockType::kF16, BlockType::kBF16}) {
    for (std::int64_t cols = 1; cols <= 70; ++cols) {
      const auto matrix = random_matrix(type, 2, cols, static_cast<unsigned>(cols));
      const auto x = random_floats(2 * cols, 9);
      on_every_target([&] {
        const auto out = product(type, matrix, 2, cols, x, 2);
        for (std::int64_t i = 0; i < 4; ++i) {
          const double exact = reference::row_times(type, matrix.data(), i % 2, cols, x.data() + i / 2 * cols);
          ASSERT_NEAR(out[i], exact, 1e-4) << block_type_name(type) << " " << cols;
        }
      });
    }
  }
}

// The largest integers of both sides: no overflow on the way.
TEST(Matvec, ExtremesDontOverflow) {
  const std::int64_t cols = 1536;
  std::vector<std::byte> matrix(static_cast<std::size_t>(row_bytes(BlockType::kQ8_0, cols)), std::byte{0x80});  // q = -128
  const std::uint16_t one = 0x3c00;
  for (std::size_t at = 0; at < matrix.size(); at += 34) std::memcpy(matrix.data() + at, &one, 2);
  const std::vector<float> x(cols, -3.0f);
  on_every_target([&] {
    EXPECT_FLOAT_EQ(product(BlockType::kQ8_0, matrix, 1, cols, x, 1)[0], 128.0f * 3.0f * cols);
  });
}

TEST(Matvec, ZeroAndTinyBlocksGiveZero) {
  const std::int64_t cols = 64;
  const auto matrix = random_matrix(BlockType::kQ4_1, 3, cols, 10);
  for (const float value : {0.0f, 1e-38f, -1e-42f}) {
    const std::vector<float> x(cols, value);
    on_every_target([&] {
      for (const float out : product(BlockType::kQ4_1, matrix, 3, cols, x, 1)) EXPECT_EQ(out, 0.0f);
    });
  }
}

TEST(Matvec, NotANumberStaysVisibleAndInItsRow) {
  const std::int64_t cols = 576, rows = 3;
  for (const float bad : {kNan, std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity()}) {
    for (const BlockType type : {BlockType::kQ4_0, BlockType::kQ4_1, BlockType::kQ8_0}) {
      const auto matrix = random_matrix(type, rows, cols, 11);
      auto x = random_floats(2 * cols, 12);
      x[cols + 570] = bad;
      on_every_target([&] {
        const auto out = product(type, matrix, rows, cols, x, 2);
        for (std::int64_t r = 0; r < rows; ++r) {
          EXPECT_TRUE(std::isfinite(out[r])) << r;
          EXPECT_FALSE(std::isfinite(out[rows + r])) << r;
        }
      });
    }
  }
}

TEST(Matvec, ReusedBlocksForgetTheLastStep) {
  const std::int64_t cols = 576, rows = 3;
  const auto matrix = random_matrix(BlockType::kQ4_1, rows, cols, 13);
  const auto x = random_floats(cols, 14);
  const auto expected = product(BlockType::kQ4_1, matrix, rows, cols, x, 1);
  ActivationBlocks blocks;
  quantize_activations(random_floats(8 * 1536, 15).data(), 8, 1536, 1536, blocks);
  quantize_activations(x.data(), 1, cols, cols, blocks);
  std::vector<float> out(rows, kNan);
  matvec_rows(BlockType::kQ4_1, matrix.data(), 0, rows, blocks, out.data(), rows);
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace sluice
