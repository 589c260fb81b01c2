// SPDX-License-Identifier: GPL-3.0-or-later
// Shape and family of a decoder model, read from GGUF metadata or from a Hugging Face config.json and checked: an unknown
// architecture, rope rule or an impossible number is refused with its key. Plain value, no thread rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/format/gguf.h"

namespace sluice {

enum class ModelFamily { kLlama, kQwen2, kQwen3 };
// By the name that both file formats use for it; nothing for one that Sluice does not run.
std::optional<ModelFamily> model_family(std::string_view name);

// The seven linear layers of a block, in the order LayerWeights keeps them.
enum class Linear { kQ, kK, kV, kO, kGate, kUp, kDown };
inline constexpr int kLinearsPerLayer = 7;
inline constexpr Linear kAllLinears[] = {Linear::kQ,    Linear::kK,  Linear::kV,   Linear::kO,
                                         Linear::kGate, Linear::kUp, Linear::kDown};

// "q_proj" ... "down_proj", as in Hugging Face models and PEFT folders.
const char* linear_name(Linear linear);
// "model.layers.3.self_attn.q_proj"
std::string module_path(int layer, Linear linear);

enum class RopeScaling { kNone, kLinear, kYarn, kLlama3 };

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
  int rope_original_context = 0;  // kYarn, kLlama3
  double rope_beta_fast = 32.0;   // kYarn: turns over the original context
  double rope_beta_slow = 1.0;
  bool rope_truncate = true;      // kYarn: the ramp begins and ends at whole dimensions
  double rope_magnitude = 1.0;    // kYarn
  double rope_low_freq = 1.0;     // kLlama3: wavelengths in parts of the original context
  double rope_high_freq = 4.0;
  std::optional<bool> tied;       // the head is the embedding; empty = where the file has no head
  std::array<std::optional<bool>, kLinearsPerLayer> biases;  // empty = where the file has one

  int q_size() const { return heads * head_dim; }
  int kv_size() const { return kv_heads * head_dim; }
  bool qk_norm() const { return family == ModelFamily::kQwen3; }
  // Rows (outputs) and columns (inputs) of a linear layer.
  std::int64_t linear_rows(Linear linear) const;
  std::int64_t linear_cols(Linear linear) const;
};

// kInvalidArgument names file, key and value. The vocabulary size is the row count of token_embd.weight.
Result<ModelConfig> config_from_gguf(const GgufFile& file);
// The same from the text of a config.json; `where` is its path. An absent key counts as transformers' default.
Result<ModelConfig> config_from_json(std::string_view text, const std::string& where);
// Mistakes that any file may make; `where` and the names of the two keys are for the message.
Status check_heads(const ModelConfig& config, const std::string& where, const std::string& kv_heads_key,
                   const std::string& head_dim_key);

// Factor of cos and sin under YaRN (arXiv 2309.00071, eq. 22).
double yarn_magnitude(double factor, double mscale = 1.0);

// Angles per position of the rotary embedding, [head_dim / 2]: base^(-2i/head_dim) under the scaling rule, each divided
// by `factors` (the file's rope_freqs.weight, Llama 3's rule) where given. `magnitude` multiplies cos and sin.
struct RopeFrequencies {
  std::vector<float> inverse;
  float magnitude = 1.0f;
};
RopeFrequencies rope_frequencies(const ModelConfig& config, const std::vector<float>& factors);

}  // namespace sluice
