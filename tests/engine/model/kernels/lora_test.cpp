// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

struct Pair {
  std::int64_t in, out, rank, stack, first;  // rank rows from `first` of a stack
  std::vector<float> a, b;
  std::vector<std::int16_t> a_words, b_words;
  float scale;  // 0.5 times those of the words

  Pair(std::int64_t in_, std::int64_t out_, std::int64_t rank_, std::int64_t before = 0, std::int64_t behind = 0)
      : in(in_), out(out_), rank(rank_), stack(before + rank + behind), first(before), a(random_floats(in * rank, 1)),
        b(random_floats(out * rank, 2)), a_words(lora_padded(in) * stack), b_words(lora_padded(out) * rank) {
    std::vector<std::int16_t> words(std::max(a.size(), b.size()));
    // The other rows of the stack.
    for (std::int64_t k = 0; k < stack; ++k) {
      if (k >= first && k < first + rank) continue;
      lora_to_words(random_floats(in, 40 + k).data(), in, words.data());
      lora_pack_a(words.data(), in, 1, stack, k, a_words.data());
    }
    // The words' values, so that the reference is exact.
    const float a_scale = lora_to_words(a.data(), in * rank, words.data());
    lora_pack_a(words.data(), in, rank, stack, first, a_words.data());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = words[i] * a_scale;
    const float b_scale = lora_to_words(b.data(), out * rank, words.data());
    lora_pack_b(words.data(), out, rank, b_words.data());
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = words[i] * b_scale;
    scale = 0.5f * a_scale * b_scale;
  }
  // y += 0.5 * B A x, the output rows in two parts.
  std::vector<float> add(std::vector<float> x, std::vector<float> y, std::int64_t split) const {
    x.resize(static_cast<std::size_t>(lora_padded(in)));
    std::vector<float> hidden(static_cast<std::size_t>(stack));
    for (std::int64_t g = 0; g * kLoraGroup < stack; ++g) lora_down(x.data(), a_words.data(), in, stack, g, hidden.data());
    lora_up(hidden.data() + first, b_words.data(), rank, scale, 0, split, y.data());
    lora_up(hidden.data() + first, b_words.data(), rank, scale, split, out, y.data());
    return y;
  }
};

// To the nearest of 65,535 steps, whatever the magnitude; zeros stay zeros.
TEST(Lora, RoundsToTheNearestWord) {
  for (const float magnitude : {1e-42f, 1e-9f, 1.0f, 1e30f}) {
    std::vector<float> x = random_floats(1000, 8);
    for (float& v : x) v *= magnitude;
    std::vector<std::int16_t> words(x.size());
    const float scale = lora_to_words(x.data(), 1000, words.data());
    if (magnitude < 1e-40f) continue;  // the scale itself has few bits left
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(words[i] * scale, x[i], 0.501f * scale);
  }
  std::int16_t none[2] = {1, 1};
  const float zeros[2] = {0, -0.0f};
  EXPECT_EQ(lora_to_words(zeros, 2, none), 0.0f);
  EXPECT_EQ(none[0], 0);
  EXPECT_EQ(none[1], 0);
}

TEST(Lora, UnpacksWhatWasPacked) {
  for (const auto& [rows, cols] : {std::pair<std::int64_t, std::int64_t>{1, 5}, {8, 32}, {13, 100}, {16, 64}, {21, 37}}) {
    std::vector<std::int16_t> words(rows * cols), a(rows * lora_padded(cols)), b(cols * lora_padded(rows));
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::int16_t>(977 * i + 1);
    lora_pack_a(words.data(), cols, 3 < rows ? 3 : rows, rows, 0, a.data());
    if (rows > 3) lora_pack_a(words.data() + 3 * cols, cols, rows - 3, rows, 3, a.data());
    lora_pack_b(words.data(), rows, cols, b.data());
    on_every_target([&, rows = rows, cols = cols] {
      std::vector<float> from_a(rows * cols), from_b(rows * cols);
      lora_unpack_a(a.data(), cols, rows, from_a.data());
      lora_unpack_b(b.data(), rows, cols, from_b.data());
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) {
          ASSERT_EQ(from_a[r * cols + c], static_cast<float>(words[r * cols + c]));
          ASSERT_EQ(from_b[c * rows + r], static_cast<float>(words[r * cols + c]));
        }
      }
    });
  }
}

TEST(Lora, MatchesTheReference) {
  for (const std::int64_t rank : {1, 2, 4, 8, 13, 16, 64}) {
    for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{576, 192}, {1536, 576}, {37, 41}}) {
      const Pair pair(in, out, rank, rank % 3 * 5, rank % 2 * 3);
      const auto x = random_floats(in, 3), y = random_floats(out, 4);
      auto expected = y;
      reference::lora_add(x.data(), pair.a.data(), pair.b.data(), in, out, rank, 0.5f, expected.data());
      on_every_target([&] {
        const auto got = pair.add(x, y, 0);
        for (std::int64_t o = 0; o < out; ++o) ASSERT_NEAR(got[o], expected[o], 2e-3f) << rank << " " << in << " " << o;
      });
    }
  }
}

TEST(Lora, BitEqualForEverySplit) {
  const Pair pair(100, 75, 8);
  const auto x = random_floats(100, 5), y = random_floats(75, 6);
  on_every_target([&] {
    const auto whole = pair.add(x, y, 0);
    for (std::int64_t split = 0; split <= 75; ++split) ASSERT_EQ(pair.add(x, y, split), whole) << split;
  });
}

}  // namespace
}  // namespace sluice
