// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace sluice {
namespace {

const std::vector<TokenId> kNone;

SamplingParams at_temperature(float t, std::uint64_t seed = 1) {
  SamplingParams p;
  p.temperature = t;
  p.seed = seed;
  return p;
}

std::vector<float> logits(int n) {
  std::vector<float> z;
  for (int i = 0; i < n; ++i) z.push_back(3 * std::sin(static_cast<float>(i) * 1.3f));
  return z;
}

double log_softmax(const std::vector<float>& z, int token, double t = 1) {
  double sum = 0;
  for (const float x : z) sum += std::exp(static_cast<double>(x) / t);
  return static_cast<double>(z[static_cast<std::size_t>(token)]) / t - std::log(sum);
}

// Shares of `draws` samples with draw numbers 0, 1, ... of one seed.
std::map<TokenId, double> shares(const std::vector<float>& z, const SamplingParams& p, int draws) {
  Sampler sampler;
  std::map<TokenId, double> out;
  std::vector<TokenId> generated;
  for (int i = 0; i < draws; ++i) {
    const SampledToken t = sampler.sample(z.data(), static_cast<int>(z.size()), p, generated, nullptr);
    out[t.token] += 1.0 / draws;
    generated.push_back(0);
  }
  return out;
}

TEST(Sampler, SMP1_SMP4_GreedyTakesTheLargestAndReportsRealValues) {
  Sampler sampler;
  const auto z = logits(300);
  const SampledToken t = sampler.sample(z.data(), 300, at_temperature(0), kNone, nullptr);
  EXPECT_EQ(t.token, std::max_element(z.begin(), z.end()) - z.begin());
  EXPECT_NEAR(t.lp_full, log_softmax(z, t.token), 1e-5);
  EXPECT_EQ(t.lp_full, t.lp_raw);
  EXPECT_EQ(t.lp_full, t.lp_mu);
  EXPECT_TRUE(t.finite);
}

TEST(Sampler, SMP1_ATemperatureTooSmallToDivideByIsArgmax) {
  Sampler sampler;
  const auto z = logits(300);
  const SampledToken greedy = sampler.sample(z.data(), 300, at_temperature(0), kNone, nullptr);
  for (const float t : {1e-45f, 1e-38f, 1e-20f, 1e-7f, 1e-6f, 1e-5f}) {
    for (const int top_k : {0, 5}) {
      SamplingParams p = at_temperature(t, 3);
      p.top_k = top_k;
      p.top_logprobs = 2;
      const SampledToken s = sampler.sample(z.data(), 300, p, kNone, nullptr);
      EXPECT_EQ(s.token, greedy.token) << t;
      for (const float lp : {s.lp_full, s.lp_mu, s.lp_raw, s.top[0].logprob}) EXPECT_TRUE(std::isfinite(lp)) << t;
      if (t < 1e-6f) {
        EXPECT_EQ(s.lp_full, greedy.lp_full);
      }
    }
  }
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const auto z = logits(12);
  const auto got = shares(z, at_temperature(1.3f), 40000);
  for (int i = 0; i < 12; ++i) {
    const double p = std::exp(log_softmax(z, i, 1.3));
    EXPECT_NEAR(got.contains(i) ? got.at(i) : 0, p, 5 * std::sqrt(p / 40000) + 1e-4) << i;
  }
}

TEST(Sampler, LogprobsOfAnUntouchedDraw) {
  Sampler sampler;
  const auto z = logits(300);
  for (const float t : {0.3f, 0.6f, 1.0f, 1.5f}) {
    const SampledToken s = sampler.sample(z.data(), 300, at_temperature(t, 9), kNone, nullptr);
    EXPECT_NEAR(s.lp_full, log_softmax(z, s.token, static_cast<double>(t)), 2e-5);
    EXPECT_NEAR(s.lp_mu, s.lp_full, 1e-6);
    EXPECT_NEAR(s.lp_raw, log_softmax(z, s.token), 2e-5);
  }
}

TEST(Sampler, SMP3_TopKKeepsTheKLargest) {
  const auto z = logits(500);
  SamplingParams p = at_temperature(1);
  p.top_k = 3;
  const auto got = shares(z, p, 3000);
  std::vector<std::pair<float, TokenId>> order;
  for (int i = 0; i < 500; ++i) order.emplace_back(-z[static_cast<std::size_t>(i)], i);
  std::sort(order.begin(), order.end());
  EXPECT_EQ(got.size(), 3u);
  double mass = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(got.contains(order[static_cast<std::size_t>(i)].second));
    mass += std::exp(log_softmax(z, order[static_cast<std::size_t>(i)].second));
  }
  Sampler sampler;
  const SampledToken s = sampler.sample(z.data(), 500, p, kNone, nullptr);
  EXPECT_NEAR(s.lp_full - s.lp_mu, std::log(mass), 1e-4);
  for (const int off : {0, -1, 500, 1000000}) {
    p.top_k = off;
    const SampledToken t = sampler.sample(z.data(), 500, p, kNone, nullptr);
    EXPECT_NEAR(t.lp_mu, t.lp_full, 1e-6) << off;
  }
}

