// SPDX-License-Identifier: GPL-3.0-or-later
// A recipe file whole: stream, user, sampling (tasks/recipe), learning, gate, demo. Plain values, checked when read.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/settings.h"
#include "release/gate.h"
#include "tasks/held_out.h"
#include "tasks/recipe.h"

namespace sluice {

struct DemoSettings {
  std::int64_t requests = 256;     // of the simulated user
  bool bad_candidate = true;       // train one on inverted rewards at the end
  int heldout = 104;               // held-out prompts of the final measurement
  int concurrency = 8;             // requests in flight
};

struct Recipe {
  std::string path;
  std::string json;                // the file as read
  TaskRecipe task;
  HeldOutTexts held_back;          // the texts of task.held_out and task.probes
  LearnSettings learn;
  GateSettings gate;
  DemoSettings demo;
  // "fim": {"markers": [...]}: texts before the prefix, the suffix and the answer, for models without such tokens.
  std::optional<std::array<std::string, 3>> fim_markers;
};

// From text; `path` names it in errors. Unknown parts, and unknown fields of "learn", "gate" and
// "demo", are refused by name.
Result<Recipe> parse_recipe(const std::string& json, const std::string& path);
// A name looked up in the folder, or the path of a file.
Result<Recipe> load_recipe(const std::string& name_or_file, const std::string& folder);
// Names in the folder, sorted.
std::vector<std::string> recipe_names(const std::string& folder);
// The installed recipes, else the source tree's.
std::string default_recipe_folder();

}  // namespace sluice
