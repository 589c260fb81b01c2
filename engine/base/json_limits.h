// SPDX-License-Identifier: GPL-3.0-or-later
// A look at a JSON text before any parser sees it: its size and how deep it nests. Recursive parsers overflow the stack on
// deep input. One pass, no recursion, no allocation. And why a parser refused one. Pure functions, any thread.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>

#include "base/result.h"

namespace sluice {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t max_depth = 64;  // arrays and objects within each other
};

// kInvalidArgument naming `what` and the limit that is passed. Says nothing about whether the text is valid JSON.
Status check_json_limits(std::string_view text, std::string_view what, const JsonLimits& limits = {});

// Where and why `text`, which Json::parse refused, is no JSON, in that parser's words: "parse error at line 1, column 6: ...".
// Cut to a length fit for a message; may hold bytes of the text that are not UTF-8.
template <class Json>
std::string json_problem(std::string_view text) {
  std::string why;
  try {
    [[maybe_unused]] const Json refused = Json::parse(text);
  } catch (const std::exception& e) {
    why = e.what();
  }
  constexpr std::size_t kMost = 240;
  if (const std::size_t end = why.find("] "); why.starts_with('[') && end != std::string::npos) why.erase(0, end + 2);
  if (why.size() > kMost) why.resize(kMost);
  return why;
}

}  // namespace sluice
