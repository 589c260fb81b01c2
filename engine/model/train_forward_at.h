// SPDX-License-Identifier: GPL-3.0-or-later
// Whole-sequence forward with a graph through the LoRA factors only, and log-probabilities of given tokens without a
// [rows, vocabulary] tensor. The frozen weights stay in their blocks: one strip at a time is dequantised, in the forward
// and again in the backward pass, and nothing is saved for them. f32 throughout, no dropout: two passes agree bit for
// bit at one thread count.
//
// What begins every sequence of a batch alike is computed once, with exact gradients.
//
// Called by one thread at a time per LoraTensors; set the thread's cores with at::set_num_threads first. Under
// at::NoGradGuard no graph is kept.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "base/result.h"
#include "model/lora_at.h"
#include "model/weights.h"
#include "model_api/model.h"

namespace sluice {

// Sequences laid one after the other, no padding.
struct PackedSequences {
  std::span<const TokenId> ids;              // [N]
  std::span<const std::int32_t> positions;   // [N], from 0 in each sequence
  std::span<const std::int32_t> seq_start;   // [B + 1], 0 .. N: block-diagonal causal mask
};

struct TrainForwardOptions {
  bool checkpoint = false;  // keep each block's input only and run it again in the backward pass
};

// Hidden states after the final norm, [N, hidden]. lora == nullptr: adapter off, the reference policy.
// kInvalidArgument names what is wrong with ids, positions or seq_start.
Result<at::Tensor> train_forward(const TransformerWeights& weights, const LoraTensors* lora,
                                 const PackedSequences& batch, const TrainForwardOptions& options = {});

// Bytes of saved activations a training forward over `tokens` tokens will hold until backward (an estimate).
std::int64_t activation_bytes(const ModelConfig& config, const LoraConfig& lora, std::int64_t tokens,
                              bool checkpoint);

struct LogprobOutput {
  at::Tensor lp;       // [M] log softmax(z / tau)[target]; differentiable
  at::Tensor entropy;  // [M] of softmax(z / tau); differentiable
  at::Tensor top1;     // [M] int64, likeliest token; no graph
};

// hidden_rows [M, hidden] f32 (rows of train_forward's result), targets [M] int64, tau [M] f32 > 0. Tiles of 252 rows
// x 1,024 vocabulary entries; the backward pass recomputes them. No gradient for targets, tau and the head.
Result<LogprobOutput> chunked_logprob(const TransformerWeights& weights, const at::Tensor& hidden_rows,
                                      const at::Tensor& targets, const at::Tensor& tau);

}  // namespace sluice
