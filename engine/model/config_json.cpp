// SPDX-License-Identifier: GPL-3.0-or-later
// config_from_json: the config.json of transformers, versions 4 (rope_theta, rope_scaling) and 5 (rope_parameters).
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_limits.h"
#include "model/config.h"

namespace sluice {
namespace {

using nlohmann::json;

constexpr int kMost = 1 << 24;

// One object of the file, with path and key in every error. A null counts as absent.
class JsonKeys {
 public:
  JsonKeys(const json& object, std::string where, std::string prefix = "")
      : object_(object), where_(std::move(where)), prefix_(std::move(prefix)) {}

  const json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  bool has(const char* key) const { return find(key) != nullptr; }
  bool is_null(const char* key) const { return object_.contains(key) && object_.at(key).is_null(); }
  Status bad(const char* key, const std::string& what) const {
    return invalid_argument(where_ + ": " + prefix_ + key + " " + what);
  }

  Result<int> positive(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return bad(key, "is missing");
    const bool whole = value->is_number_integer() || (value->is_number_float() && value->get<double>() == std::floor(value->get<double>()));
    const double number = whole ? value->get<double>() : 0;
    if (!whole || number < 1 || number > kMost) return bad(key, "is " + value->dump() + "; a model needs 1 to 16777216");
    return static_cast<int>(number);
  }
  Result<int> positive_or(const char* key, int absent) const {
    if (!has(key)) return absent;
    return positive(key);
  }
  Result<double> real(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return bad(key, "is missing");
    if (!value->is_number() || !std::isfinite(value->get<double>()) || value->get<double>() <= 0) {
      return bad(key, "is " + value->dump() + "; it must be a number above 0");
    }
    return value->get<double>();
  }
  Result<double> real_or(const char* key, double absent) const {
    if (!has(key)) return absent;
    return real(key);
  }
  Result<bool> flag_or(const char* key, bool absent) const {
    const json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_boolean()) return bad(key, "is " + value->dump() + ", neither true nor false");
    return value->get<bool>();
  }
  Result<std::string> text_or(const char* key, const std::string& absent) const {
    const json* value = find(key);
    if (value == nullptr) return absent;
    if (!value->is_string()) return bad(key, "is " + value->dump() + ", not a text");
    return value->get<std::string>();
  }
  // An object's keys, or nothing.
  Result<std::optional<JsonKeys>> object(const char* key) const {
    const json* value = find(key);
    if (value == nullptr) return std::optional<JsonKeys>();
    if (!value->is_object()) return bad(key, "is not an object");
    return std::optional<JsonKeys>(JsonKeys(*value, where_, prefix_ + key + "."));
  }

