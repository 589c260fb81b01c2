// SPDX-License-Identifier: GPL-3.0-or-later
// A look at a JSON text before any parser sees it: its size and how deep it nests. Recursive parsers overflow the stack on
// deep input. One pass, no recursion, no allocation. Pure function, any thread.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace sluice {

struct JsonLimits {
  std::size_t max_bytes = std::size_t{32} << 20;
  std::size_t max_depth = 64;  // arrays and objects within each other
};

// kInvalidArgument naming `what` and the limit that is passed. Says nothing about whether the text is valid JSON.
Status check_json_limits(std::string_view text, std::string_view what, const JsonLimits& limits = {});

}  // namespace sluice
