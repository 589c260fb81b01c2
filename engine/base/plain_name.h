// SPDX-License-Identifier: GPL-3.0-or-later
// The rule for names of recipes, adapters and aliases, which clients send as `model` (serving.md 3.4). Pure, any thread.
#pragma once

#include <algorithm>
#include <string_view>

namespace sluice {

// 1 to 64 ASCII letters, digits, dots, dashes and underscores, beginning with a letter or digit.
inline bool is_plain_name(std::string_view name) {
  const auto alnum = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= 64 && alnum(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return alnum(c) || c == '.' || c == '_' || c == '-'; });
}

}  // namespace sluice
