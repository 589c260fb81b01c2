// SPDX-License-Identifier: GPL-3.0-or-later
// Every objective and advantage as plain f64 loops: the oracle beside learn_torch/objective_at (learning.md §4, §5). Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "learn/settings.h"

namespace sluice {

struct LossInput {
  std::vector<std::int64_t> start;  // [B+1] into the token vectors
  std::vector<int> age;             // [B]
  std::vector<double> weight;       // [B]
  std::vector<double> lp_cur;       // [M] of the head
  std::vector<double> lp_full;      // [M] of the sampler
  std::vector<double> lp_ref;       // [M] of the base; empty = no KL term
  std::vector<double> advantage;    // [M]
  std::vector<double> mask;         // [M]
};

struct LossOutput {
  double loss = 0;      // policy + KL
  double policy = 0;
  double kl = 0;        // beta sum m w d^2 / 2 under the aggregation
  std::vector<double> grad;        // [M] d loss / d lp_cur
  double clip_fraction = 0;        // of masked tokens: the clipped branch was taken
  double truncated_fraction = 0;   // of masked tokens: weight cut at C
  std::vector<std::int64_t> too_far;  // samples that added nothing (learning.md §3.2)
};

// What the sums over tokens are divided by, per sample: the factor of a token's loss. Samples without masked tokens get 0.
std::vector<double> token_scale(const std::vector<std::int64_t>& start, const std::vector<double>& mask,
                                Aggregation aggregation, int max_tokens);

// Entries at mask 0 may hold anything, NaN included.
LossOutput reference_loss(const LossInput& input, const LossSettings& settings, int max_tokens);

// Advantages of a group of answers to one prompt. kInvalidArgument below two.
Result<std::vector<double>> grpo_advantages(const std::vector<double>& rewards);    // (r - mean)/(sd + 1e-4), 0 when sd < 1e-3
Result<std::vector<double>> dr_grpo_advantages(const std::vector<double>& rewards);  // r - mean
Result<std::vector<double>> rloo_advantages(const std::vector<double>& rewards);     // G/(G-1) (r - mean)

}  // namespace sluice
