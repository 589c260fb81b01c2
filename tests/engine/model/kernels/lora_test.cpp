// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/lora.h"

#include <gtest/gtest.h>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

struct Pair {
  std::int64_t in, out, rank;
  std::vector<float> a, b, b_t;

  Pair(std::int64_t in_, std::int64_t out_, std::int64_t rank_)
      : in(in_), out(out_), rank(rank_), a(random_floats(in * rank, 1)), b(random_floats(out * rank, 2)), b_t(b.size()) {
    lora_transpose_b(b.data(), out, rank, b_t.data());
  }
  // y += 0.5 * B A x, the output rows in two parts.
  std::vector<float> add(const std::vector<float>& x, std::vector<float> y, std::int64_t split) const {
    std::vector<float> hidden(static_cast<std::size_t>(rank));
    lora_down(x.data(), a.data(), in, rank, hidden.data());
    lora_up(hidden.data(), b_t.data(), out, rank, 0.5f, 0, split, y.data());
    lora_up(hidden.data(), b_t.data(), out, rank, 0.5f, split, out, y.data());
    return y;
  }
};

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
