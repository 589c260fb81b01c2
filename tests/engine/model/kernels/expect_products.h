// SPDX-License-Identifier: GPL-3.0-or-later
// What the matrix kernels promise: near to the sums in double precision over the activations as they were rounded.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/block_type.h"
#include "model/kernels/reference.h"

namespace sluice {

// `out` [batch, rows]: every product within `tolerance` of its terms' magnitudes (those of `x` before rounding).
inline void expect_products(BlockType type, const std::vector<std::byte>& matrix, std::int64_t rows, std::int64_t cols,
                            const std::vector<float>& x, const std::vector<float>& rounded, std::int64_t batch,
                            const std::vector<float>& out, double tolerance) {
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t r = 0; r < rows; ++r) {
      std::vector<float> w(cols), magnitude(cols), ones(cols, 1.0f);
      reference::dequantize_row(type, matrix.data() + r * row_bytes(type, cols), cols, w.data());
      for (std::int64_t c = 0; c < cols; ++c) magnitude[c] = std::fabs(w[c] * x[b * cols + c]);
      const double exact = reference::row_times(type, matrix.data(), r, cols, rounded.data() + b * cols);
      const double scale = reference::dot(magnitude.data(), ones.data(), cols);
      EXPECT_NEAR(out[b * rows + r], exact, tolerance * scale + 1e-30) << b << " " << r;
    }
  }
}

}  // namespace sluice
