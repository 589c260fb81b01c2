// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/recipe.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "base/excerpt.h"
#include "base/json_limits.h"
#include "release/gate_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Setter = std::function<Status(const Json&)>;

Status type_error(const std::string& what, const char* wanted) {
  return invalid_argument(what + " must be " + wanted);
}

Setter number(double& target) {
  return [&target](const Json& value) {
    if (!value.is_number()) return type_error("value", "a number");
    target = value.get<double>();
    return Status();
  };
}

template <class Int>
Setter integer(Int& target) {
  return [&target](const Json& value) {
    if (!value.is_number_integer()) return type_error("value", "a whole number");
    const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX;
    const std::int64_t whole = too_large ? INT64_MAX : value.get<std::int64_t>();
    if (too_large || whole < std::numeric_limits<Int>::min() || whole > std::numeric_limits<Int>::max()) {
      return type_error("value", "a smaller number");
    }
    target = static_cast<Int>(whole);
    return Status();
  };
}

Setter boolean(bool& target) {
  return [&target](const Json& value) {
    if (!value.is_boolean()) return type_error("value", "true or false");
    target = value.get<bool>();
    return Status();
  };
}

template <class T>
Setter named(T& target, Result<T> (*parse)(const std::string&)) {
  return [&target, parse](const Json& value) -> Status {
    if (!value.is_string()) return type_error("value", "a name");
    SLUICE_ASSIGN_OR_RETURN(target, parse(value.get<std::string>()));
    return {};
  };
}

Status apply(const Json& object, const std::string& where, const std::map<std::string, Setter>& setters) {
  if (!object.is_object()) return type_error(where, "an object");
  for (const auto& [key, value] : object.items()) {
    const auto found = setters.find(key);
    if (found == setters.end()) return invalid_argument(where + "." + key + " is unknown");
    if (Status s = found->second(value); !s.ok()) return invalid_argument(where + "." + key + ": " + s.message());
  }
  return {};
}

Status read_reward(const Json& json, RewardSettings& r) {
  const auto weights = [&r](const Json& value) -> Status {
    const std::map<std::string, FeedbackSource> sources = {{"human", FeedbackSource::kHuman},
                                                           {"judge", FeedbackSource::kJudge},
                                                           {"verifier", FeedbackSource::kVerifier},
                                                           {"client", FeedbackSource::kClient},
                                                           {"persona", FeedbackSource::kPersona}};
    if (!value.is_object()) return type_error("value", "an object of source: weight");
    for (const auto& [key, weight] : value.items()) {
      const auto source = sources.find(key);
      if (source == sources.end()) return invalid_argument("source \"" + key + "\" is unknown");
      if (!weight.is_number()) return type_error("the weight of " + key, "a number");
      r.source_weight[static_cast<std::size_t>(source->second)] = weight.get<double>();
    }
    return {};
  };
  return apply(json, "learn.reward", {{"mapping", named(r.mapping, parse_reward_mapping)},
                                      {"tau", number(r.tau)},
                                      {"source_weight", weights}});
}

Status read_learn(const Json& json, LearnSettings& s) {
  LossSettings& loss = s.loss;
  OptimiserSettings& o = s.optimiser;
  BrakeSettings& b = s.brakes;
  const auto brakes = [&b](const Json& value) -> Status {
    if (value.is_string() && value.get<std::string>() == "off") {
      b.enabled = false;
      return {};
    }
    return apply(value, "learn.brakes", {{"mean_abs_kl", number(b.mean_abs_kl)},
                                         {"entropy_fraction", number(b.entropy_fraction)},
                                         {"length_bias", number(b.length_bias)},
                                         {"outside_ratio_share", number(b.outside_ratio_share)},
                                         {"nonfinite_steps", integer(b.nonfinite_steps)},
                                         {"length_low", number(b.length_low)},
                                         {"length_high", number(b.length_high)},
                                         {"window_steps", integer(b.window_steps)}});
  };
  return apply(json, "learn",
               {{"objective", named(loss.objective, parse_objective)},
                {"stale", named(loss.stale, parse_stale_rule)},
                {"aggregation", named(loss.aggregation, parse_aggregation)},
                {"clip_low", number(loss.clip_low)},
                {"clip_high", number(loss.clip_high)},
                {"dual_clip", number(loss.dual_clip)},
                {"truncation_cap", number(loss.truncation_cap)},
                {"kl_beta", number(loss.kl_beta)},
                {"kl_reference", named(loss.kl_reference, parse_kl_reference)},
                {"too_far_low", number(loss.too_far_low)},
                {"too_far_high", number(loss.too_far_high)},
                {"lr", number(o.lr)},
                {"beta1", number(o.beta1)},
                {"beta2", number(o.beta2)},
                {"eps", number(o.eps)},
                {"weight_decay", number(o.weight_decay)},
                {"warmup_steps", integer(o.warmup_steps)},
                {"max_norm", number(o.max_norm)},
                {"rank", integer(s.lora.rank)},
                {"alpha", number(s.lora.alpha)},
                {"batch_size", integer(s.batch_size)},
                {"candidate_every", integer(s.candidate_every)},
                {"max_ahead", integer(s.max_ahead)},
                {"baseline_half_life", number(s.baseline_half_life)},
                {"max_age", integer(s.max_age)},
                {"skip_equal_rewards", boolean(s.skip_equal_rewards)},
                {"micro_batch_tokens", integer(s.micro_batch_tokens)},
                {"inverted_steps", integer(s.inverted_steps)},
                {"reward", [&s](const Json& value) { return read_reward(value, s.reward); }},
                {"brakes", brakes}});
}

