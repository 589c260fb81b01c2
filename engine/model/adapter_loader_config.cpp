// SPDX-License-Identifier: GPL-3.0-or-later
// The rules of learning.md §7 for adapter_config.json.
#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_limits.h"
#include "model/name_pattern.h"
#include "model/peft_config.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

// Keys that never change what a finished adapter computes.
const std::set<std::string> kIgnored = {
    "lora_dropout",  "inference_mode", "revision",     "auto_mapping", "megatron_config", "megatron_core", "loftq_config",
    "peft_version",  "runtime_config", "eva_config",   "corda_config", "lora_ga_config",  "qalora_group_size",
    "base_model_name_or_path"};
// Keys that change it in a way Sluice does not compute.
const std::set<std::string> kUnsupported = {
    "use_dora",         "lora_bias",     "modules_to_save",         "fan_in_fan_out", "target_parameters", "trainable_token_indices",
    "layer_replication", "use_qalora",   "alora_invocation_tokens", "arrow_config",   "use_bdlora",        "ensure_weight_tying",
    "kasa_config",      "velora_config", "monteclora_config"};

bool is_nothing(const Json& v) {
  return v.is_null() || (v.is_boolean() && !v.get<bool>()) || (v.is_structured() && v.empty()) ||
         (v.is_string() && v.get_ref<const std::string&>().empty());
}

class Parser {
 public:
  Parser(const Json& json, std::string where) : json_(json), where_(std::move(where)) {}

  Result<PeftConfig> run() {
    SLUICE_RETURN_IF_ERROR(required());
    SLUICE_RETURN_IF_ERROR(patterns());
    SLUICE_RETURN_IF_ERROR(modules());
    SLUICE_RETURN_IF_ERROR(layers());
    for (const auto& [key, value] : json_.items()) SLUICE_RETURN_IF_ERROR(other(key, value));
    return std::move(out_);
  }

 private:
  Status bad(const std::string& key, const std::string& what) const {
    return invalid_argument(where_ + ": \"" + key + "\" " + what);
  }
  static std::string too_high(int rank) {
    return "is " + std::to_string(rank) + "; Sluice takes ranks up to " + std::to_string(kMaxLoraRank);
  }
  const Json* find(const char* key) {
    seen_.insert(key);
    const auto it = json_.find(key);
    return it == json_.end() || it->is_null() ? nullptr : &*it;
  }

  Status required() {
    const Json* type = find("peft_type");
    if (type == nullptr || *type != "LORA") return bad("peft_type", "must be \"LORA\"");
    const Json* r = find("r");
    if (r == nullptr || !r->is_number_integer() || *r < 1 || *r > 65536) return bad("r", "must be an integer from 1 to 65536");
    out_.rank = r->get<int>();
    if (out_.rank > kMaxLoraRank) return bad("r", too_high(out_.rank));
    const Json* alpha = find("lora_alpha");
    if (alpha == nullptr || !alpha->is_number() || !std::isfinite(alpha->get<double>())) {
      return bad("lora_alpha", "must be a finite number");
    }
    out_.alpha = alpha->get<double>();
    if (const Json* rs = find("use_rslora")) {
      if (!rs->is_boolean()) return bad("use_rslora", "must be true or false");
      out_.rslora = rs->get<bool>();
    }
    if (const Json* bias = find("bias"); bias != nullptr && *bias != "none") {
      return bad("bias", "is " + bias->dump() + "; Sluice runs adapters without trained biases (\"none\")");
    }
    if (const Json* init = find("init_lora_weights"); init != nullptr && !init->is_boolean()) {
      if (*init != "gaussian") return bad("init_lora_weights", "is " + init->dump() + ", which changes the base weights");
      out_.gaussian = true;
    }
    if (const Json* task = find("task_type"); task != nullptr && *task != "CAUSAL_LM") {
      out_.warnings.push_back("\"task_type\" is " + task->dump() + ", not \"CAUSAL_LM\"");
    }
    return {};
  }

