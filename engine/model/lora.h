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

// An adapter version ready to serve, in 16 bit. Immutable.
class LoraAdapter final : public Adapter {
 public:
  struct Module {
    int rank = 0;
    float scale = 0;
    // Integers whose scales (kernels/lora.h) are part of `scale`.
    std::vector<std::int16_t> a;    // [rank, in]
    std::vector<std::int16_t> b_t;  // [rank, out]
  };

  LoraAdapter(const ModelConfig& config, const LoraData& data, VersionId version);

  // Whether the shapes it was made for are those of this model.
  bool fits(const ModelConfig& config) const;

  VersionId version() const override { return version_; }
  const std::string& content_hash() const override { return content_hash_; }
  int rank() const override { return rank_; }
  std::int64_t bytes() const override { return bytes_; }

  // Null where the layer has no adapter.
  const Module* module(int layer, Linear linear) const {
    const auto& m = modules_[static_cast<std::size_t>(layer)][static_cast<std::size_t>(linear)];
    return m.rank > 0 ? &m : nullptr;
  }

 private:
  VersionId version_;
  std::string content_hash_;
  int rank_ = 0;
  std::int64_t bytes_ = 0;
  std::vector<std::array<Module, kLinearsPerLayer>> modules_;
};

}  // namespace sluice
