// SPDX-License-Identifier: GPL-3.0-or-later
// The part of a recipe file that makes traffic and verdicts: prompts, simulated user, protected metric, sampling settings.
// The learn, gate and demo parts of the same file are read by runtime/recipe. Plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tasks/stream.h"
#include "tasks/verifier.h"

namespace sluice {

struct TaskSampling {
  double temperature = 0.7;
  double top_p = 1.0;
  int max_tokens = 96;

  bool operator==(const TaskSampling&) const = default;
};

struct TaskRecipe {
  std::string name;      // also the adapter's name: [A-Za-z0-9][A-Za-z0-9._-]{0,63}
  std::string title, summary;
  std::string system_prompt;             // "" = none
  std::vector<TaskPrompt> train, held_out;  // expanded; no text stands in both
  std::vector<TaskPrompt> probes;        // taken from the held-out prompts' topics, not in held_out
  TaskSampling sampling;
  RuleSet user;                          // the persona's acceptance rule
  RuleSet protected_metric;              // no rules = none
};

// Reads the task part of a recipe's JSON; other parts are ignored. Errors name the field.
Result<TaskRecipe> parse_task_recipe(std::string_view json);
// Reads the file first; the message names the path.
Result<TaskRecipe> load_task_recipe(const std::string& path);

}  // namespace sluice