TEST(Sampler, TopPKeepsTheSmallestSetWithThatMass) {
  const std::vector<float> z = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  SamplingParams p = at_temperature(1);
  p.top_p = 0.7f;
  EXPECT_EQ(shares(z, p, 500).size(), 2u);
  p.top_p = 0.4f;
  EXPECT_EQ(shares(z, p, 100).size(), 1u);
  p.top_p = 0.0f;
  EXPECT_EQ(shares(z, p, 100).size(), 1u);
  p.top_p = 0.81f;
  const auto three = shares(z, p, 20000);
  EXPECT_EQ(three.size(), 3u);
  EXPECT_NEAR(three.at(0), 0.5 / 0.95, 0.02);
  // Of what top-k left: 0.5 / 0.8 = 0.625 is enough.
  p.top_k = 2;
  p.top_p = 0.6f;
  EXPECT_EQ(shares(z, p, 200).size(), 1u);
  // A flat distribution over many: the margin has to widen.
  std::vector<float> flat(5000, 0.0f);
  p = at_temperature(1.5f);
  p.top_p = 0.5f;
  Sampler sampler;
  EXPECT_NEAR(sampler.sample(flat.data(), 5000, p, kNone, nullptr).lp_mu, -std::log(2500.0), 1e-3);
}

TEST(Sampler, MinPIsRelativeToTheLikeliest) {
  const std::vector<float> z = {std::log(0.5f), std::log(0.3f), std::log(0.15f), std::log(0.05f)};
  SamplingParams p = at_temperature(1);
  p.min_p = 0.5f;
  EXPECT_EQ(shares(z, p, 500).size(), 2u);
  p.min_p = 1.0f;
  EXPECT_EQ(shares(z, p, 100).size(), 1u);
}

TEST(Sampler, SMP8_PenaltiesCountWhatTheyShould) {
  Sampler sampler;
  const std::vector<float> z = {2.0f, 1.9f, -1.0f};
  const std::vector<TokenId> generated{0, 0}, prompt{1};
  SamplingParams p = at_temperature(0);
  p.presence_penalty = 0.2f;
  EXPECT_EQ(sampler.sample(z.data(), 3, p, generated, &prompt).token, 1);  // 1.8 < 1.9; the prompt's 1 is not touched
  p = at_temperature(0);
  p.frequency_penalty = 0.04f;
  EXPECT_EQ(sampler.sample(z.data(), 3, p, generated, &prompt).token, 0);  // 2 - 0.08
  p.frequency_penalty = 0.06f;
  EXPECT_EQ(sampler.sample(z.data(), 3, p, generated, &prompt).token, 1);
  p = at_temperature(0);
  p.repetition_penalty = 1.2f;
  EXPECT_EQ(sampler.sample(z.data(), 3, p, kNone, &prompt).token, 0);       // 1.9 / 1.2, prompt counts
  EXPECT_EQ(sampler.sample(z.data(), 3, p, generated, nullptr).token, 1);
  const SampledToken t = sampler.sample(z.data(), 3, p, generated, nullptr);
  EXPECT_NEAR(t.lp_full, log_softmax(z, 1), 1e-5);                          // raw logits
  EXPECT_GT(t.lp_mu, t.lp_full);
}

