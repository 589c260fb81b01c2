// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {
namespace {

// One metadata key of the model's architecture, with the file and the full key in every error.
class Keys {
 public:
  Keys(const GgufFile& file, std::string architecture) : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string name(const char* key) const { return prefix_ + key; }
  bool has(const char* key) const { return file_.has(name(key)); }

  Status bad(const char* key, const std::string& what) const {
    return invalid_argument(file_.path() + ": " + name(key) + " " + what);
  }
  Result<int> positive(const char* key) const {
    SLUICE_ASSIGN_OR_RETURN(const std::uint32_t value, file_.get_u32(name(key)));
    if (value < 1 || value > (1u << 24)) return bad(key, "is " + std::to_string(value) + "; a model needs 1 to 16777216");
    return static_cast<int>(value);
  }
  Result<int> positive_or(const char* key, int absent) const {
    if (!has(key)) return absent;
    return positive(key);
  }
  Result<int> count_or_zero(const char* key) const {
    SLUICE_ASSIGN_OR_RETURN(const std::uint32_t value, file_.get_u32_or(name(key), 0));
    return static_cast<int>(std::min<std::uint32_t>(value, 1u << 30));
  }
  Result<double> real_or(const char* key, double absent) const {
    SLUICE_ASSIGN_OR_RETURN(const float value, file_.get_f32_or(name(key), static_cast<float>(absent)));
    if (!std::isfinite(value) || value <= 0) return bad(key, "is " + std::to_string(value) + "; it must be above 0");
    return has(key) ? value : absent;
  }
  // For a number that changes the arithmetic: absent, or one of the values that change nothing.
  Status only(const char* key, float usual, std::optional<float> also = std::nullopt) const {
    SLUICE_ASSIGN_OR_RETURN(const float value, file_.get_f32_or(name(key), usual));
    if (value == usual || value == also) return {};
    return bad(key, "is " + std::to_string(value) + "; only " + std::to_string(static_cast<int>(usual)) + " is supported");
  }

 private:
  const GgufFile& file_;
  std::string prefix_;
};

Result<ModelFamily> family_of(const GgufFile& file, const std::string& architecture) {
  if (const auto family = model_family(architecture)) return *family;
  return invalid_argument(file.path() + ": architecture \"" + architecture +
                          "\" is not supported; Sluice runs llama, qwen2 and qwen3");
}

Status read_yarn(const Keys& keys, ModelConfig& c) {
  c.rope_magnitude = yarn_magnitude(c.rope_factor);
  SLUICE_ASSIGN_OR_RETURN(c.rope_beta_fast, keys.real_or("rope.scaling.yarn_beta_fast", c.rope_beta_fast));
  SLUICE_ASSIGN_OR_RETURN(c.rope_beta_slow, keys.real_or("rope.scaling.yarn_beta_slow", c.rope_beta_slow));
  if (c.rope_beta_fast < c.rope_beta_slow) return keys.bad("rope.scaling.yarn_beta_fast", "is below yarn_beta_slow");
  SLUICE_RETURN_IF_ERROR(keys.only("rope.scaling.yarn_attn_factor", 1.0f));
  SLUICE_RETURN_IF_ERROR(keys.only("rope.scaling.yarn_log_multiplier", 0.0f));
  const float unset = -1.0f;  // in llama.cpp: as the scaling type has it
  return keys.only("rope.scaling.yarn_ext_factor", 1.0f, unset);
}

Status read_rope(const GgufFile& file, const Keys& keys, ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(c.rope_base, keys.real_or("rope.freq_base", 10000.0));
  SLUICE_ASSIGN_OR_RETURN(const std::string kind, file.get_string_or(keys.name("rope.scaling.type"), "none"));
  if (kind == "none") return {};
  if (kind != "linear" && kind != "yarn") {
    return keys.bad("rope.scaling.type", "is \"" + kind + "\"; Sluice knows none, linear and yarn");
  }
  c.rope_scaling = kind == "linear" ? RopeScaling::kLinear : RopeScaling::kYarn;
  SLUICE_ASSIGN_OR_RETURN(c.rope_factor, keys.real_or("rope.scaling.factor", 1.0));
  SLUICE_ASSIGN_OR_RETURN(c.rope_original_context, keys.positive_or("rope.scaling.original_context_length", c.context));
  return c.rope_scaling == RopeScaling::kYarn ? read_yarn(keys, c) : Status();
}

// Variants that need other arithmetic than this engine's: running them anyway would give plausible nonsense.
Status refuse_variants(const Keys& keys, const ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(const int experts, keys.count_or_zero("expert_count"));
  if (experts > 0) return keys.bad("expert_count", "is " + std::to_string(experts) + "; mixtures of experts are not supported");
  SLUICE_ASSIGN_OR_RETURN(const int window, keys.count_or_zero("attention.sliding_window"));
  if (window > 0 && window < c.context) {
    return keys.bad("attention.sliding_window", "is " + std::to_string(window) + ", below the context of " +
                                                    std::to_string(c.context) + "; windowed attention is not supported");
  }
  return keys.only("rope.scaling.attn_factor", 1.0f);
}

}  // namespace

