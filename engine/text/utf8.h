// SPDX-License-Identifier: GPL-3.0-or-later
// What Unicode says of characters; UTF-8 itself is in base/utf8.h. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/utf8.h"

namespace sluice {

void append_utf8(std::string& out, char32_t code_point);

bool is_white_space(char32_t c);  // Unicode's White_Space property
bool is_word_char(char32_t c);    // letters, marks, numbers, connector punctuation: \w

// Canonical composition. Time n log n on any input (a run of combining marks is sorted, not bubbled).
std::string to_nfc(std::string_view valid_utf8);

}  // namespace sluice
