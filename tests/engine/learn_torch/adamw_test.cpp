// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "engine/learn/loss_golden.h"

namespace sluice {
namespace {

OptimiserSettings settings() {
  OptimiserSettings s;
  s.lr = 1e-3;
  s.warmup_steps = 0;
  return s;
}

TEST(AdamW, FiveClippedStepsEqualTorch) {
  const auto& golden = testing::loss_golden()["adamw"];
  auto theta = golden["start"].get<std::vector<float>>();
  AdamW adamw(theta.size());
  for (std::size_t k = 0; k < golden["grads"].size(); ++k) {
    const auto grad = golden["grads"][k].get<std::vector<float>>();
    const AdamWReport report = adamw.step(theta, grad, settings());
    EXPECT_NEAR(report.grad_norm / golden["norms"][k].get<double>(), 1, 1e-6);
    const auto want = golden["theta"][k].get<std::vector<float>>();
    for (std::size_t i = 0; i < theta.size(); ++i) {
      EXPECT_NEAR(theta[i], want[i], 1e-6 * std::abs(want[i]) + 1e-7) << "step " << k << " value " << i;
    }
  }
}

TEST(AdamW, ATinyGradientMovesByTheFullRate) {
  std::vector<float> theta = {0};
  AdamW adamw(1);
  adamw.step(theta, std::vector<float>{1e-10f}, settings());
  EXPECT_GE(-theta[0], 0.9e-3f);
}

TEST(AdamW, ANonFiniteGradientMovesNothing) {
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    std::vector<float> theta = {1, 2};
    AdamW adamw(2);
    adamw.step(theta, std::vector<float>{0.1f, 0.2f}, settings());
    const std::vector<float> before = theta, m = adamw.m, v = adamw.v;
    EXPECT_TRUE(adamw.step(theta, std::vector<float>{0.1f, bad}, settings()).skipped);
    EXPECT_EQ(theta, before);
    EXPECT_EQ(adamw.m, m);
    EXPECT_EQ(adamw.v, v);
    EXPECT_EQ(adamw.t, 1);
  }
}

TEST(AdamW, TheNormOfLargeGradientsDoesNotOverflow) {
  EXPECT_NEAR(global_norm(std::vector<float>{3e30f, 4e30f}), 5e30, 1e24);
}

TEST(AdamW, WarmsUpThenStaysConstant) {
  std::vector<float> theta = {0};
  AdamW adamw(1);
  OptimiserSettings s = settings();
  s.warmup_steps = 4;
  for (int t = 1; t <= 6; ++t) {
    EXPECT_DOUBLE_EQ(adamw.step(theta, std::vector<float>{1}, s).lr, 1e-3 * std::min(1.0, t / 4.0));
  }
}

TEST(AdamW, DecayIsDecoupledAndOffByDefault) {
  std::vector<float> theta = {2};
  AdamW adamw(1);
  OptimiserSettings s = settings();
  adamw.step(theta, std::vector<float>{0}, s);
  EXPECT_EQ(theta[0], 2);
  s.weight_decay = 0.1;
  adamw.step(theta, std::vector<float>{0}, s);
  EXPECT_FLOAT_EQ(theta[0], 2 * (1 - 1e-4f));
}

}  // namespace
}  // namespace sluice
