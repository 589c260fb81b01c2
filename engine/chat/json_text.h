// SPDX-License-Identifier: GPL-3.0-or-later
// Writes JSON text for the record: strings, numbers, client data. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "text/data_value.h"

namespace sluice {

// `text` in quotes; bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
// The shortest text that reads back as the same number; null when it is not finite.
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, float value);
void append_json(std::string& out, const DataValue& value);

}  // namespace sluice
