// SPDX-License-Identifier: GPL-3.0-or-later
// Is a live prompt one of the recipe's held-out or probe prompts? Then it must never be trained on (gate.md §2), whoever
// asks it. Case and spacing don't count. Immutable once created; any number of threads may share one.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/stream.h"

namespace sluice {

class HeldOutTexts {
 public:
  HeldOutTexts() = default;  // holds nothing
  explicit HeldOutTexts(std::initializer_list<const std::vector<TaskPrompt>*> lists);

  bool empty() const { return texts_.empty(); }
  // Is the text one of the prompts? For what one side of a chat says.
  bool contain(std::string_view text) const;
  // Does one of the prompts stand in the text, as whole words? For raw prompts, where the client writes the turns itself.
  bool stand_in(std::string_view text) const;

 private:
  std::set<std::string, std::less<>> texts_;                            // in normal form
  std::map<std::string, std::set<std::size_t>, std::less<>> lengths_;   // first word -> words of the prompts that begin so
};

}  // namespace sluice
