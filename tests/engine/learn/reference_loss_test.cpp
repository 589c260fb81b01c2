// SPDX-License-Identifier: GPL-3.0-or-later
// Closed forms on hand-made sequences, central differences, and the traps of learning.md §6.
#include "learn/reference_loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "engine/learn/loss_golden.h"

namespace sluice {
namespace {

LossSettings plain() {
  LossSettings s;
  s.kl_beta = 0;
  s.aggregation = Aggregation::kTokenMean;
  return s;
}

// One sample of one token.
LossInput single(double log_ratio, double advantage, int age = 0) {
  LossInput in;
  in.start = {0, 1};
  in.age = {age};
  in.weight = {1};
  in.lp_full = {-2};
  in.lp_cur = {-2 + log_ratio};
  in.advantage = {advantage};
  in.mask = {1};
  return in;
}

double loss_of(const LossInput& in, const LossSettings& s) { return reference_loss(in, s, 8).loss; }

// Five samples: fresh and stale, unequal lengths, a fully masked row, T differs by construction of the log-probs.
LossInput random_input(unsigned seed, bool with_ref) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> noise(0, 0.25);
  std::uniform_real_distribution<double> lp(-4, -0.1);
  LossInput in;
  in.start = {0, 3, 4, 9, 11, 17};
  in.age = {0, 1, 3, 0, 0};
  in.weight = {1, 1, 1, 1, 0.5};
  const double advantages[] = {0.7, -1.1, 0.4, -0.9, 0};
  for (int i = 0; i < 5; ++i) {
    for (auto t = in.start[i]; t < in.start[i + 1]; ++t) {
      in.lp_full.push_back(lp(rng));
      in.lp_cur.push_back(in.lp_full.back() + noise(rng));
      if (with_ref) in.lp_ref.push_back(in.lp_full.back() + noise(rng));
      in.advantage.push_back(advantages[i]);
      in.mask.push_back(i == 3 || t == 5 ? 0 : 1);
    }
  }
  return in;
}

TEST(ReferenceLoss, PpoClipOfBothSignsAndSides) {
  const LossSettings s = plain();
  const double up = std::log(1.5), down = std::log(0.5), in_band = std::log(1.1);
  EXPECT_NEAR(loss_of(single(in_band, 2), s), -2.2, 1e-12);
  EXPECT_NEAR(loss_of(single(up, 2), s), -1.2 * 2, 1e-12);     // clipped: no more gain
  EXPECT_NEAR(loss_of(single(down, 2), s), -0.5 * 2, 1e-12);   // not clipped: may recover
  EXPECT_NEAR(loss_of(single(up, -2), s), 1.5 * 2, 1e-12);     // not clipped
  EXPECT_NEAR(loss_of(single(down, -2), s), 0.8 * 2, 1e-12);   // clipped
  EXPECT_EQ(reference_loss(single(up, 2), s, 8).grad[0], 0.0);
  EXPECT_EQ(reference_loss(single(up, 2), s, 8).clip_fraction, 1.0);
  EXPECT_EQ(reference_loss(single(down, 2), s, 8).clip_fraction, 0.0);
}

TEST(ReferenceLoss, DualClipBoundsTheLossOfARejectedToken) {
  LossSettings s = plain();
  const LossInput far = single(std::log(5.0), -1);
  EXPECT_NEAR(loss_of(far, s), 3, 1e-12);
  EXPECT_EQ(reference_loss(far, s, 8).grad[0], 0.0);
  s.dual_clip = 0;
  EXPECT_NEAR(loss_of(far, s), 5, 1e-12);
}

TEST(ReferenceLoss, FreshRatioIsOneAndTheGradientIsMinusA) {
  for (double a : {-1.0, 0.0, 0.5}) {
    const LossOutput out = reference_loss(single(0, a), plain(), 8);
    EXPECT_EQ(out.loss, -a);
    EXPECT_EQ(out.grad[0], -a);
  }
}

TEST(ReferenceLoss, TruncatedWeightIsAConstantOfTheGradient) {
  const LossSettings s = plain();
  const LossOutput low = reference_loss(single(std::log(0.25), 2, 3), s, 8);
  EXPECT_TRUE(low.too_far == std::vector<std::int64_t>{0});
  LossSettings wide = s;
  wide.too_far_low = 0;
  wide.too_far_high = 1e9;
  // -w A lp has gradient -w A; were w not detached, it would be twice that (w = exp(lp_cur - lp_full)).
  EXPECT_NEAR(reference_loss(single(std::log(0.25), 2, 3), wide, 8).grad[0], -0.5, 1e-12);
  const LossOutput cut = reference_loss(single(std::log(7.0), 2, 3), wide, 8);
  EXPECT_NEAR(cut.grad[0], -4, 1e-12);
  EXPECT_EQ(cut.truncated_fraction, 1.0);
}

TEST(ReferenceLoss, AVastGapIsClampedAndFinite) {
  LossSettings s = plain();
  s.too_far_low = 0;
  s.too_far_high = std::numeric_limits<double>::infinity();
  for (double gap : {1e3, -1e3}) {
    for (int age : {0, 2}) {
      const LossOutput out = reference_loss(single(gap, -1, age), s, 8);
      EXPECT_TRUE(std::isfinite(out.loss) && std::isfinite(out.grad[0])) << gap << " " << age;
    }
  }
}

TEST(ReferenceLoss, MeanOfLogRatiosKeepsLongSequencesNearOne) {
  std::mt19937 rng(3);
  std::normal_distribution<double> noise(0, 1e-3);
  LossInput in;
  in.start = {0, 1000};
  in.age = {2};
  in.weight = {1};
  for (int t = 0; t < 1000; ++t) {
    in.lp_full.push_back(-1);
    in.lp_cur.push_back(-1 + noise(rng));
    in.advantage.push_back(1);
    in.mask.push_back(1);
  }
  const LossOutput out = reference_loss(in, plain(), 8);
  EXPECT_TRUE(out.too_far.empty());
  EXPECT_NEAR(out.loss, -1, 1e-3);
}

TEST(ReferenceLoss, KlIsHalfTheSquareUnderTheSameAggregation) {
  LossSettings s = plain();
  s.kl_beta = 0.1;
  LossInput in = single(0, 0);
  in.lp_ref = {-2.5};
  const LossOutput out = reference_loss(in, s, 8);
  EXPECT_NEAR(out.kl, 0.1 * 0.25 / 2, 1e-15);
  EXPECT_NEAR(out.grad[0], 0.1 * 0.5, 1e-15) << "KL pulls on samples with A = 0 too";
}

TEST(ReferenceLoss, AggregationsByHand) {
  const std::vector<std::int64_t> start = {0, 2, 2 + 4, 8};
  const std::vector<double> mask = {1, 1, 1, 1, 0, 1, 0, 0};
  const auto scale = [&](Aggregation a) { return token_scale(start, mask, a, 16); };
  EXPECT_EQ(scale(Aggregation::kTokenMean), (std::vector<double>{1.0 / 5, 1.0 / 5, 0}));
  EXPECT_EQ(scale(Aggregation::kSeqMean), (std::vector<double>{1.0 / 4, 1.0 / 6, 0}));
  EXPECT_EQ(scale(Aggregation::kSeqSumConst), (std::vector<double>{1.0 / 32, 1.0 / 32, 0}));
}

TEST(ReferenceLoss, AFullyMaskedRowChangesNothing) {
  for (Aggregation a : {Aggregation::kSeqSumConst, Aggregation::kSeqMean, Aggregation::kTokenMean}) {
    LossSettings s;
    s.aggregation = a;
    LossInput in = random_input(5, true);
    const double with_row = loss_of(in, s);
    for (auto t = in.start[3]; t < in.start[4]; ++t) in.lp_cur[t] = in.lp_full[t] = in.lp_ref[t] = NAN;
    EXPECT_EQ(loss_of(in, s), with_row) << "masked entries may hold anything";
    in.start.erase(in.start.begin() + 4);
    in.age.erase(in.age.begin() + 3);
    in.weight.erase(in.weight.begin() + 3);
    const auto cut = [](std::vector<double>& v) { v.erase(v.begin() + 9, v.begin() + 11); };
    cut(in.lp_cur), cut(in.lp_full), cut(in.lp_ref), cut(in.advantage), cut(in.mask);
    in.start.back() -= 2;
    EXPECT_NEAR(loss_of(in, s), with_row, 1e-15);
  }
}

// Away from the kinks the analytic gradient equals central differences of the loss with stopped gradients held fixed.
TEST(ReferenceLoss, GradientsEqualCentralDifferences) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (Objective objective : {Objective::kPpo, Objective::kReinforce}) {
      LossSettings s;
      s.objective = objective;
      s.aggregation = static_cast<Aggregation>(seed % 3);
      LossInput in = random_input(seed, true);
      for (int& age : in.age) age = 0;  // no stopped gradients: what is differentiated is the whole loss
      const LossOutput out = reference_loss(in, s, 8);
      for (std::size_t t = 0; t < in.lp_cur.size(); ++t) {
        LossInput up = in, down = in;
        const double h = 1e-6;
        up.lp_cur[t] += h;
        down.lp_cur[t] -= h;
        EXPECT_NEAR(out.grad[t], (loss_of(up, s) - loss_of(down, s)) / (2 * h), 1e-6) << seed << " token " << t;
      }
    }
  }
}

