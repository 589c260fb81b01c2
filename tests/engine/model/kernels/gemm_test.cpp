// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/model/kernels/expect_products.h"
#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/matvec.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

std::vector<float> product(BlockType type, const std::vector<std::byte>& matrix, std::int64_t rows, std::int64_t cols,
                           const std::vector<float>& x, std::int64_t batch) {
  ActivationBlocks blocks;
  quantize_activations(x.data(), batch, cols, cols, blocks);
  std::vector<float> out(static_cast<std::size_t>(batch * rows), std::numeric_limits<float>::quiet_NaN());
  gemm_rows(type, matrix.data(), 0, rows, blocks, out.data(), rows);
  return out;
}

// Against exact arithmetic on the rounded activations. Row lengths with and without a rest, weight rows likewise.
TEST(Gemm, MatchesTheReference) {
  const std::int64_t rows = 37, batch = 15;  // groups of 8, 4, 2, 1
  for (const BlockType type : kAllTypes) {
    if (!has_integer_kernel(type)) continue;
    for (const std::int64_t cols : {256, 1536, 608}) {
      if (cols % block_values(type) != 0) continue;
      SCOPED_TRACE(std::string(block_type_name(type)) + " " + std::to_string(cols));
      const auto matrix = random_matrix(type, rows, cols, 1);
      const auto x = random_floats(batch * cols, 2);
      on_every_target([&] {
        std::vector<float> rounded(x);
        if (block_values(type) == 32 || kernel_target() != "SCALAR") {
          reference::round_to_blocks(x.data(), batch * cols, rounded.data());
        }
        const auto out = product(type, matrix, rows, cols, x, batch);
        expect_products(type, matrix, rows, cols, x, rounded, batch, out, 4e-6);
      });
    }
  }
}

TEST(Gemm, BitEqualForEveryBatchAndSplit) {
  const std::int64_t rows = 70;
  for (const BlockType type : {BlockType::kQ4_1, BlockType::kQ5_0, BlockType::kQ6_K}) {
    const std::int64_t cols = block_values(type) == 256 ? 512 : 576, most = 19;
    const auto matrix = random_matrix(type, rows, cols, 5);
    const auto x = random_floats(most * cols, 6);
    on_every_target([&] {
      const auto all = product(type, matrix, rows, cols, x, most);
      for (std::int64_t batch = 1; batch < most; ++batch) {
        const auto out = product(type, matrix, rows, cols, x, batch);
        ASSERT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0) << block_type_name(type) << " " << batch;
      }
      ActivationBlocks blocks;
      quantize_activations(x.data(), most, cols, cols, blocks);
      std::vector<float> out(all.size(), std::numeric_limits<float>::quiet_NaN());
      for (std::int64_t begin = 0; begin < rows; begin += kGemmStrip) {
        gemm_rows(type, matrix.data(), begin, std::min(begin + kGemmStrip, rows), blocks, out.data(), rows);
      }
      ASSERT_EQ(std::memcmp(out.data(), all.data(), out.size() * sizeof(float)), 0) << block_type_name(type);
    });
  }
}

// The largest integers of both sides: no overflow on the way.
TEST(Gemm, ExtremesDontOverflow) {
  const std::int64_t cols = 1536;
  const std::uint16_t one = 0x3c00;
  std::vector<std::byte> q8(static_cast<std::size_t>(row_bytes(BlockType::kQ8_0, cols)), std::byte{0x80});  // q = -128
  for (std::size_t at = 0; at < q8.size(); at += 34) std::memcpy(q8.data() + at, &one, 2);
  std::vector<std::byte> q6(static_cast<std::size_t>(row_bytes(BlockType::kQ6_K, cols)), std::byte{0});  // q = -32
  for (std::size_t at = 0; at < q6.size(); at += 210) {
    std::memset(q6.data() + at + 192, 0x80, 16);  // scales of -128
    std::memcpy(q6.data() + at + 208, &one, 2);
  }
  const std::vector<float> x(cols, -3.0f);
  on_every_target([&] {
    EXPECT_FLOAT_EQ(product(BlockType::kQ8_0, q8, 1, cols, x, 1)[0], 128.0f * 3.0f * cols);
    EXPECT_FLOAT_EQ(product(BlockType::kQ6_K, q6, 1, cols, x, 1)[0], -128.0f * 32.0f * 3.0f * cols);
  });
}

TEST(Gemm, NotANumberStaysVisibleAndInItsRow) {
  const std::int64_t cols = 576, rows = 3;
  const auto matrix = random_matrix(BlockType::kQ4_1, rows, cols, 11);
  auto x = random_floats(2 * cols, 12);
  x[cols + 570] = std::numeric_limits<float>::quiet_NaN();
  on_every_target([&] {
    const auto out = product(BlockType::kQ4_1, matrix, rows, cols, x, 2);
    for (std::int64_t r = 0; r < rows; ++r) {
      EXPECT_TRUE(std::isfinite(out[r])) << r;
      EXPECT_FALSE(std::isfinite(out[rows + r])) << r;
    }
  });
}

}  // namespace
}  // namespace sluice
