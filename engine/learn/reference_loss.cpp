// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/reference_loss.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

constexpr double kMaxLogRatio = 20;

double clamped_exp(double log_ratio) { return std::exp(std::clamp(log_ratio, -kMaxLogRatio, kMaxLogRatio)); }

struct TokenTerm {
  double loss = 0;
  double grad = 0;  // by lp_cur
  bool clipped = false;
  bool truncated = false;
};

// l = -min(r A, clip(r) A), with the lower bound of the dual clip for A < 0. The gradient follows the branch that was taken.
TokenTerm clip_term(double lp_cur, double lp_full, double a, const LossSettings& s) {
  const double log_ratio = lp_cur - lp_full;
  const double r = clamped_exp(log_ratio);
  const double dr = std::abs(log_ratio) < kMaxLogRatio ? r : 0;  // the clamp is flat outside
  const double clipped_r = std::clamp(r, 1 - s.clip_low, 1 + s.clip_high);
  TokenTerm out;
  out.clipped = clipped_r * a < r * a;
  out.loss = -std::min(r * a, clipped_r * a);
  out.grad = out.clipped ? 0 : -a * dr;
  if (a < 0 && s.dual_clip > 0 && out.loss > -s.dual_clip * a) {
    out.loss = -s.dual_clip * a;
    out.grad = 0;
    out.clipped = true;
  }
  return out;
}

// Decoupled form with one optimiser step a batch: lp_prox = stop-gradient(lp_cur), so q = 1 and the gradient is -w A.
TokenTerm truncated_term(double lp_cur, double lp_full, double a, const LossSettings& s) {
  const double full = clamped_exp(lp_cur - lp_full);
  const double w = std::min(full, s.truncation_cap);
  return {-w * a, -w * a, false, full > s.truncation_cap};
}

struct Sample {
  std::size_t index, begin, end;
  bool stale;
};

bool is_too_far(const LossInput& in, const Sample& sample, const LossSettings& s) {
  if (!sample.stale) return false;
  double sum = 0, n = 0;
  for (std::size_t t = sample.begin; t < sample.end; ++t) {
    if (in.mask[t] == 0) continue;
    sum += in.lp_cur[t] - in.lp_full[t];
    n += 1;
  }
  if (n == 0) return false;
  const double ratio = clamped_exp(sum / n);
  return ratio < s.too_far_low || ratio > s.too_far_high;
}

TokenTerm policy_term(const LossInput& in, std::size_t t, const Sample& sample, const LossSettings& s) {
  if (s.objective == Objective::kReinforce) {
    const double a = in.advantage[t];
    return {-a * in.lp_cur[t], -a, false, false};
  }
  if (sample.stale && s.stale == StaleRule::kTruncatedWeights) {
    return truncated_term(in.lp_cur[t], in.lp_full[t], in.advantage[t], s);
  }
  return clip_term(in.lp_cur[t], in.lp_full[t], in.advantage[t], s);
}

Result<double> mean_of_group(const std::vector<double>& rewards) {
  if (rewards.size() < 2) {
    return invalid_argument("a group of " + std::to_string(rewards.size()) +
                            " answers has no spread: sample at least two for each prompt");
  }
  double sum = 0;
  for (double r : rewards) sum += r;
  return sum / static_cast<double>(rewards.size());
}

}  // namespace

std::vector<double> token_scale(const std::vector<std::int64_t>& start, const std::vector<double>& mask,
                                Aggregation aggregation, int max_tokens) {
  const std::size_t n = start.size() - 1;
  std::vector<double> lengths(n, 0);
  double samples = 0, tokens = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (auto t = start[i]; t < start[i + 1]; ++t) lengths[i] += mask[static_cast<std::size_t>(t)];
    samples += lengths[i] > 0 ? 1 : 0;
    tokens += lengths[i];
  }
  std::vector<double> scale(n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    if (lengths[i] <= 0) continue;
    switch (aggregation) {
      case Aggregation::kSeqSumConst: scale[i] = 1 / (samples * max_tokens); break;
      case Aggregation::kSeqMean: scale[i] = 1 / (samples * lengths[i]); break;
      case Aggregation::kTokenMean: scale[i] = 1 / tokens; break;
    }
  }
  return scale;
}

LossOutput reference_loss(const LossInput& in, const LossSettings& s, int max_tokens) {
  LossOutput out;
  out.grad.assign(in.lp_cur.size(), 0);
  const std::vector<double> scale = token_scale(in.start, in.mask, s.aggregation, max_tokens);
  double tokens = 0, clipped = 0, truncated = 0;
  for (std::size_t i = 0; i + 1 < in.start.size(); ++i) {
    const Sample sample{i, static_cast<std::size_t>(in.start[i]), static_cast<std::size_t>(in.start[i + 1]), in.age[i] >= 1};
    const bool far = is_too_far(in, sample, s);
    if (far) out.too_far.push_back(static_cast<std::int64_t>(i));
    for (std::size_t t = sample.begin; t < sample.end; ++t) {
      if (in.mask[t] == 0) continue;
      tokens += 1;
      if (far) continue;
      const TokenTerm term = policy_term(in, t, sample, s);
      clipped += term.clipped;
      truncated += term.truncated;
      out.policy += scale[i] * in.weight[i] * in.mask[t] * term.loss;
      out.grad[t] += scale[i] * in.weight[i] * in.mask[t] * term.grad;
      if (in.lp_ref.empty() || s.kl_beta == 0) continue;
      const double d = in.lp_cur[t] - in.lp_ref[t];
      const double w = in.age[i] <= 1 ? 1 : std::min(clamped_exp(in.lp_cur[t] - in.lp_full[t]), s.truncation_cap);
      out.kl += scale[i] * in.mask[t] * s.kl_beta * w * d * d / 2;
      out.grad[t] += scale[i] * in.mask[t] * s.kl_beta * w * d;
    }
  }
  out.loss = out.policy + out.kl;
  if (tokens > 0) {
    out.clip_fraction = clipped / tokens;
    out.truncated_fraction = truncated / tokens;
  }
  return out;
}

Result<std::vector<double>> grpo_advantages(const std::vector<double>& rewards) {
  SLUICE_ASSIGN_OR_RETURN(const double mean, mean_of_group(rewards));
  double squares = 0;  // two passes: E[x^2] - E[x]^2 loses everything on nearly equal rewards
  for (double r : rewards) squares += (r - mean) * (r - mean);
  const double sd = std::sqrt(squares / static_cast<double>(rewards.size() - 1));
  std::vector<double> out(rewards.size(), 0);
  if (sd < 1e-3) return out;
  for (std::size_t i = 0; i < rewards.size(); ++i) out[i] = (rewards[i] - mean) / (sd + 1e-4);
  return out;
}

Result<std::vector<double>> dr_grpo_advantages(const std::vector<double>& rewards) {
  SLUICE_ASSIGN_OR_RETURN(const double mean, mean_of_group(rewards));
  std::vector<double> out;
  for (double r : rewards) out.push_back(r - mean);
  return out;
}

Result<std::vector<double>> rloo_advantages(const std::vector<double>& rewards) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<double> out, dr_grpo_advantages(rewards));
  const double g = static_cast<double>(rewards.size());
  for (double& a : out) a *= g / (g - 1);
  return out;
}

}  // namespace sluice
