// SPDX-License-Identifier: GPL-3.0-or-later
// The losses with autograd against the plain loops and TRL.
#include "learn_torch/objective_at.h"

#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "engine/learn/loss_golden.h"

namespace sluice {
namespace {

at::Tensor tensor(const std::vector<double>& values) { return at::tensor(values).to(at::kFloat); }

struct Got {
  double loss = 0;
  std::vector<double> grad;
  double clipped = 0, truncated = 0;
};

Got run(const LossInput& in, const LossSettings& s, int max_tokens) {
  const std::vector<double> scale = token_scale(in.start, in.mask, s.aggregation, max_tokens);
  std::vector<double> factor, kl_factor;
  std::vector<std::int64_t> age;
  for (std::size_t i = 0; i + 1 < in.start.size(); ++i) {
    for (auto t = in.start[i]; t < in.start[i + 1]; ++t) {
      kl_factor.push_back(scale[i] * in.mask[static_cast<std::size_t>(t)]);
      factor.push_back(kl_factor.back() * in.weight[i]);
      age.push_back(in.age[i]);
    }
  }
  ObjectiveInput input;
  input.lp_cur = tensor(in.lp_cur).requires_grad_();
  input.lp_full = tensor(in.lp_full);
  if (!in.lp_ref.empty()) input.lp_ref = tensor(in.lp_ref);
  input.advantage = tensor(in.advantage);
  input.factor = tensor(factor);
  input.kl_factor = tensor(kl_factor);
  input.age = at::tensor(age).to(at::kInt);
  const ObjectiveOutput out = objective(input, s);
  out.loss.backward();
  const at::Tensor grad = input.lp_cur.grad().to(at::kDouble).contiguous();
  Got got;
  got.loss = out.loss.item<double>();
  got.grad.assign(grad.const_data_ptr<double>(), grad.const_data_ptr<double>() + grad.numel());
  got.clipped = out.clipped.sum().item<double>();
  got.truncated = out.truncated.sum().item<double>();
  return got;
}

LossInput random_input(unsigned seed) {
  std::mt19937 rng(seed);
  std::normal_distribution<double> noise(0, 0.5);
  std::uniform_real_distribution<double> lp(-4, -0.1);
  LossInput in;
  in.start = {0, 3, 4, 9, 11, 17};
  in.age = {0, 1, 3, 0, 0};
  in.weight = {1, 1, 0.5, 1, 2};
  const double advantages[] = {0.7, -1.1, 0.4, -0.9, 0};
  for (int i = 0; i < 5; ++i) {
    for (auto t = in.start[i]; t < in.start[i + 1]; ++t) {
      in.lp_full.push_back(lp(rng));
      in.lp_cur.push_back(in.lp_full.back() + noise(rng));
      in.lp_ref.push_back(in.lp_full.back() + noise(rng));
      in.advantage.push_back(advantages[i]);
      in.mask.push_back(i == 3 || t == 5 ? 0 : 1);
    }
  }
  return in;
}

TEST(Objective, EqualsThePlainLoops) {
  for (unsigned seed = 1; seed <= 30; ++seed) {
    for (Objective objective : {Objective::kPpo, Objective::kReinforce}) {
      for (StaleRule stale : {StaleRule::kTruncatedWeights, StaleRule::kClip}) {
        LossSettings s;
        s.objective = objective;
        s.stale = stale;
        s.aggregation = static_cast<Aggregation>(seed % 3);
        s.too_far_low = 0;
        s.too_far_high = 1e18;
        s.kl_beta = 0.1;
        const LossInput in = random_input(seed);
        const LossOutput want = reference_loss(in, s, 8);
        const Got got = run(in, s, 8);
        EXPECT_NEAR(got.loss, want.loss, 1e-6) << seed;
        for (std::size_t t = 0; t < want.grad.size(); ++t) EXPECT_NEAR(got.grad[t], want.grad[t], 1e-6) << seed << " " << t;
      }
    }
  }
}

TEST(Objective, EqualsTrl) {
  for (const testing::LossCase& c : testing::loss_cases()) {
    const Got got = run(c.input, c.settings, c.max_tokens);
    EXPECT_NEAR(got.loss, c.loss, 1e-6) << c.name;
    for (std::size_t t = 0; t < c.grad.size(); ++t) EXPECT_NEAR(got.grad[t], c.grad[t], 1e-6) << c.name << " token " << t;
  }
}

TEST(Objective, MaskedTokensMayHoldAnything) {
  LossInput in = random_input(4);
  const LossSettings s;
  const Got clean = run(in, s, 8);
  for (std::size_t t = 0; t < in.mask.size(); ++t) {
    if (in.mask[t] == 0) in.lp_cur[t] = in.lp_full[t] = in.lp_ref[t] = NAN;
  }
  const Got got = run(in, s, 8);
  EXPECT_EQ(got.loss, clean.loss);
  EXPECT_EQ(got.grad, clean.grad);
}

TEST(Objective, AVastGapStaysFinite) {
  for (double gap : {1e3, -1e3}) {
    LossInput in = random_input(2);
    in.lp_cur[0] = in.lp_full[0] + gap;
    in.lp_cur[3] = in.lp_full[3] + gap;
    const Got got = run(in, LossSettings(), 8);
    EXPECT_TRUE(std::isfinite(got.loss));
    for (double g : got.grad) EXPECT_TRUE(std::isfinite(g));
  }
}

TEST(Objective, TheTruncationWeightCarriesNoGradient) {
  LossInput in = random_input(1);
  in.age = {2, 2, 2, 2, 2};
  LossSettings s;
  s.kl_beta = 0;
  s.aggregation = Aggregation::kTokenMean;
  s.truncation_cap = 1e9;
  const Got got = run(in, s, 8);
  const std::vector<double> scale = token_scale(in.start, in.mask, s.aggregation, 8);
  for (std::size_t t = 0; t < 3; ++t) {
    EXPECT_NEAR(got.grad[t], -scale[0] * std::exp(in.lp_cur[t] - in.lp_full[t]) * in.advantage[t], 1e-6);
  }
}

}  // namespace
}  // namespace sluice
