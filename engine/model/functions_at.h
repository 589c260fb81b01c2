// SPDX-License-Identifier: GPL-3.0-or-later
// The differentiable pieces of the training forward: custom autograd functions whose frozen weights save nothing. The
// weights handed in must outlive the backward pass. Inputs are dense f32.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "model/lora_at.h"
#include "model/weights.h"

namespace sluice {

struct LinearPair {
  const WeightMatrix* weight = nullptr;
  const LoraModule* lora = nullptr;  // null: none
};

// y_i = x W_i^T + bias_i + scale_i (x A_i^T) B_i^T for layers that share their input. Gradients for x, A, B.
std::vector<at::Tensor> lora_linears(std::span<const LinearPair> layers, const at::Tensor& x);

// x [N, n] * weight / rms(x). x may be [N * heads, head_dim] with a weight of head_dim.
at::Tensor rms_norm_rows(const at::Tensor& x, const float* weight, double eps);

// Split rotary embedding of [N, heads * head_dim]; cos_sin [N, head_dim]: cosines, then sines.
at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos_sin);

// silu(gate) * up
at::Tensor silu_gate(const at::Tensor& gate, const at::Tensor& up);

// Which rows attend to which. Rows [starts[s], starts[s + 1]) form a sequence, causal inside. With prefix > 0 the first
// sequence is that many rows long and every later one attends to all of it too, as if it came before its own rows.
struct AttentionPlan {
  std::vector<std::int64_t> starts;
  std::int64_t prefix = 0;
  std::vector<at::Tensor> masks;  // of each later sequence when prefix > 0: [n, prefix + n], 0 or -infinity

  AttentionPlan() = default;
  AttentionPlan(std::vector<std::int64_t> starts, std::int64_t prefix);
};

// q [N, heads * head_dim], k and v [N, kv_heads * head_dim].
at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionPlan& plan, int heads,
                            int kv_heads);

// fn(x) without its inner graph: backward runs fn again with grad, and passes on the gradients of x and of `leaves`
// (which fn uses).
at::Tensor checkpointed(std::function<at::Tensor(const at::Tensor&)> fn, const at::Tensor& x, const std::vector<at::Tensor>& leaves);

struct LogprobTensors {
  at::Tensor lp, entropy, top1;
};
// See chunked_logprob in train_forward_at.h; inputs are checked there.
LogprobTensors logprob_rows(const WeightMatrix& head, const at::Tensor& hidden, const at::Tensor& targets, const at::Tensor& tau);

}  // namespace sluice
