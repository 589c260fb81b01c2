// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/gemm_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

std::vector<float> packed(const std::vector<float>& x, std::int64_t rows, std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(packed_floats(rows, n)), std::numeric_limits<float>::quiet_NaN());
  pack_float_rows(x.data(), n, rows, n, 0, (rows + kFloatTile - 1) / kFloatTile, out.data());
  return out;
}

std::vector<float> forward(const FloatMatrix& w, const std::vector<float>& x, std::int64_t rows, const LowRank& low = {}) {
  const std::int64_t n = w.row_end - w.row_begin;
  std::vector<float> out(static_cast<std::size_t>(rows * n), std::numeric_limits<float>::quiet_NaN());
  gemm_forward(w, 0, n, packed(x, rows, w.cols).data(), rows, out.data(), n, low);
  return out;
}

std::vector<float> backward(const FloatMatrix& w, const std::vector<float>& dy, std::int64_t rows, bool accumulate,
                            const LowRank& low = {}) {
  std::vector<float> out(static_cast<std::size_t>(rows * w.cols), accumulate ? 1.0f : std::numeric_limits<float>::quiet_NaN());
  gemm_backward(w, 0, w.cols, packed(dy, rows, w.row_end - w.row_begin).data(), rows, out.data(), w.cols, accumulate, low);
  return out;
}

// `terms` products in f64 and the sum of their magnitudes, which bounds the rounding.
template <class Term>
void expect_sum(float got, std::int64_t terms, const Term& term, double start = 0) {
  double sum = start, size = std::fabs(start);
  for (std::int64_t i = 0; i < terms; ++i) sum += term(i), size += std::fabs(term(i));
  ASSERT_NEAR(static_cast<double>(got), sum, 2e-6 * size + 1e-7);
}

// An adapter's part is added up with the rest: the difference to the product without it is the small product alone.
TEST(GemmFloat, AddsALowRankProduct) {
  const std::int64_t all = 70, cols = 512, rows = 25, rank = 5;
  for (const BlockType type : {BlockType::kQ4_1, BlockType::kQ6_K}) {
    const auto matrix = random_matrix(type, all, cols, 1);
    const FloatMatrix w{type, matrix.data(), cols, 0, all};
    const auto x = random_floats(rows * cols, 2), dy = random_floats(rows * all, 3), low = random_floats(rows * rank, 4);
    const auto b = random_floats(all * rank, 5), a = random_floats(rank * cols, 6);
    on_every_target([&] {
      const auto small = packed(low, rows, rank);
      const auto y = forward(w, x, rows), more_y = forward(w, x, rows, {small.data(), b.data(), rank});
      const auto dx = backward(w, dy, rows, false), more_dx = backward(w, dy, rows, false, {small.data(), a.data(), rank});
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto expect_added = [&](float with, float without, const auto& factor) {
          double sum = without;
          for (std::int64_t j = 0; j < rank; ++j) sum += static_cast<double>(low[static_cast<std::size_t>(r * rank + j)]) * factor(j);
          ASSERT_NEAR(static_cast<double>(with), sum, 1e-5 * (20 + std::fabs(static_cast<double>(without))));
        };
        for (std::int64_t i = 0; i < all; ++i) {
          const auto at = static_cast<std::size_t>(r * all + i);
          expect_added(more_y[at], y[at], [&](std::int64_t j) { return static_cast<double>(b[static_cast<std::size_t>(i * rank + j)]); });
        }
        for (std::int64_t c = 0; c < cols; ++c) {
          const auto at = static_cast<std::size_t>(r * cols + c);
          expect_added(more_dx[at], dx[at], [&](std::int64_t j) { return static_cast<double>(a[static_cast<std::size_t>(j * cols + c)]); });
        }
      }
    });
  }
}

// Rows with and without a rest of a tile, weight rows and columns with and without a rest of a strip.
TEST(GemmFloat, MatchesTheReference) {
  for (const BlockType type : kAllTypes) {
    for (const auto& [all, cols, rows] : {std::tuple{70, 512, 25}, {37, 768, 12}, {33, 72, 3}}) {
      if (cols % block_values(type) != 0) continue;
      SCOPED_TRACE(std::string(block_type_name(type)) + " " + std::to_string(cols));
      const auto matrix = random_matrix(type, all, cols, 1);
      const FloatMatrix w{type, matrix.data(), cols, 5, all};
      const std::int64_t outputs = all - 5;
      std::vector<float> values(static_cast<std::size_t>(all * cols));
      reference::dequantize_row(type, matrix.data(), all * cols, values.data());
      const auto weight = [&](std::int64_t i, std::int64_t c) { return static_cast<double>(values[static_cast<std::size_t>((5 + i) * cols + c)]); };
      const auto x = random_floats(rows * cols, 2), dy = random_floats(rows * outputs, 3);
      on_every_target([&] {
        const auto y = forward(w, x, rows), dx = backward(w, dy, rows, false), more = backward(w, dy, rows, true);
        for (std::int64_t r = 0; r < rows; ++r) {
          for (std::int64_t i = 0; i < outputs; ++i) {
            expect_sum(y[static_cast<std::size_t>(r * outputs + i)], cols, [&](std::int64_t c) { return x[static_cast<std::size_t>(r * cols + c)] * weight(i, c); });
          }
          for (std::int64_t c = 0; c < cols; ++c) {
            const auto term = [&](std::int64_t i) { return dy[static_cast<std::size_t>(r * outputs + i)] * weight(i, c); };
            expect_sum(dx[static_cast<std::size_t>(r * cols + c)], outputs, term);
            expect_sum(more[static_cast<std::size_t>(r * cols + c)], outputs, term, 1);
          }
        }
      });
    }
  }
}

TEST(GemmFloat, BitEqualForEveryBatchAndSplit) {
  for (const BlockType type : {BlockType::kQ4_1, BlockType::kQ6_K, BlockType::kF32}) {
    const std::int64_t all = 70, cols = 512, most = 27;
    const auto matrix = random_matrix(type, all, cols, 5);
    const FloatMatrix w{type, matrix.data(), cols, 0, all};
    const auto x = random_floats(most * cols, 6), dy = random_floats(most * all, 7);
    on_every_target([&] {
      const auto y = forward(w, x, most), dx = backward(w, dy, most, false);
      for (std::int64_t rows : {1, 12, 26}) {
        const auto some_y = forward(w, x, rows), some_dx = backward(w, dy, rows, false);
        ASSERT_EQ(std::memcmp(some_y.data(), y.data(), some_y.size() * sizeof(float)), 0) << rows;
        ASSERT_EQ(std::memcmp(some_dx.data(), dx.data(), some_dx.size() * sizeof(float)), 0) << rows;
      }
      std::vector<float> split_y(y.size()), split_dx(dx.size());
      const auto px = packed(x, most, cols), pdy = packed(dy, most, all);
      for (const auto& [begin, end] : {std::pair{64, 70}, {0, 64}}) gemm_forward(w, begin, end, px.data(), most, split_y.data(), all);
      for (const auto& [begin, end] : {std::pair{256, 512}, {0, 256}}) gemm_backward(w, begin, end, pdy.data(), most, split_dx.data(), cols, false);
      ASSERT_EQ(split_y, y);
      ASSERT_EQ(split_dx, dx);
    });
  }
}

}  // namespace
}  // namespace sluice
