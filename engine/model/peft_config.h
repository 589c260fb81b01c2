// SPDX-License-Identifier: GPL-3.0-or-later
// adapter_config.json of a PEFT folder: which modules it adapts, at which rank and scale. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "model/lora.h"

namespace sluice {

inline constexpr int kMaxLoraRank = 256;  // serving.md 3.4

// A module list as PEFT writes it: names, each exact or a suffix after a dot; or a pattern that must match in full.
struct ModuleMatch {
  std::vector<std::string> names;
  std::string pattern;  // used when not empty
};

struct PeftConfig {
  int rank = 0;
  double alpha = 0;
  bool rslora = false;
  bool gaussian = false;
  bool all_linear = false;
  ModuleMatch target;
  ModuleMatch exclude;
  std::vector<std::pair<std::string, int>> rank_pattern;      // first match wins, at the end of the name after a dot
  std::vector<std::pair<std::string, double>> alpha_pattern;
  std::optional<std::vector<int>> layers;  // layers_to_transform
  std::vector<std::string> layers_pattern;
  std::vector<std::string> warnings;
};

// Where two rules meet: `where` names the file in errors. kCorrupt: not JSON. kInvalidArgument: what Sluice can't honour.
Result<PeftConfig> parse_peft_config(std::string_view json, const std::string& where);

struct ModuleSettings {
  int rank = 0;
  double alpha = 0;
};
// Settings of a module of the model, or nothing when the configuration does not adapt it. kInvalidArgument: a pattern
// that is no regular expression or takes too long.
Result<std::optional<ModuleSettings>> module_settings(const PeftConfig& config, int layer, Linear linear);

// The same file for our own adapters; equal data gives equal bytes.
std::string write_peft_config(const LoraData& data, const ModelConfig& model, const std::string& base_model_name);

}  // namespace sluice
