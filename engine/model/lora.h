// SPDX-License-Identifier: GPL-3.0-or-later
// Low-rank adapters without torch: settings, plain f32 factors, and the immutable form that serving computes with.
// y = W x + scale * B (A x), A [rank, in], B [out, rank]; scale = alpha / rank, or alpha / sqrt(rank) (rsLoRA).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model/config.h"
#include "model/large_block.h"
#include "model_api/adapter.h"

namespace sluice {

struct LoraConfig {
  int rank = 16;
  double alpha = 32;
  bool rslora = false;
  bool gaussian = false;             // A normal with sd 1/rank instead of uniform in +-1/sqrt(in)
  std::vector<Linear> targets{std::begin(kAllLinears), std::end(kAllLinears)};
  std::vector<int> layers{};         // empty = all
};

double lora_scale(int rank, double alpha, bool rslora);

// One adapted linear layer.
struct LoraFactors {
  int layer = 0;
  Linear linear = Linear::kQ;
  int rank = 0;
  double alpha = 0;
  float scale = 0;
  std::vector<float> a;  // [rank, in]
  std::vector<float> b;  // [out, rank]
};

// What a PEFT folder holds, checked against a model.
struct LoraData {
  LoraConfig config;                  // rank and alpha: the folder's defaults; modules may differ by pattern
  std::vector<LoraFactors> modules;   // by layer, then Linear
  std::string content_hash;           // SHA-256 of adapter_model.safetensors
  std::vector<std::string> warnings;  // keys that differ without changing the result
};

// Layers that share an input: q, k and v; o; gate and up; down. Their A is one stack (kernels/lora.h).
inline constexpr int kLoraInputs = 4;
constexpr int lora_input(Linear linear) {
  switch (linear) {
    case Linear::kQ:
    case Linear::kK:
    case Linear::kV: return 0;
    case Linear::kO: return 1;
    case Linear::kGate:
    case Linear::kUp: return 2;
    default: return 3;
  }
}

// An adapter version ready to serve, in 16 bit: one block of memory in the order in which a step reads it. Immutable.
class LoraAdapter final : public Adapter {
 public:
  struct Module {
    int rank = 0;
    int first = 0;                    // its rows in the stack of its input
    float scale = 0;                  // that of the integers included
    const std::int16_t* b = nullptr;  // lora_pack_b
  };
  struct Stack {
    int rank = 0;                     // of its modules together
    std::int64_t words = 0;
    const std::int16_t* a = nullptr;  // lora_pack_a
  };

  LoraAdapter(const ModelConfig& config, const LoraData& data, VersionId version);

  // Whether the shapes it was made for are those of this model.
  bool fits(const ModelConfig& config) const { return shapes_ == shapes_of(config); }

  VersionId version() const override { return version_; }
  const std::string& content_hash() const override { return content_hash_; }
  int rank() const override { return rank_; }
  int stack_rank() const { return stack_rank_; }  // the largest
  std::int64_t bytes() const override { return words_ * static_cast<std::int64_t>(sizeof(std::int16_t)); }

  // Null where the layer has no adapter.
  const Module* module(int layer, Linear linear) const {
    const Module& m = layers_[static_cast<std::size_t>(layer)].modules[static_cast<std::size_t>(linear)];
    return m.rank > 0 ? &m : nullptr;
  }
  // That of a layer's input; rank 0 where no module reads it.
  const Stack& stack(int layer, int input) const {
    return layers_[static_cast<std::size_t>(layer)].stacks[static_cast<std::size_t>(input)];
  }

 private:
  struct Layer {
    std::array<Module, kLinearsPerLayer> modules;
    std::array<Stack, kLoraInputs> stacks;
  };
  using Shapes = std::vector<std::int64_t>;  // layers, then rows and columns of each linear
  static Shapes shapes_of(const ModelConfig& config);
  std::int64_t place(const ModelConfig& config, std::int16_t* begin);
  void fill(const ModelConfig& config, const LoraFactors& f);

  VersionId version_;
  std::string content_hash_;
  int rank_ = 0;
  int stack_rank_ = 0;
  std::int64_t words_ = 0;
  Shapes shapes_;
  std::vector<Layer> layers_;
  LargeBlock memory_;
};

}  // namespace sluice