Status check_parts(const Json& root) {
  const std::set<std::string> known = {"name",     "title", "summary",   "stream", "sampling",
                                       "user",     "learn", "protected", "gate",   "demo",
                                       "fim"};
  for (const auto& [key, value] : root.items()) {
    if (!known.contains(key)) return invalid_argument("\"" + key + "\" is unknown");
  }
  return {};
}

Status read_fim(const Json& json, Recipe& recipe) {
  const auto markers = [&recipe](const Json& value) -> Status {
    const auto is_text = [](const Json& m) { return m.is_string() && !m.get_ref<const std::string&>().empty(); };
    if (!value.is_array() || value.size() != 3 || !std::all_of(value.begin(), value.end(), is_text)) {
      return type_error("value", "a list of three texts, none of them empty");
    }
    recipe.fim_markers = value.get<std::array<std::string, 3>>();
    return {};
  };
  return apply(json, "fim", {{"markers", markers}});
}

Status read_parts(const Json& root, Recipe& recipe) {
  SLUICE_RETURN_IF_ERROR(check_parts(root));
  recipe.learn.max_tokens = recipe.task.sampling.max_tokens;
  if (root.contains("learn")) SLUICE_RETURN_IF_ERROR(read_learn(root["learn"], recipe.learn));
  SLUICE_RETURN_IF_ERROR(check(recipe.learn));
  recipe.gate = gate_preset(GateProfile::kStandard);
  if (root.contains("gate")) {
    auto gate = gate_settings_from_json(root["gate"].dump(), recipe.gate);
    if (!gate.ok()) return invalid_argument("gate: " + gate.status().message());
    recipe.gate = std::move(gate).value();
  }
  if (root.contains("demo")) {
    DemoSettings& d = recipe.demo;
    SLUICE_RETURN_IF_ERROR(apply(root["demo"], "demo", {{"requests", integer(d.requests)},
                                                        {"bad_candidate", boolean(d.bad_candidate)},
                                                        {"heldout", integer(d.heldout)},
                                                        {"concurrency", integer(d.concurrency)}}));
    if (d.requests < 0 || d.heldout < 0 || d.concurrency < 1 || d.concurrency > 64) {
      return invalid_argument("demo: requests and heldout must be 0 or more, concurrency 1 to 64");
    }
  }
  if (root.contains("fim")) SLUICE_RETURN_IF_ERROR(read_fim(root["fim"], recipe));
  if (!recipe.learn.brakes.enabled && recipe.gate.profile != GateProfile::kOff) {
    return invalid_argument("learn.brakes may be \"off\" only with gate profile \"off\"");
  }
  return {};
}

}  // namespace

Result<Recipe> parse_recipe(const std::string& json, const std::string& path) {
  Recipe recipe;
  recipe.path = path;
  recipe.json = json;
  auto task = parse_task_recipe(json);
  if (!task.ok()) return invalid_argument(path + ": " + task.status().message());
  recipe.task = std::move(task).value();
  recipe.held_back = HeldOutTexts({&recipe.task.held_out, &recipe.task.probes});
  try {
    const Json root = Json::parse(json);
    if (Status s = read_parts(root, recipe); !s.ok()) return invalid_argument(path + ": " + s.message());
  } catch (const Json::exception& e) {
    return invalid_argument(path + ": " + e.what());
  }
  return recipe;
}

Result<Recipe> load_recipe(const std::string& name_or_file, const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  fs::path path = name_or_file;
  const bool is_file = name_or_file.find('/') != std::string::npos || path.extension() == ".json";
  if (!is_file) path = fs::path(folder) / (name_or_file + ".json");
  if (!fs::is_regular_file(path, ignored)) {
    std::string known;
    for (const std::string& name : recipe_names(folder)) known += (known.empty() ? "" : ", ") + name;
    return not_found("recipe \"" + excerpt(name_or_file) + "\" was not found: give a file, or one of " +
                     (known.empty() ? "none in " + folder : known));
  }
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) return unavailable(path.string() + " can't be read");
  SLUICE_RETURN_IF_ERROR(check_json_limits(text.str(), path.string()));
  return parse_recipe(text.str(), path.string());
}

std::vector<std::string> recipe_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string default_recipe_folder() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  // <prefix>/bin/sluice -> <prefix>/share/sluice/recipes when installed.
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  const fs::path installed = program.parent_path().parent_path() / "share" / "sluice" / "recipes";
  if (!program.empty() && fs::is_directory(installed, ignored)) return installed.string();
  return std::string(SLUICE_SOURCE_DIR) + "/resources/recipes";
}

}  // namespace sluice
