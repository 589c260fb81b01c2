// SPDX-License-Identifier: GPL-3.0-or-later
// Stops learning when the head leaves its bounds (learning.md §5). Reads samples of age 0 for KL, entropy and ratios: on
// stale ones the same estimates blow up in runs that are well. One thread.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "learn/settings.h"
#include "learn/step_runner.h"

namespace sluice {

struct BrakeReading {
  StepStats stats;
  double length_bias = 0;   // nu of the batch
  double mean_length = 0;   // response tokens per sample
  double base_length = 0;   // of version 0's answers; 0 = unknown
};

class Brakes {
 public:
  explicit Brakes(const BrakeSettings& settings) : settings_(settings) {}

  // The notice of the brake that tripped, with its number and limit; nothing = go on.
  std::optional<std::string> read(const BrakeReading& reading);
  void reset();  // after the head moved to another checkpoint

 private:
  std::optional<std::string> read_fresh(const StepStats& stats);

  BrakeSettings settings_;
  int nonfinite_ = 0;
  std::int64_t fresh_tokens_ = 0, fresh_outside_ = 0;
  std::int64_t kl_tokens_ = 0;  // since the distance was last judged
  double kl_sum_ = 0;
  std::deque<double> biases_;
  double first_entropy_sum_ = 0;
  int entropy_readings_ = 0;
  int low_entropy_ = 0;  // in a row
};

}  // namespace sluice
