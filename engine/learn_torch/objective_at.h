// SPDX-License-Identifier: GPL-3.0-or-later
// The losses of learn/reference_loss.h as tensors with a graph. Pure functions; the caller's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include "learn/settings.h"

namespace sluice {

// All f32 [M] over the response tokens of one micro-batch; only lp_cur carries a graph.
struct ObjectiveInput {
  at::Tensor lp_cur;     // of the head
  at::Tensor lp_full;    // of the sampler
  at::Tensor lp_ref;     // of the reference; undefined = no KL term
  at::Tensor advantage;
  at::Tensor factor;     // token_scale x mask x sample weight, 0 where a token adds nothing
  at::Tensor kl_factor;  // token_scale x mask, 0 likewise
  at::Tensor age;        // i32: optimiser steps behind the head
};

struct ObjectiveOutput {
  at::Tensor loss;       // scalar with a graph: this micro-batch's share of the step's loss
  at::Tensor weight;     // [M] truncated importance weight of each token, 1 where none applies; no graph
  at::Tensor clipped;    // [M] bool
  at::Tensor truncated;  // [M] bool
};

ObjectiveOutput objective(const ObjectiveInput& input, const LossSettings& settings);

}  // namespace sluice
