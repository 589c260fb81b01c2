// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/blocks.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

struct Pair {
  std::int64_t in, out, rank;
  std::vector<float> a, b;
  std::vector<std::uint16_t> a_halves, b_halves;
  float scale;  // 0.5 with the halves' powers taken back

  Pair(std::int64_t in_, std::int64_t out_, std::int64_t rank_)
      : in(in_), out(out_), rank(rank_), a(random_floats(in * rank, 1)), b(random_floats(out * rank, 2)),
        a_halves(a.size()), b_halves(b.size()) {
    std::vector<float> b_t(b.size());
    lora_transpose_b(b.data(), out, rank, b_t.data());
    scale = 0.5f * lora_to_halves(a.data(), in * rank, a_halves.data()) * lora_to_halves(b_t.data(), out * rank, b_halves.data());
    // What the halves stand for, so that the reference is exact.
    const float a_power = lora_to_halves(a.data(), in * rank, a_halves.data());
    const float b_power = lora_to_halves(b.data(), out * rank, std::vector<std::uint16_t>(b.size()).data());
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = half_to_float(a_halves[i]) * a_power;
    for (std::int64_t o = 0; o < out; ++o) {
      for (std::int64_t k = 0; k < rank; ++k) b[o * rank + k] = half_to_float(b_halves[k * out + o]) * b_power;
    }
  }
  // y += 0.5 * B A x, the output rows in two parts.
  std::vector<float> add(const std::vector<float>& x, std::vector<float> y, std::int64_t split) const {
    std::vector<float> hidden(static_cast<std::size_t>(rank));
    lora_down(x.data(), a_halves.data(), in, rank, hidden.data());
    lora_up(hidden.data(), b_halves.data(), out, rank, scale, 0, split, y.data());
    lora_up(hidden.data(), b_halves.data(), out, rank, scale, split, out, y.data());
    return y;
  }
};

// Every half, and values between: nearest, ties to even.
TEST(Lora, RoundsToHalves) {
  for (std::uint32_t h = 0; h < 0x7c00; h += 7) {
    const float pair[2] = {half_to_float(static_cast<std::uint16_t>(h)), 32768.0f};  // the largest fixes the power at one half
    std::uint16_t out[2];
    const float power = lora_to_halves(pair, 2, out);
    if (pair[0] > 32768.0f || pair[0] < 0x1p-13f) continue;
    EXPECT_EQ(half_to_float(out[0]) * power, pair[0]) << h;
  }
  std::uint16_t out[3];
  const float some[3] = {16384.0f, 2049.0f, -2051.0f};  // odd multiples of half a step
  EXPECT_EQ(lora_to_halves(some, 3, out), 1.0f);
  EXPECT_EQ(half_to_float(out[1]), 2048.0f);
  EXPECT_EQ(half_to_float(out[2]), -2052.0f);
}

// Small factors, as after the first steps of training, keep their relative precision.
TEST(Lora, SmallFactorsKeepTheirBits) {
  std::vector<float> x = random_floats(1000, 8);
  for (float& v : x) v *= 1e-9f;
  std::vector<std::uint16_t> halves(x.size());
  std::vector<float> back(x.size());
  const float power = lora_to_halves(x.data(), 1000, halves.data());
  on_every_target([&] {
    lora_to_floats(halves.data(), 1000, back.data());
    for (std::size_t i = 0; i < x.size(); ++i) ASSERT_NEAR(back[i] * power, x[i], 5e-4f * std::fabs(x[i]) + 1e-17f);
  });
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