  Status patterns() {
    if (const Json* ranks = find("rank_pattern")) {
      if (!ranks->is_object()) return bad("rank_pattern", "must map patterns to ranks");
      for (const auto& [pattern, r] : ranks->items()) {
        if (!r.is_number_integer() || r < 1 || r > 65536) return bad("rank_pattern", "gives \"" + pattern + "\" no rank from 1 to 65536");
        if (r > kMaxLoraRank) return bad("rank_pattern", too_high(r.get<int>()));
        out_.rank_pattern.emplace_back(pattern, r.get<int>());
      }
    }
    if (const Json* alphas = find("alpha_pattern")) {
      if (!alphas->is_object()) return bad("alpha_pattern", "must map patterns to numbers");
      for (const auto& [pattern, a] : alphas->items()) {
        if (!a.is_number() || !std::isfinite(a.get<double>())) return bad("alpha_pattern", "gives \"" + pattern + "\" no finite number");
        out_.alpha_pattern.emplace_back(pattern, a.get<double>());
      }
    }
    return {};
  }

  Status strings(const char* key, const Json& list, std::vector<std::string>& out) const {
    if (!list.is_array()) return bad(key, "must be a string or a list of strings");
    for (const Json& s : list) {
      if (!s.is_string()) return bad(key, "must be a string or a list of strings");
      out.push_back(s.get<std::string>());
    }
    return {};
  }

  Status modules() {
    const Json* target = find("target_modules");
    if (target == nullptr) {
      out_.target.names = {"q_proj", "v_proj"};
    } else if (target->is_string()) {
      out_.target.pattern = target->get<std::string>();
      out_.all_linear = out_.target.pattern == "all-linear";
    } else {
      SLUICE_RETURN_IF_ERROR(strings("target_modules", *target, out_.target.names));
    }
    const Json* exclude = find("exclude_modules");
    if (exclude == nullptr) return {};
    if (!exclude->is_string()) return strings("exclude_modules", *exclude, out_.exclude.names);
    out_.exclude.pattern = exclude->get<std::string>();
    return {};
  }

  Status layers() {
    if (const Json* pattern = find("layers_pattern")) {
      if (pattern->is_string()) {
        out_.layers_pattern.push_back(pattern->get<std::string>());
      } else {
        SLUICE_RETURN_IF_ERROR(strings("layers_pattern", *pattern, out_.layers_pattern));
      }
      std::erase(out_.layers_pattern, "");
    }
    const Json* layers = find("layers_to_transform");
    if (layers == nullptr) return {};
    std::vector<int> list;
    for (const Json& l : layers->is_array() ? *layers : Json::array({*layers})) {
      if (!l.is_number_integer() || l < 0 || l > (1 << 20)) return bad("layers_to_transform", "must hold layer numbers");
      list.push_back(l.get<int>());
    }
    out_.layers = std::move(list);
    return {};
  }

  Status other(const std::string& key, const Json& value) {
    if (seen_.contains(key) || kIgnored.contains(key)) return {};
    if (is_nothing(value)) {
      if (!kUnsupported.contains(key)) out_.warnings.push_back("\"" + key + "\" is unknown and empty; ignored");
      return {};
    }
    if (kUnsupported.contains(key)) return bad(key, "is " + value.dump() + ", which Sluice does not support");
    return bad(key, "is unknown here and set to " + value.dump() + "; it might change what the adapter computes");
  }

  const Json& json_;
  const std::string where_;
  std::set<std::string> seen_;
  PeftConfig out_;
};

Result<bool> in(const ModuleMatch& match, const std::string& path) {
  if (!match.pattern.empty()) return matches_whole(match.pattern, path);
  return std::any_of(match.names.begin(), match.names.end(),
                     [&](const std::string& n) { return path == n || path.ends_with("." + n); });
}

