// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/model/kernels/random_blocks.h"
#include "engine/model/kernels/targets.h"
#include "model/kernels/reference.h"

namespace sluice {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Lengths around every vector width, and the model's.
std::vector<std::int64_t> lengths() {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 1; n <= 70; ++n) all.push_back(n);
  all.insert(all.end(), {576, 1536, 2049});
  return all;
}

TEST(VectorMath, MatchesPlainLoops) {
  for (const std::int64_t n : lengths()) {
    SCOPED_TRACE(n);
    const auto x = random_floats(n, 1), w = random_floats(n, 2);
    on_every_target([&] {
      std::vector<float> expected(n), out(n + 1, 7.0f);
      reference::rms_norm(x.data(), w.data(), n, 1e-5f, expected.data());
      rms_norm(x.data(), w.data(), n, 1e-5f, out.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], expected[i], 1e-5f * (1 + std::fabs(expected[i])));

      reference::silu_mul(x.data(), w.data(), n, expected.data());
      silu_mul(x.data(), w.data(), n, out.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], expected[i], 1e-6f * (1 + std::fabs(expected[i])));

      expected = x;
      reference::softmax(expected.data(), n);
      std::copy(x.begin(), x.end(), out.begin());
      softmax(out.data(), n);
      for (std::int64_t i = 0; i < n; ++i) ASSERT_NEAR(out[i], expected[i], 1e-6f);

      for (std::int64_t i = 0; i < n; ++i) expected[i] = w[i] + 0.5f * x[i];
      std::copy(w.begin(), w.end(), out.begin());
      axpy(0.5f, x.data(), n, out.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_FLOAT_EQ(out[i], expected[i]);
      std::copy(w.begin(), w.end(), out.begin());
      add_in_place(x.data(), n, out.data());
      for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(out[i], w[i] + x[i]);
      ASSERT_EQ(out[n], 7.0f) << "wrote behind the end";

      ASSERT_NEAR(dot(x.data(), w.data(), n), reference::dot(x.data(), w.data(), n), 1e-6 * static_cast<double>(n) + 1e-6);
      ASSERT_NEAR(log_sum_exp(x.data(), n), reference::log_sum_exp(x.data(), n, 1.0), 1e-6 * 10);
      ASSERT_NEAR(log_sum_exp(x.data(), n, 2.5f), reference::log_sum_exp(x.data(), n, 2.5), 1e-6 * 20);
      ASSERT_EQ(arg_max(x.data(), n), std::max_element(x.begin(), x.end()) - x.begin());
    });
  }
}

TEST(VectorMath, InputMayBeOutput) {
  const std::int64_t n = 37;
  const auto x = random_floats(n, 3), w = random_floats(n, 4);
  std::vector<float> apart(n), same(x);
  rms_norm(x.data(), w.data(), n, 1e-5f, apart.data());
  rms_norm(same.data(), w.data(), n, 1e-5f, same.data());
  EXPECT_EQ(same, apart);
  silu_mul(x.data(), w.data(), n, apart.data());
  same = x;
  silu_mul(same.data(), w.data(), n, same.data());
  EXPECT_EQ(same, apart);
}

TEST(VectorMath, ExtremesStayFinite) {
  on_every_target([&] {
    std::vector<float> x = {1000.0f, 1001.0f, -1e30f};
    EXPECT_NEAR(log_sum_exp(x.data(), 3), 1001.0 + std::log1p(std::exp(-1.0)), 1e-4);
    softmax(x.data(), 3);
    EXPECT_NEAR(x[1], 1 / (1 + std::exp(-1.0)), 1e-6);
    EXPECT_EQ(x[2], 0.0f);
    const float gate[] = {-200.0f, 200.0f, -1e30f, 0.0f}, up[] = {1.0f, 1.0f, 1.0f, 5.0f};
    float out[4];
    silu_mul(gate, up, 4, out);
    EXPECT_NEAR(out[0], 0.0f, 1e-30f);
    EXPECT_EQ(out[1], 200.0f);
    EXPECT_NEAR(out[2], 0.0f, 1e-6f);
    EXPECT_EQ(out[3], 0.0f);
  });
}

