// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/json_limits.h"

namespace sluice {

Status check_json_limits(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return invalid_argument(std::string(what) + " is " + std::to_string(text.size()) + " bytes long; the limit is " +
                            std::to_string(limits.max_bytes) + ": send less");
  }
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;  // whatever follows, it does not end the string
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > limits.max_depth) {
        return invalid_argument(std::string(what) + " nests deeper than " + std::to_string(limits.max_depth) +
                                " levels at byte " + std::to_string(i) + ": flatten it");
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return {};
}

}  // namespace sluice
