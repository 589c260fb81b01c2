// SPDX-License-Identifier: GPL-3.0-or-later
// Trainable LoRA factors: f32 leaf tensors that are views of one flat buffer, their gradients views of another, so that
// an optimiser can walk plain memory. Owned by one thread (the trainer's).
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/lora.h"
#include "model/weights.h"

namespace sluice {

struct LoraModule {
  int layer = 0;
  Linear linear = Linear::kQ;
  int rank = 0;
  double alpha = 0;
  float scale = 0;
  at::Tensor a;  // [rank, in], leaf, requires grad, .grad() defined
  at::Tensor b;  // [out, rank]
  std::string name;  // "model.layers.3.self_attn.q_proj"
};

struct LoraTensors {
  LoraConfig config;
  std::vector<LoraModule> modules;  // by layer, then Linear
  at::Tensor flat;       // [parameters]: a, b of each module in turn; no graph
  at::Tensor flat_grad;  // same layout; backward() accumulates into it. Zero it with zero_()

  // Null where the layer has no adapter.
  const LoraModule* find(int layer, Linear linear) const;
  std::int64_t parameters() const { return flat.defined() ? flat.numel() : 0; }

 private:
  friend LoraTensors lora_from_data(const LoraData& data, const ModelConfig& config);
  std::vector<int> index_;  // [layer * kLinearsPerLayer + linear] -> module or -1
};

// New adapter: A uniform in +-1/sqrt(in) (or gaussian), B zero. Equal seeds give equal tensors, whatever else runs.
// kInvalidArgument: rank < 1, a layer outside the model, no targets.
Result<LoraTensors> init_lora(const ModelConfig& config, const LoraConfig& lora, std::uint64_t seed);

// Copies; the folder form is peft_folder.h's.
LoraTensors lora_from_data(const LoraData& data, const ModelConfig& config);
LoraData lora_to_data(const LoraTensors& lora);
// An independent copy (the trainer's step works on one).
LoraTensors clone_lora(const LoraTensors& lora, const ModelConfig& config);

}  // namespace sluice