std::optional<ModelFamily> model_family(std::string_view name) {
  if (name == "llama") return ModelFamily::kLlama;
  if (name == "qwen2") return ModelFamily::kQwen2;
  if (name == "qwen3") return ModelFamily::kQwen3;
  return std::nullopt;
}

Status check_heads(const ModelConfig& c, const std::string& where, const std::string& kv_heads_key,
                   const std::string& head_dim_key) {
  if (c.heads % c.kv_heads != 0) {
    return invalid_argument(where + ": " + kv_heads_key + " is " + std::to_string(c.kv_heads) + ", which does not divide the " +
                            std::to_string(c.heads) + " heads");
  }
  if (c.head_dim % 8 != 0) {
    return invalid_argument(where + ": " + head_dim_key + " gives heads of " + std::to_string(c.head_dim) +
                            "; Sluice needs a multiple of 8");
  }
  if (static_cast<std::int64_t>(c.heads) * c.head_dim > (1 << 24)) {
    return invalid_argument(where + ": " + std::to_string(c.heads) + " heads of " + std::to_string(c.head_dim) + " (" +
                            head_dim_key + ") are more than Sluice can hold");
  }
  return {};
}

const char* linear_name(Linear linear) {
  switch (linear) {
    case Linear::kQ: return "q_proj";
    case Linear::kK: return "k_proj";
    case Linear::kV: return "v_proj";
    case Linear::kO: return "o_proj";
    case Linear::kGate: return "gate_proj";
    case Linear::kUp: return "up_proj";
    case Linear::kDown: return "down_proj";
  }
  return "unknown";
}

std::string module_path(int layer, Linear linear) {
  const bool attention = linear <= Linear::kO;
  return "model.layers." + std::to_string(layer) + (attention ? ".self_attn." : ".mlp.") + linear_name(linear);
}

std::int64_t ModelConfig::linear_rows(Linear linear) const {
  switch (linear) {
    case Linear::kQ: return q_size();
    case Linear::kK:
    case Linear::kV: return kv_size();
    case Linear::kO:
    case Linear::kDown: return hidden;
    case Linear::kGate:
    case Linear::kUp: return ffn;
  }
  return 0;
}

std::int64_t ModelConfig::linear_cols(Linear linear) const {
  if (linear == Linear::kO) return q_size();
  return linear == Linear::kDown ? ffn : hidden;
}