TEST(ReferenceLoss, EqualsTrl) {
  for (const testing::LossCase& c : testing::loss_cases()) {
    const LossOutput out = reference_loss(c.input, c.settings, c.max_tokens);
    EXPECT_NEAR(out.loss, c.loss, 1e-12) << c.name;
    for (std::size_t t = 0; t < c.grad.size(); ++t) EXPECT_NEAR(out.grad[t], c.grad[t], 1e-12) << c.name << " token " << t;
  }
}

TEST(GroupAdvantages, EqualTrl) {
  for (const auto& group : testing::loss_golden()["groups"]) {
    const auto rewards = group["rewards"].get<std::vector<double>>();
    const std::vector<double> grpo = grpo_advantages(rewards).value(), dr_grpo = dr_grpo_advantages(rewards).value();
    for (std::size_t i = 0; i < rewards.size(); ++i) {
      EXPECT_NEAR(grpo[i], group["grpo"][i].get<double>(), 1e-12);
      EXPECT_NEAR(dr_grpo[i], group["dr_grpo"][i].get<double>(), 1e-12);
    }
  }
}

TEST(GroupAdvantages, ByHand) {
  EXPECT_EQ(dr_grpo_advantages({1, 0, 0, 1}).value(), (std::vector<double>{0.5, -0.5, -0.5, 0.5}));
  const std::vector<double> rloo = rloo_advantages({1, 0, 0, 1}).value();
  EXPECT_NEAR(rloo[0], 1 - 1.0 / 3, 1e-15) << "own reward minus the mean of the others";
  const std::vector<double> grpo = grpo_advantages({1, 0, 0, 1}).value();
  EXPECT_NEAR(grpo[0], 0.5 / (std::sqrt(1.0 / 3) + 1e-4), 1e-15);
}

TEST(GroupAdvantages, EqualRewardsGiveZeroAndNearlyEqualOnesStayBounded) {
  EXPECT_EQ(grpo_advantages({0.3, 0.3, 0.3}).value(), (std::vector<double>{0, 0, 0}));
  std::vector<double> one_off(8, 0.95);
  one_off[0] = 0;
  const std::vector<double> bounded = grpo_advantages(one_off).value();
  for (double a : bounded) EXPECT_LE(std::abs(a), 10);
  EXPECT_EQ(grpo_advantages(std::vector<double>(8, 0.35)).value(), std::vector<double>(8, 0.0));
}

TEST(GroupAdvantages, AGroupOfOneIsRefused) {
  EXPECT_EQ(grpo_advantages({1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(dr_grpo_advantages({1}).code(), Code::kInvalidArgument);
  EXPECT_EQ(rloo_advantages({}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
