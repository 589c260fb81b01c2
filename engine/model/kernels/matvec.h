// SPDX-License-Identifier: GPL-3.0-or-later
// Decode arithmetic: a few activation rows times a weight matrix that stays in its blocks.
//
// Activations are cut in blocks of 32 values, each scaled by its largest magnitude to int16; weights are multiplied with
// them as integers, exactly, and one f32 multiply-add a block applies both scales. 16 bits cost next to no accuracy
// (2e-4 in a log-probability) where 8 bits move one token in a hundred.
//
// A result depends on its weight row and its activation row only: it is bit-equal for every batch size, every place in
// the batch and every split of the rows. Between instruction sets it differs by the rounding of one f32 sum.
//
// matvec_rows is single-threaded over a row range, so callers split rows over their own threads. Run-time dispatch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/block_type.h"

namespace sluice {

class PrefetchStream;

// Rows of activations, as f32 and as int16 blocks in the order the kernels read. Owns its memory, grows and never
// shrinks, so that a step reuses it. Written by one thread at a time; readable by many in between.
class ActivationBlocks {
 public:
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }

  // Sets the size; contents are undefined until set_row or quantize_activations wrote every row.
  void resize(std::int64_t rows, std::int64_t cols);
  // Copies and quantises cols() values. Different rows may be set by different threads. A block with a NaN or an
  // infinity makes every result of its row NaN: never a plausible number.
  void set_row(std::int64_t row, const float* x);

  // For the kernels; see activation_layout.h.
  std::int64_t step_blocks() const { return step_blocks_; }
  std::int64_t row_blocks() const { return row_blocks_; }      // of a row, whole steps
  std::int64_t padded_blocks() const { return padded_blocks_; }  // of a row, whole chunks of sums
  const float* floats(std::int64_t row) const { return floats_.begin.get() + row * float_stride_; }
  const std::int16_t* values() const { return values_.begin.get(); }
  const float* scales() const { return scales_.begin.get(); }
  const float* sums() const { return sums_.begin.get(); }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  template <class T>
  struct Aligned {  // to 64 bytes; only grows
    std::unique_ptr<T[], Free> begin;
    std::size_t capacity = 0;
    void reserve(std::int64_t n);
  };

  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::int64_t step_blocks_ = 0;
  std::int64_t row_blocks_ = 0;
  std::int64_t padded_blocks_ = 0;
  std::int64_t float_stride_ = 0;
  Aligned<float> floats_;
  Aligned<std::int16_t> values_;
  Aligned<float> scales_;
  Aligned<float> sums_;
};

// out becomes n_rows x n_cols with row r taken from x + r * x_stride. Any n_cols > 0; quantised weights need a multiple
// of 32 (256 for the K types).
void quantize_activations(const float* x, std::int64_t n_rows, std::int64_t n_cols, std::int64_t x_stride,
                          ActivationBlocks& out);

// Whether matvec_rows multiplies a type as integers. The others are dequantised row by row and multiplied in f32.
constexpr bool has_integer_kernel(BlockType type) {
  switch (type) {
    case BlockType::kQ4_0:
    case BlockType::kQ4_1:
    case BlockType::kQ5_0:
    case BlockType::kQ5_1:
    case BlockType::kQ8_0:
    case BlockType::kIQ4_NL:
    case BlockType::kQ4_K:
    case BlockType::kQ5_K:
    case BlockType::kQ6_K: return true;
    default: return false;
  }
}

// For every activation row b and every weight row r in [row_begin, row_end):
//   out[b * out_stride + r] = sum over c of W[r, c] * x[b, c]
// `matrix` points at weight row 0; a weight row has x.cols() values. Each weight block is read once for up to eight
// activation rows. Types with an integer kernel use integer arithmetic, the others f32. `ahead`, if any, is what the caller
// reads afterwards; the integer kernels take a step of it a row.
void matvec_rows(BlockType type, const std::byte* matrix, std::int64_t row_begin, std::int64_t row_end,
                 const ActivationBlocks& x, float* out, std::int64_t out_stride, PrefetchStream* ahead = nullptr);

}  // namespace sluice
