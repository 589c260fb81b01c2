// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/step_stats.h"

#include <cmath>

namespace sluice {

void StatSums::add(const TrainBatch& batch, const MicroBatch& piece, const TokenValues& v,
                   const std::vector<bool>& too_far) {
  std::size_t j = 0;
  for (std::int64_t sample : piece.samples) {
    const auto i = static_cast<std::size_t>(sample);
    for (std::int64_t t = batch.resp_start[i]; t < batch.resp_start[i + 1]; ++t, ++j) {
      const auto token = static_cast<std::size_t>(t);
      if (batch.mask[token] == 0) continue;
      const double lp = v.lp_cur[j], a = batch.advantage[token];
      const double d = v.lp_ref.empty() ? 0 : lp - v.lp_ref[j];
      tokens_ += 1;
      entropy_ += v.entropy[j];
      lp_ += lp;
      advantage_ += a;
      lp_advantage_ += lp * a;
      if (batch.age[i] == 0) {
        const double log_ratio = lp - batch.lp_full[token];
        fresh_ += 1;
        fresh_outside_ += std::abs(log_ratio) > std::log(2.0) ? 1 : 0;
        fresh_abs_kl_ += std::abs(d);
        fresh_entropy_ += v.entropy[j];
      }
      if (too_far[i]) continue;
      clipped_ += v.clipped[j];
      truncated_ += v.truncated[j];
      kl_ += v.weight[j] * d;
      weight_ += v.weight[j];
      weight_squares_ += static_cast<double>(v.weight[j]) * v.weight[j];
    }
  }
}

void StatSums::write(StepStats& out) const {
  if (tokens_ <= 0) return;
  out.entropy = entropy_ / tokens_;
  out.clip_fraction = clipped_ / tokens_;
  out.truncated_fraction = truncated_ / tokens_;
  out.lp_advantage_cov = lp_advantage_ / tokens_ - (lp_ / tokens_) * (advantage_ / tokens_);
  if (weight_ > 0) {
    out.kl_base = kl_ / weight_;
    out.effective_share = weight_ * weight_ / (tokens_ * weight_squares_);
  }
  if (fresh_ > 0) {
    out.fresh_tokens = fresh_;
    out.fresh_outside = fresh_outside_;
    out.fresh_abs_kl = fresh_abs_kl_ / static_cast<double>(fresh_);
    out.fresh_entropy = fresh_entropy_ / static_cast<double>(fresh_);
  }
}

}  // namespace sluice
