// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over the tokens of a step that become StepStats. Plain f64 loops; a value; one thread.
#pragma once

#include <cstdint>
#include <span>

#include "learn/step_runner.h"
#include "learn_torch/micro_batch.h"

namespace sluice {

// Values of a micro-batch's response tokens, [m] each.
struct TokenValues {
  std::span<const float> lp_cur;
  std::span<const float> lp_ref;   // empty: KL is off
  std::span<const float> entropy;
  std::span<const float> weight;   // truncated importance weight
  std::span<const std::uint8_t> clipped;
  std::span<const std::uint8_t> truncated;
};

class StatSums {
 public:
  void add(const TrainBatch& batch, const MicroBatch& piece, const TokenValues& values, const std::vector<bool>& too_far);
  void write(StepStats& out) const;

 private:
  double tokens_ = 0, clipped_ = 0, truncated_ = 0, entropy_ = 0;
  double kl_ = 0, weight_ = 0, weight_squares_ = 0;
  double lp_ = 0, advantage_ = 0, lp_advantage_ = 0;
  std::int64_t fresh_ = 0, fresh_outside_ = 0;
  double fresh_abs_kl_ = 0, fresh_entropy_ = 0;
};

}  // namespace sluice
