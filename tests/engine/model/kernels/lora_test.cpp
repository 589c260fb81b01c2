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
  std::int64_t in, out, rank;
  std::vector<float> a, b;
  std::vector<std::int16_t> a_words, b_words;
  float scale;  // 0.5 times those of the words

  Pair(std::int64_t in_, std::int64_t out_, std::int64_t rank_)
      : in(in_), out(out_), rank(rank_), a(random_floats(in * rank, 1)), b(random_floats(out * rank, 2)),
        a_words(a.size()), b_words(b.size()) {
    std::vector<float> b_t(b.size());
    lora_transpose_b(b.data(), out, rank, b_t.data());
    const float a_scale = lora_to_words(a.data(), in * rank, a_words.data());
    const float b_scale = lora_to_words(b_t.data(), out * rank, b_words.data());
    scale = 0.5f * a_scale * b_scale;
    // What the words stand for, so that the reference is exact.
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = a_words[i] * a_scale;
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t k = 0; k < rank; ++k) b[o * rank + k] = b_words[k * out + o] * b_scale;
    }
  }
  // y += 0.5 * B A x, the output rows in two parts.
  std::vector<float> add(const std::vector<float>& x, std::vector<float> y, std::int64_t split) const {
    std::vector<float> hidden(static_cast<std::size_t>(rank));
    lora_down(x.data(), a_words.data(), in, rank, hidden.data());
    lora_up(hidden.data(), b_words.data(), out, rank, scale, 0, split, y.data());
    lora_up(hidden.data(), b_words.data(), out, rank, scale, split, out, y.data());
    return y;
  }
};

// To the nearest of 65,535 steps, whatever the magnitude; zeros stay zeros.
TEST(Lora, RoundsToTheNearestWord) {
  for (const float magnitude : {1e-42f, 1e-9f, 1.0f, 1e30f}) {
    std::vector<float> x = random_floats(1000, 8);
    for (float& v : x) v *= magnitude;
    std::vector<std::int16_t> words(x.size());
    std::vector<float> back(x.size());
    const float scale = lora_to_words(x.data(), 1000, words.data());
    on_every_target([&] {
      lora_to_floats(words.data(), 1000, back.data());
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(back[i], static_cast<float>(words[i]));
    });
    if (magnitude < 1e-40f) continue;  // the scale itself has few bits left
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(words[i] * scale, x[i], 0.501f * scale);
  }
  std::int16_t none[2] = {1, 1};
  const float zeros[2] = {0, -0.0f};
  EXPECT_EQ(lora_to_words(zeros, 2, none), 0.0f);
  EXPECT_EQ(none[0], 0);
  EXPECT_EQ(none[1], 0);
}

TEST(Lora, MatchesTheReference) {
  for (const std::int64_t rank : {1, 2, 4, 8, 13, 16, 64}) {
    for (const auto& [in, out] : {std::pair<std::int64_t, std::int64_t>{576, 192}, {1536, 576}, {37, 41}}) {
      const Pair pair(in, out, rank);
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
