// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

// A block's keys as the cache holds them: positions side by side. What lies behind n must not count.
std::vector<float> block_keys(const float* rows, std::int64_t stride, std::int64_t n, std::int64_t head_size) {
  std::vector<float> keys(static_cast<std::size_t>(head_size * kAttentionBlock), std::nanf(""));
  for (std::int64_t p = 0; p < n; ++p) {
    for (std::int64_t c = 0; c < head_size; ++c) keys[c * kAttentionBlock + p] = rows[p * stride + c];
  }
  return keys;
}

// One row. keys and values: rows of head_size. Borders: positions at which a block ends early.
std::vector<float> attend(const std::vector<float>& queries, std::int64_t heads, std::int64_t head_size,
                          const std::vector<float>& keys, const std::vector<float>& values, const std::vector<std::int64_t>& segments,
                          float scale) {
  AttentionState state;
  state.begin(queries.data(), 1, 0, heads, head_size, scale);
  std::int64_t at = 0;
  for (const std::int64_t segment : segments) {
    for (std::int64_t done = 0; done < segment || (segment == 0 && done == 0); done += kAttentionBlock) {
      const std::int64_t n = std::min(kAttentionBlock, segment - done);
      const auto block = block_keys(keys.data() + at * head_size, head_size, n, head_size);
      state.add_block(block.data(), values.data() + at * head_size, n);
      at += n;
    }
  }
  std::vector<float> out(static_cast<std::size_t>(heads * head_size));
  state.finish(out.data(), 0);
  return out;
}

TEST(Attention, MatchesTheReference) {
  for (const std::int64_t head_size : {8, 24, 64, 128}) {
    for (const std::int64_t heads : {1, 2, 3, 4, 7, 9}) {
      for (const std::int64_t n : {1, 2, 63, 64, 65, 200}) {
        const float scale = 1.0f / std::sqrt(static_cast<float>(head_size));
        const auto queries = random_floats(heads * head_size, 1);
        const auto keys = random_floats(n * head_size, 2), values = random_floats(n * head_size, 3);
        on_every_target([&] {
          const auto out = attend(queries, heads, head_size, keys, values, {n}, scale);
          for (std::int64_t h = 0; h < heads; ++h) {
            std::vector<float> expected(head_size);
            reference::attention(queries.data() + h * head_size, head_size, keys.data(), values.data(), head_size, n, scale,
                                 expected.data());
            for (std::int64_t c = 0; c < head_size; ++c) {
              ASSERT_NEAR(out[h * head_size + c], expected[c], 2e-6f * 4) << head_size << " " << heads << " " << n;
            }
          }
        });
      }
    }
  }
}

TEST(Attention, SegmentsAddUp) {
  const std::int64_t n = 150, head_size = 64, heads = 3;
  const auto queries = random_floats(heads * head_size, 4);
  auto keys = random_floats(n * head_size, 5);
  const auto values = random_floats(n * head_size, 6);
  for (std::int64_t c = 0; c < head_size; ++c) keys[140 * head_size + c] *= 20;  // the maximum comes late
  on_every_target([&] {
    const auto whole = attend(queries, heads, head_size, keys, values, {150}, 0.125f);
    const auto parts = attend(queries, heads, head_size, keys, values, {0, 1, 31, 32, 0, 80, 6}, 0.125f);
    for (std::size_t i = 0; i < whole.size(); ++i) ASSERT_NEAR(parts[i], whole[i], 1e-5f);
  });
}

// A head's result doesn't depend on how many heads go with it.
TEST(Attention, BitEqualForEveryNumberOfHeads) {
  const std::int64_t n = 100, head_size = 64, most = 9;
  const auto queries = random_floats(most * head_size, 7);
  const auto keys = random_floats(n * head_size, 8), values = random_floats(n * head_size, 9);
  on_every_target([&] {
    std::vector<float> alone;
    for (std::int64_t h = 0; h < most; ++h) {
      const std::vector<float> query(queries.begin() + h * head_size, queries.begin() + (h + 1) * head_size);
      const auto out = attend(query, 1, head_size, keys, values, {n}, 0.125f);
      alone.insert(alone.end(), out.begin(), out.end());
    }
    for (std::int64_t heads = 1; heads <= most; ++heads) {
      const auto out = attend(queries, heads, head_size, keys, values, {n}, 0.125f);
      EXPECT_EQ(out, std::vector<float>(alone.begin(), alone.begin() + heads * head_size)) << heads;
    }
  });
}

// A row's result doesn't depend on the rows that go with it, wherever in a block they begin.
TEST(Attention, BitEqualForEveryNumberOfRows) {
  const std::int64_t positions = 80, head_size = 64, heads = 3, most = 5, stride = heads * head_size + 16;
  const auto queries = random_floats(positions * stride, 13);
  const auto keys = random_floats(positions * head_size, 14), values = random_floats(positions * head_size, 15);
  std::vector<float> blocks;  // whole ones, as the cache holds them
  for (std::int64_t p = 0; p < positions; p += kAttentionBlock) {
    const std::int64_t n = std::min(kAttentionBlock, positions - p);
    const auto block = block_keys(keys.data() + p * head_size, head_size, n, head_size);
    blocks.insert(blocks.end(), block.begin(), block.end());
  }
  std::vector<float> padded = values;
  padded.resize(blocks.size(), std::nanf(""));
  on_every_target([&] {
    for (const std::int64_t first : {0, 1, 28, 30, 31, 32, 33, 63, 75}) {
      for (std::int64_t rows = 1; rows <= std::min(most, positions - first); ++rows) {
        AttentionState state;
        state.begin(queries.data() + first * stride, rows, stride, heads, head_size, 0.125f);
        for (std::int64_t p = 0; p <= first + rows - 1; p += kAttentionBlock) {
          state.add_block(blocks.data() + p * head_size, padded.data() + p * head_size, first + 1 - p);
        }
        std::vector<float> out(rows * stride);
        state.finish(out.data(), stride);
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::vector<float> query(queries.begin() + (first + r) * stride, queries.begin() + (first + r + 1) * stride);
          const auto alone = attend(query, heads, head_size, keys, values, {first + r + 1}, 0.125f);
          const std::vector<float> got(out.begin() + r * stride, out.begin() + r * stride + heads * head_size);
          EXPECT_EQ(got, alone) << first << " " << rows << " " << r;
        }
      }
    }
  });
}

TEST(Attention, StateCanBeUsedAgain) {
  const auto queries = random_floats(64, 10), keys = random_floats(640, 11), values = random_floats(640, 12);
  const auto expected = attend(queries, 1, 64, keys, values, {10}, 0.125f);
  const auto block = block_keys(keys.data(), 64, 10, 64);
  AttentionState state;
  std::vector<float> out(64);
  for (int i = 0; i < 2; ++i) {
    state.begin(queries.data(), 1, 64, 1, 64, 0.125f);
    state.add_block(block.data(), values.data(), 10);
    state.finish(out.data(), 64);
    EXPECT_EQ(out, expected);
  }
}

}  // namespace
}  // namespace sluice
