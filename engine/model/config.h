// SPDX-License-Identifier: GPL-3.0-or-later
// Shape and family of a decoder model, read from GGUF metadata and checked: an unknown architecture, rope rule or an
// impossible number is refused with its key. Plain value, no thread rules.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/format/gguf.h"

namespace sluice {

enum class ModelFamily { kLlama, kQwen2, kQwen3 };

// The seven linear layers of a block, in the order LayerWeights keeps them.
enum class Linear { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr int kLinearsPerLayer = 7;
inline constexpr Linear kAllLinears[] = {Linear::kQ,    Linear::kK,  Linear::kV,   Linear::kO,
                                         Linear::kGate, Linear::kUp, Linear::kDown};

// "q_proj" ... "down_proj", as in Hugging Face models and PEFT folders.
const char* linear_name(Linear linear);
// "model.layers.3.self_attn.q_proj"
std::string module_path(int layer, Linear linear);

enum class RopeScaling { kNone, kLinear, kYarn };

struct ModelConfig {
  ModelFamily family = ModelFamily::kLlama;
  std::string architecture;  // "llama", "qwen2", "qwen3"
  int layers = 0;
  int hidden = 0;
  int ffn = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int vocab = 0;
  int context = 0;
  float rms_eps = 1e-5f;
  double rope_base = 10000.0;
  RopeScaling rope_scaling = RopeScaling::kNone;
  double rope_factor = 1.0;
  int rope_original_context = 0;  // kYarn

  int q_size() const { return heads * head_dim; }
  int kv_size() const { return kv_heads * head_dim; }
  bool qk_norm() const { return family == ModelFamily::kQwen3; }
  // Rows (outputs) and columns (inputs) of a linear layer.
  std::int64_t linear_rows(Linear linear) const;
  std::int64_t linear_cols(Linear linear) const;
};

// kInvalidArgument names file, key and value. The vocabulary size is the row count of token_embd.weight.
Result<ModelConfig> config_from_gguf(const GgufFile& file);

// Angles per position of the rotary embedding, [head_dim / 2]: base^(-2i/head_dim) under the scaling rule, each divided
// by `factors` (the file's rope_freqs.weight, Llama 3's rule) where given. `magnitude` multiplies cos and sin (YaRN,
// arXiv 2309.00071 eq. 22; 1 otherwise).
struct RopeFrequencies {
  std::vector<float> inverse;
  float magnitude = 1.0f;
};
RopeFrequencies rope_frequencies(const ModelConfig& config, const std::vector<float>& factors);

}  // namespace sluice