// PEFT's rule for the keys of rank_pattern and alpha_pattern.
template <class T>
Result<T> by_pattern(const std::vector<std::pair<std::string, T>>& patterns, const std::string& path, T otherwise) {
  for (const auto& [pattern, value] : patterns) {
    SLUICE_ASSIGN_OR_RETURN(const bool hit, matches_whole("(.*\\.)?(" + pattern + ")", path));
    if (hit) return value;
  }
  return otherwise;
}

}  // namespace

Result<PeftConfig> parse_peft_config(std::string_view text, const std::string& where) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, where));
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return corrupt(where + " is not a JSON object");
  return Parser(json, where).run();
}

Result<std::optional<ModuleSettings>> module_settings(const PeftConfig& config, int layer, Linear linear) {
  const std::string path = module_path(layer, linear);
  if (!config.all_linear) {
    SLUICE_ASSIGN_OR_RETURN(const bool wanted, in(config.target, path));
    if (!wanted) return std::optional<ModuleSettings>();
  }
  SLUICE_ASSIGN_OR_RETURN(const bool excluded, in(config.exclude, path));
  if (excluded) return std::optional<ModuleSettings>();
  if (config.layers.has_value()) {
    const bool named = config.layers_pattern.empty() ||
                       std::find(config.layers_pattern.begin(), config.layers_pattern.end(), "layers") != config.layers_pattern.end();
    if (!named || std::find(config.layers->begin(), config.layers->end(), layer) == config.layers->end()) {
      return std::optional<ModuleSettings>();
    }
  }
  ModuleSettings settings;
  SLUICE_ASSIGN_OR_RETURN(settings.rank, by_pattern(config.rank_pattern, path, config.rank));
  SLUICE_ASSIGN_OR_RETURN(settings.alpha, by_pattern(config.alpha_pattern, path, config.alpha));
  return std::optional<ModuleSettings>(settings);
}

std::string write_peft_config(const LoraData& data, const ModelConfig& model, const std::string& base_model_name) {
  const auto number = [](double x) { return x == std::floor(x) && std::fabs(x) < 1e9 ? Json(static_cast<std::int64_t>(x)) : Json(x); };
  std::set<Linear> linears;
  for (const LoraFactors& f : data.modules) linears.insert(f.linear);
  // Short names where every layer has the same modules: other programs expect them.
  const bool uniform = data.modules.size() == linears.size() * static_cast<std::size_t>(model.layers);
  Json targets = Json::array(), ranks = Json::object(), alphas = Json::object();
  if (uniform) {
    for (const Linear l : linears) targets.push_back(linear_name(l));
  }
  for (const LoraFactors& f : data.modules) {
    const std::string path = module_path(f.layer, f.linear);
    if (!uniform) targets.push_back(path);
    if (f.rank != data.config.rank) ranks[path] = f.rank;
    if (f.alpha != data.config.alpha) alphas[path] = number(f.alpha);
  }
  Json j;
  j["alpha_pattern"] = alphas;
  j["auto_mapping"] = nullptr;
  j["base_model_name_or_path"] = base_model_name;
  j["bias"] = "none";
  j["exclude_modules"] = nullptr;
  j["fan_in_fan_out"] = false;
  j["inference_mode"] = true;
  j["init_lora_weights"] = data.config.gaussian ? Json("gaussian") : Json(true);
  j["layers_pattern"] = nullptr;
  j["layers_to_transform"] = nullptr;
  j["lora_alpha"] = number(data.config.alpha);
  j["lora_bias"] = false;
  j["lora_dropout"] = 0.0;
  j["modules_to_save"] = nullptr;
  j["peft_type"] = "LORA";
  j["r"] = data.config.rank;
  j["rank_pattern"] = ranks;
  j["revision"] = nullptr;
  j["target_modules"] = targets;
  j["task_type"] = "CAUSAL_LM";
  j["use_dora"] = false;
  j["use_rslora"] = data.config.rslora;
  return j.dump(2) + "\n";
}

}  // namespace sluice