TEST(Sampler, BiasAndSuppression) {
  Sampler sampler;
  const auto z = logits(50);
  SamplingParams p = at_temperature(0);
  p.logit_bias = {{7, 100.0f}};
  EXPECT_EQ(sampler.sample(z.data(), 50, p, kNone, nullptr).token, 7);
  p = at_temperature(1);
  p.min_tokens = 2;
  const TokenId best = static_cast<TokenId>(std::max_element(z.begin(), z.end()) - z.begin());
  p.suppress_tokens = {best};
  EXPECT_NE(sampler.sample(z.data(), 50, p, {3}, nullptr).token, best);
  p.temperature = 0;
  EXPECT_EQ(sampler.sample(z.data(), 50, p, {3, 3}, nullptr).token, best);
  const std::vector<float> two{1.0f, 2.0f};
  p.suppress_tokens = {0, 1};
  EXPECT_FALSE(sampler.sample(two.data(), 2, p, kNone, nullptr).finite);
}

// Rewards of repetition so large that no float holds the product: the token is as good as certain, and nothing fails.
TEST(Sampler, APenaltyNeverMakesALogitInfinite) {
  Sampler sampler;
  const auto z = logits(300);
  const std::vector<TokenId> prompt{1};
  ASSERT_GT(z[1], 0);
  for (const float temperature : {0.0f, 1e-6f, 0.3f, 0.7f, 1.0f, 1.9f}) {
    for (const bool truncates : {false, true}) {
      SamplingParams p = at_temperature(temperature, 3);
      if (truncates) p.top_k = 5, p.top_p = 0.9f, p.min_p = 0.01f;
      for (const float penalty : {1e-38f, 1e-45f}) {
        SCOPED_TRACE(temperature);
        p.repetition_penalty = penalty;
        const SampledToken t = sampler.sample(z.data(), 300, p, kNone, &prompt);
        EXPECT_TRUE(t.finite);
        EXPECT_EQ(t.token, 1);
        EXPECT_EQ(t.lp_mu, 0.0f);
        EXPECT_TRUE(std::isfinite(t.lp_full) && std::isfinite(t.lp_raw));
      }
    }
  }
  // The other penalties, at the ends of their ranges and near that of a float.
  std::vector<float> most(50, -1.5e38f);
  most[7] = 1.5e38f;
  SamplingParams p = at_temperature(0);
  p.repetition_penalty = 10;
  p.presence_penalty = p.frequency_penalty = -2;
  const SampledToken t = sampler.sample(most.data(), 50, p, {3, 7, 7}, nullptr);
  EXPECT_TRUE(t.finite);
  EXPECT_EQ(t.token, 7);
}

TEST(Sampler, FlagsLogitsThatAreNotFinite) {
  Sampler sampler;
  auto z = logits(50);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    z[13] = bad;
    EXPECT_FALSE(sampler.sample(z.data(), 50, at_temperature(1), kNone, nullptr).finite);
  }
}

TEST(Sampler, TopLogprobsAreSortedAndRaw) {
  Sampler sampler;
  const auto z = logits(300);
  SamplingParams p = at_temperature(0.5f);
  p.top_logprobs = 5;
  const SampledToken t = sampler.sample(z.data(), 300, p, kNone, nullptr);
  ASSERT_EQ(t.top.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(t.top[i].logprob, log_softmax(z, t.top[i].token), 2e-5);
    EXPECT_GE(t.top[i == 0 ? 0 : i - 1].logprob, t.top[i].logprob);
  }
  EXPECT_EQ(t.top[0].token, std::max_element(z.begin(), z.end()) - z.begin());
}

TEST(Sampler, DrawsDependOnSeedAndNumberOnly) {
  EXPECT_EQ(counter_uniform(5, 9), counter_uniform(5, 9));
  EXPECT_NE(counter_uniform(5, 9), counter_uniform(5, 10));
  EXPECT_NE(counter_uniform(5, 9), counter_uniform(6, 9));
  double sum = 0;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    const double u = counter_uniform(i % 100, i / 100);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  EXPECT_NEAR(sum / 10000, 0.5, 0.015);
}

}  // namespace
}  // namespace sluice