Result<ModelConfig> config_from_gguf(const GgufFile& file) {
  ModelConfig c;
  SLUICE_ASSIGN_OR_RETURN(const std::uint32_t parts, file.get_u32_or("split.count", 1));
  if (parts > 1) {
    return invalid_argument(file.path() + ": split.count is " + std::to_string(parts) +
                            "; Sluice reads whole files: join the parts with llama-gguf-split --merge");
  }
  SLUICE_ASSIGN_OR_RETURN(c.architecture, file.get_string("general.architecture"));
  SLUICE_ASSIGN_OR_RETURN(c.family, family_of(file, c.architecture));
  const Keys keys(file, c.architecture);
  SLUICE_ASSIGN_OR_RETURN(c.layers, keys.positive("block_count"));
  SLUICE_ASSIGN_OR_RETURN(c.hidden, keys.positive("embedding_length"));
  SLUICE_ASSIGN_OR_RETURN(c.ffn, keys.positive("feed_forward_length"));
  SLUICE_ASSIGN_OR_RETURN(c.heads, keys.positive("attention.head_count"));
  SLUICE_ASSIGN_OR_RETURN(c.kv_heads, keys.positive_or("attention.head_count_kv", c.heads));
  if (c.hidden % c.heads != 0 && !keys.has("attention.key_length")) {
    return keys.bad("attention.head_count", "is " + std::to_string(c.heads) + ", which does not divide embedding_length " +
                                                std::to_string(c.hidden));
  }
  SLUICE_ASSIGN_OR_RETURN(c.head_dim, keys.positive_or("attention.key_length", c.hidden / c.heads));
  SLUICE_ASSIGN_OR_RETURN(const int value_dim, keys.positive_or("attention.value_length", c.head_dim));
  if (value_dim != c.head_dim) {
    return keys.bad("attention.value_length", "is " + std::to_string(value_dim) + ", unlike the key length " +
                                                  std::to_string(c.head_dim) + "; Sluice needs them equal");
  }
  SLUICE_RETURN_IF_ERROR(check_heads(c, file.path(), keys.name("attention.head_count_kv"), keys.name("attention.key_length")));
  SLUICE_ASSIGN_OR_RETURN(const int rotary, keys.positive_or("rope.dimension_count", c.head_dim));
  if (rotary != c.head_dim) {
    return keys.bad("rope.dimension_count", "is " + std::to_string(rotary) + "; Sluice rotates whole heads of " +
                                                std::to_string(c.head_dim));
  }
  SLUICE_ASSIGN_OR_RETURN(c.context, keys.positive("context_length"));
  SLUICE_ASSIGN_OR_RETURN(const double eps, keys.real_or("attention.layer_norm_rms_epsilon", 1e-5));
  c.rms_eps = static_cast<float>(eps);
  SLUICE_RETURN_IF_ERROR(read_rope(file, keys, c));
  SLUICE_RETURN_IF_ERROR(refuse_variants(keys, c));
  SLUICE_ASSIGN_OR_RETURN(const GgufTensor* embedding, file.tensor("token_embd.weight"));
  if (embedding->rows() > (1 << 24)) {
    return invalid_argument(file.path() + ": token_embd.weight has " + std::to_string(embedding->rows()) + " rows; Sluice takes 16777216");
  }
  c.vocab = static_cast<int>(embedding->rows());
  return c;
}

double yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

namespace {

// Dimensions between which YaRN (arXiv 2309.00071) goes over from kept to divided frequencies.
struct YarnRamp {
  double low = 0, high = 0;

  explicit YarnRamp(const ModelConfig& c) {
    const auto correction = [&](double turns) {
      return c.head_dim * std::log(c.rope_original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(c.rope_base));
    };
    low = correction(c.rope_beta_fast);
    high = correction(c.rope_beta_slow);
    if (c.rope_truncate) {
      low = std::floor(low);
      high = std::ceil(high);
    }
    low = std::max(low, 0.0);
    high = std::min(high, c.head_dim - 1.0);
    if (low == high) high += 0.001;
  }
  // Frequencies that turn more than beta_fast times over the original context stay, those under beta_slow are divided.
  double apply(double f, int i, double factor) const {
    const double ramp = std::min(std::max((i - low) / (high - low), 0.0), 1.0);
    return f / factor * ramp + f * (1 - ramp);
  }
};

// Llama 3.1: short wavelengths stay, long ones are stretched, between them it goes over smoothly.
double llama3_frequency(double f, const ModelConfig& c) {
  const double turns = c.rope_original_context * f / (2 * std::numbers::pi);  // over the original context
  if (turns > c.rope_high_freq) return f;
  if (turns < c.rope_low_freq) return f / c.rope_factor;
  const double smooth = (turns - c.rope_low_freq) / (c.rope_high_freq - c.rope_low_freq);
  return (1 - smooth) * f / c.rope_factor + smooth * f;
}

}  // namespace

RopeFrequencies rope_frequencies(const ModelConfig& config, const std::vector<float>& factors) {
  const int half = config.head_dim / 2;
  RopeFrequencies out;
  out.inverse.resize(static_cast<std::size_t>(half));
  out.magnitude = static_cast<float>(config.rope_magnitude);
  const YarnRamp ramp(config);
  for (int i = 0; i < half; ++i) {
    double f = 1.0 / std::pow(config.rope_base, 2.0 * i / config.head_dim);
    switch (config.rope_scaling) {
      case RopeScaling::kNone: break;
      case RopeScaling::kLinear: f /= config.rope_factor; break;
      case RopeScaling::kYarn: f = ramp.apply(f, i, config.rope_factor); break;
      case RopeScaling::kLlama3: f = llama3_frequency(f, config); break;
    }
    if (!factors.empty()) f /= factors[static_cast<std::size_t>(i)];
    out.inverse[static_cast<std::size_t>(i)] = static_cast<float>(f);
  }
  return out;
}

}  // namespace sluice