 private:
  const json& object_;
  std::string where_;
  std::string prefix_;
};

Status read_family(const JsonKeys& keys, ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(c.architecture, keys.text_or("model_type", ""));
  const auto family = model_family(c.architecture);
  if (!family) {
    return keys.bad("model_type", "is \"" + c.architecture + "\", which is not supported; Sluice runs llama, qwen2 and qwen3");
  }
  c.family = *family;
  return {};
}

Status read_shape(const JsonKeys& keys, ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(c.layers, keys.positive("num_hidden_layers"));
  SLUICE_ASSIGN_OR_RETURN(c.hidden, keys.positive("hidden_size"));
  SLUICE_ASSIGN_OR_RETURN(c.ffn, keys.positive("intermediate_size"));
  SLUICE_ASSIGN_OR_RETURN(c.vocab, keys.positive("vocab_size"));
  SLUICE_ASSIGN_OR_RETURN(c.heads, keys.positive("num_attention_heads"));
  SLUICE_ASSIGN_OR_RETURN(c.kv_heads, keys.positive_or("num_key_value_heads", c.heads));
  const bool by_default = c.family == ModelFamily::kQwen3 && !keys.is_null("head_dim");  // absent is 128 there
  if (!by_default && !keys.has("head_dim") && c.hidden % c.heads != 0) {
    return keys.bad("num_attention_heads", "is " + std::to_string(c.heads) + ", which does not divide hidden_size " +
                                               std::to_string(c.hidden));
  }
  SLUICE_ASSIGN_OR_RETURN(c.head_dim, keys.positive_or("head_dim", by_default ? 128 : c.hidden / c.heads));
  SLUICE_ASSIGN_OR_RETURN(c.context, keys.positive_or("max_position_embeddings", c.family == ModelFamily::kLlama ? 2048 : 32768));
  SLUICE_ASSIGN_OR_RETURN(const double eps, keys.real_or("rms_norm_eps", 1e-6));
  c.rms_eps = static_cast<float>(eps);
  return {};
}

Status read_tensors(const JsonKeys& keys, ModelConfig& c) {
  if (keys.has("tie_word_embeddings")) {
    SLUICE_ASSIGN_OR_RETURN(c.tied, keys.flag_or("tie_word_embeddings", false));
  }
  SLUICE_ASSIGN_OR_RETURN(const bool attention, keys.flag_or("attention_bias", false));
  SLUICE_ASSIGN_OR_RETURN(const bool mlp, keys.flag_or("mlp_bias", false));
  const bool qwen2 = c.family == ModelFamily::kQwen2;  // its q, k and v have biases, whatever the file says
  for (const Linear l : kAllLinears) {
    auto& bias = c.biases[static_cast<std::size_t>(l)];
    if (l <= Linear::kV) {
      bias = qwen2 || attention;
    } else if (l == Linear::kO) {
      bias = !qwen2 && attention;
    } else {
      bias = c.family == ModelFamily::kLlama && mlp;
    }
  }
  return {};
}

// "type" is the name of transformers before 4.43, "rope_type" since; files may hold both.
Result<std::string> rope_type(const JsonKeys& rope) {
  SLUICE_ASSIGN_OR_RETURN(const std::string old_name, rope.text_or("type", ""));
  SLUICE_ASSIGN_OR_RETURN(const std::string new_name, rope.text_or("rope_type", old_name));
  if (!old_name.empty() && new_name != old_name) {
    return rope.bad("rope_type", "is \"" + new_name + "\", but type is \"" + old_name + "\"; make them agree");
  }
  return new_name.empty() ? "default" : new_name;
}

Status read_yarn(const JsonKeys& rope, ModelConfig& c) {
  c.rope_scaling = RopeScaling::kYarn;
  SLUICE_ASSIGN_OR_RETURN(c.rope_factor, rope.real_or("factor", static_cast<double>(c.context) / c.rope_original_context));
  SLUICE_ASSIGN_OR_RETURN(c.rope_beta_fast, rope.real_or("beta_fast", 32.0));
  SLUICE_ASSIGN_OR_RETURN(c.rope_beta_slow, rope.real_or("beta_slow", 1.0));
  SLUICE_ASSIGN_OR_RETURN(c.rope_truncate, rope.flag_or("truncate", true));
  double magnitude = yarn_magnitude(c.rope_factor);
  if (rope.has("mscale") && rope.has("mscale_all_dim")) {
    SLUICE_ASSIGN_OR_RETURN(const double mscale, rope.real("mscale"));
    SLUICE_ASSIGN_OR_RETURN(const double all, rope.real("mscale_all_dim"));
    magnitude = yarn_magnitude(c.rope_factor, mscale) / yarn_magnitude(c.rope_factor, all);
  }
  SLUICE_ASSIGN_OR_RETURN(c.rope_magnitude, rope.real_or("attention_factor", magnitude));
  if (c.rope_beta_fast < c.rope_beta_slow) return rope.bad("beta_fast", "is below beta_slow");
  // Model cards leave max_position_embeddings at the length before the stretch.
  const double stretched = c.rope_original_context * c.rope_factor;
  if (stretched > c.context && stretched <= kMost) c.context = static_cast<int>(stretched);
  return {};
}

Status read_scaling(const JsonKeys& keys, const JsonKeys& rope, ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(c.rope_base, rope.real_or("rope_theta", c.rope_base));
  SLUICE_ASSIGN_OR_RETURN(const double part, rope.real_or("partial_rotary_factor", 1.0));
  if (part != 1.0) return rope.bad("partial_rotary_factor", "is " + std::to_string(part) + "; Sluice rotates whole heads");
  SLUICE_ASSIGN_OR_RETURN(const std::string type, rope_type(rope));
  if (type == "default") return {};
  if (type != "linear" && type != "llama3" && type != "yarn") {
    return rope.bad("rope_type", "is \"" + type + "\"; Sluice knows default, linear, llama3 and yarn");
  }
  SLUICE_ASSIGN_OR_RETURN(c.rope_original_context, rope.positive_or("original_max_position_embeddings", c.context));
  SLUICE_ASSIGN_OR_RETURN(c.rope_original_context, keys.positive_or("original_max_position_embeddings", c.rope_original_context));
  if (type == "yarn") {
    SLUICE_RETURN_IF_ERROR(read_yarn(rope, c));
  } else {
    SLUICE_ASSIGN_OR_RETURN(c.rope_factor, rope.real("factor"));
    c.rope_scaling = type == "linear" ? RopeScaling::kLinear : RopeScaling::kLlama3;
  }
  if (c.rope_factor < 1) return rope.bad("factor", "is " + std::to_string(c.rope_factor) + "; it must be at least 1");
  if (type == "llama3") {
    SLUICE_ASSIGN_OR_RETURN(c.rope_low_freq, rope.real("low_freq_factor"));
    SLUICE_ASSIGN_OR_RETURN(c.rope_high_freq, rope.real("high_freq_factor"));
    if (c.rope_high_freq <= c.rope_low_freq) return rope.bad("high_freq_factor", "is not above low_freq_factor");
  }
  return {};
}

Status read_rope(const JsonKeys& keys, ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(c.rope_base, keys.real_or("rope_theta", 10000.0));
  SLUICE_ASSIGN_OR_RETURN(const double part, keys.real_or("partial_rotary_factor", 1.0));
  if (part != 1.0) return keys.bad("partial_rotary_factor", "is " + std::to_string(part) + "; Sluice rotates whole heads");
  SLUICE_ASSIGN_OR_RETURN(const std::optional<JsonKeys> parameters, keys.object("rope_parameters"));
  SLUICE_ASSIGN_OR_RETURN(const std::optional<JsonKeys> scaling, keys.object("rope_scaling"));
  if (parameters && scaling && *keys.find("rope_parameters") != *keys.find("rope_scaling")) {
    return keys.bad("rope_scaling", "and rope_parameters disagree; keep one of them");
  }
  if (parameters) SLUICE_RETURN_IF_ERROR(read_scaling(keys, *parameters, c));
  if (scaling) SLUICE_RETURN_IF_ERROR(read_scaling(keys, *scaling, c));
  return {};
}

// Layers that see a window only. With the flag off there are none, whatever else the file says.
Status refuse_window(const JsonKeys& keys, const ModelConfig& c) {
  if (c.family == ModelFamily::kLlama) return {};
  SLUICE_ASSIGN_OR_RETURN(const bool used, keys.flag_or("use_sliding_window", false));
  if (!used || !keys.has("sliding_window")) return {};
  SLUICE_ASSIGN_OR_RETURN(const int window, keys.positive("sliding_window"));
  if (window >= c.context) return {};
  bool any = false;
  if (const json* types = keys.find("layer_types")) {
    if (!types->is_array()) return keys.bad("layer_types", "is not a list");
    any = std::find(types->begin(), types->end(), "sliding_attention") != types->end();
  } else {
    const json* full = keys.find("max_window_layers");  // layers from here on have the window; may be 0
    if (full != nullptr && !full->is_number_integer()) return keys.bad("max_window_layers", "is " + full->dump() + ", not a whole number");
    any = (full == nullptr ? 28 : full->get<std::int64_t>()) < c.layers;
  }
  if (!any) return {};
  return keys.bad("sliding_window", "is " + std::to_string(window) + ", below the context of " + std::to_string(c.context) +
                                        ", and use_sliding_window is true; windowed attention is not supported");
}

// Variants that need other arithmetic than this engine's.
Status refuse_variants(const JsonKeys& keys, const ModelConfig& c) {
  SLUICE_ASSIGN_OR_RETURN(const std::optional<JsonKeys> quantised, keys.object("quantization_config"));
  if (quantised) {
    SLUICE_ASSIGN_OR_RETURN(const std::string method, quantised->text_or("quant_method", "unnamed"));
    return keys.bad("quantization_config", "says the weights are quantised (" + method +
                                               "), which Sluice does not read; use the original model, or a GGUF file");
  }
  for (const char* key : {"hidden_act", "hidden_activation"}) {
    SLUICE_ASSIGN_OR_RETURN(const std::string activation, keys.text_or(key, "silu"));
    if (activation != "silu" && activation != "swish") return keys.bad(key, "is \"" + activation + "\"; Sluice knows silu");
  }
  return refuse_window(keys, c);
}

}  // namespace

Result<ModelConfig> config_from_json(std::string_view text, const std::string& where) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, where));
  const json parsed = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!parsed.is_object()) return invalid_argument(where + " is not a JSON object: download it again");
  const JsonKeys keys(parsed, where);
  ModelConfig c;
  SLUICE_RETURN_IF_ERROR(read_family(keys, c));
  SLUICE_RETURN_IF_ERROR(read_shape(keys, c));
  SLUICE_RETURN_IF_ERROR(check_heads(c, where, "num_key_value_heads", "head_dim"));
  SLUICE_RETURN_IF_ERROR(read_tensors(keys, c));
  SLUICE_RETURN_IF_ERROR(read_rope(keys, c));
  SLUICE_RETURN_IF_ERROR(refuse_variants(keys, c));
  return c;
}

}  // namespace sluice