// A head of the embedded model: sums over 49152 values must not lose digits.
TEST(VectorMath, LogSumExpOfAVocabulary) {
  const std::int64_t n = 49152;
  auto x = random_floats(n, 5);
  for (float& v : x) v *= 3;
  on_every_target([&] {
    EXPECT_NEAR(log_sum_exp(x.data(), n), reference::log_sum_exp(x.data(), n, 1.0), 2e-6 * 16);
  });
}

TEST(VectorMath, ExpSumsAndTheirGradientMatchPlainLoops) {
  for (std::int64_t n : {1, 7, 32, 1024, 2500}) {
    std::vector<float> x = random_floats(n, static_cast<unsigned>(n));
    for (float& v : x) v = v * 5 + 300;
    on_every_target([&] {
      const float scale = 1.25f;
      const ExpSums sums = exp_sums(x.data(), n, scale);
      double most = -1e9, sum = 0, weighted = 0;
      for (float v : x) most = std::max(most, static_cast<double>(v));
      for (float v : x) {
        const double u = (static_cast<double>(v) - most) * 1.25;
        sum += std::exp(u), weighted += u * std::exp(u);
      }
      EXPECT_EQ(static_cast<double>(sums.largest), most);
      EXPECT_NEAR(sums.sum, sum, 4e-6 * sum);
      EXPECT_NEAR(sums.weighted, weighted, 4e-6 * (1 + std::fabs(weighted)));

      const double log_z = most * 1.25 + std::log(sum);
      const ExpGradient g{scale, static_cast<float>(log_z), 0.5f, -0.25f, static_cast<float>(1 - log_z)};
      std::vector<float> z = x;
      exp_gradient(g, n, z.data());
      for (std::size_t i = 0; i < z.size(); ++i) {
        const double u = static_cast<double>(x[i]) * 1.25, p = std::exp(u - log_z);
        ASSERT_NEAR(z[i], -p * (0.5 - 0.25 * (u + 1 - log_z)), 1e-4 * p + 1e-9) << i;
      }
    });
  }
}

TEST(VectorMath, ArgMaxTakesTheFirstAndNoNan) {
  on_every_target([&] {
    for (std::int64_t n = 1; n <= 40; ++n) {
      std::vector<float> x(n, -1.0f);
      x[n / 2] = x[n - 1] = 3.0f;
      x[0] = n > 2 ? kNan : 3.0f;
      EXPECT_EQ(arg_max(x.data(), n), n > 2 ? n / 2 : 0) << n;
    }
    const std::vector<float> nothing(20, kNan), least(20, -kInf);
    EXPECT_EQ(arg_max(nothing.data(), 20), 0);
    EXPECT_EQ(arg_max(least.data(), 20), 0);
  });
}

TEST(VectorMath, RotaryTurnsPairs) {
  const std::int64_t head = 64;
  std::vector<float> cos_sin(head);
  for (std::int64_t i = 0; i < head / 2; ++i) {
    cos_sin[i] = std::cos(0.1f * static_cast<float>(i));
    cos_sin[head / 2 + i] = std::sin(0.1f * static_cast<float>(i));
  }
  const auto x = random_floats(head, 6);
  on_every_target([&] {
    auto interleaved = x, split = x;
    rotary_interleaved(interleaved.data(), cos_sin.data(), head);
    rotary_split(split.data(), cos_sin.data(), head);
    for (std::int64_t i = 0; i < head / 2; ++i) {
      const float c = cos_sin[i], s = cos_sin[head / 2 + i];
      EXPECT_NEAR(interleaved[2 * i], x[2 * i] * c - x[2 * i + 1] * s, 1e-6f);
      EXPECT_NEAR(interleaved[2 * i + 1], x[2 * i] * s + x[2 * i + 1] * c, 1e-6f);
      EXPECT_NEAR(split[i], x[i] * c - x[i + head / 2] * s, 1e-6f);
      EXPECT_NEAR(split[i + head / 2], x[i] * s + x[i + head / 2] * c, 1e-6f);
    }
  });
}

}  // namespace
}  // namespace sluice
