// SPDX-License-Identifier: GPL-3.0-or-later
// Small UTF-8 helpers. Pure functions, any thread. Invalid bytes become U+FFFD by the Unicode standard's "maximal
// subpart" practice (ch. 3, table 3-8), which Python's and Rust's decoders follow too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

struct Utf8Step {
  std::size_t length = 0;   // bytes taken, at least 1 on non-empty text
  char32_t code_point = 0;  // U+FFFD where !valid
  bool valid = false;
  bool incomplete = false;  // !valid only because the text ends: more bytes could make it valid
};
// The code point at the front of non-empty `text`.
Utf8Step next_code_point(std::string_view text);

bool is_valid_utf8(std::string_view text);
std::string to_valid_utf8(std::string_view text);
std::size_t count_code_points(std::string_view valid_utf8);

// Moves what is certain from the front of `pending` to the end of `out`, made valid; the begin of a code point stays.
void drain_valid_utf8(std::string& pending, std::string& out);

}  // namespace sluice
