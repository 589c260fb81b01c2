// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn_torch/objective_at.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/zeros_like.h>

namespace sluice {
namespace {

constexpr double kMaxLogRatio = 20;

at::Tensor clamped_exp(const at::Tensor& log_ratio) { return log_ratio.clamp(-kMaxLogRatio, kMaxLogRatio).exp(); }

struct PolicyTerm {
  at::Tensor loss;     // [M]
  at::Tensor clipped;  // [M] bool
};

PolicyTerm clip_term(const at::Tensor& lp_cur, const ObjectiveInput& in, const LossSettings& s) {
  const at::Tensor r = clamped_exp(lp_cur - in.lp_full);
  const at::Tensor gain = r * in.advantage;
  const at::Tensor clipped_gain = r.clamp(1 - s.clip_low, 1 + s.clip_high) * in.advantage;
  PolicyTerm out{-gain.minimum(clipped_gain), clipped_gain.lt(gain)};
  if (s.dual_clip > 0) {
    const at::Tensor bound = -s.dual_clip * in.advantage;
    const at::Tensor cut = in.advantage.lt(0).logical_and(out.loss.gt(bound));
    out.loss = bound.where(cut, out.loss);
    out.clipped = out.clipped.logical_or(cut);
  }
  return out;
}

}  // namespace

ObjectiveOutput objective(const ObjectiveInput& in, const LossSettings& s) {
  const at::Tensor used = in.kl_factor.ne(0).logical_or(in.factor.ne(0));
  // Whatever stands at unused tokens, NaN included, must not reach a product: 0 x NaN is NaN.
  const at::Tensor lp_cur = in.lp_cur.where(used, at::zeros_like(in.lp_cur));
  ObjectiveInput clean = in;
  clean.lp_full = in.lp_full.where(used, at::zeros_like(in.lp_full));

  ObjectiveOutput out;
  const at::Tensor detached = lp_cur.detach();
  const at::Tensor raw_weight = clamped_exp(detached - clean.lp_full);
  const at::Tensor truncated_weight = raw_weight.clamp_max(s.truncation_cap);
  const at::Tensor stale = in.age.ge(1);
  at::Tensor policy;
  if (s.objective == Objective::kReinforce) {
    policy = -in.advantage * lp_cur;
    out.weight = at::ones_like(detached);
    out.clipped = out.truncated = stale.logical_and(stale.logical_not());
  } else {
    PolicyTerm fresh = clip_term(lp_cur, clean, s);
    if (s.stale == StaleRule::kClip) {
      policy = fresh.loss;
      out.clipped = fresh.clipped;
      out.weight = at::ones_like(detached);
      out.truncated = stale.logical_and(stale.logical_not());
    } else {
      // q = exp(lp_cur - sg(lp_cur)) is 1 with the gradient of lp_cur: the value and gradient of -w A q.
      const at::Tensor decoupled = -truncated_weight * in.advantage * (lp_cur - detached).exp();
      policy = decoupled.where(stale, fresh.loss);
      out.clipped = fresh.clipped.logical_and(stale.logical_not());
      out.truncated = raw_weight.gt(s.truncation_cap).logical_and(stale);
      out.weight = truncated_weight.where(stale, at::ones_like(detached));
    }
  }
  out.loss = (policy * in.factor).sum();
  if (in.lp_ref.defined() && s.kl_beta != 0) {
    const at::Tensor d = lp_cur - in.lp_ref.where(used, at::zeros_like(in.lp_ref));
    const at::Tensor w = truncated_weight.where(in.age.gt(1), at::ones_like(detached));
    out.loss = out.loss + (d * d * w * in.kl_factor).sum() * (s.kl_beta / 2);
  }
  return out;
}

}  // namespace sluice
