// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/fields.h"

#include <cctype>

namespace sluice {
namespace {

// The code unit of "\uXXXX" at `at`; nothing where no such escape stands there.
std::optional<unsigned> escaped_unit(const std::string& json, std::size_t at) {
  if (at + 6 > json.size() || json[at] != '\\' || json[at + 1] != 'u') return std::nullopt;
  unsigned value = 0;
  for (std::size_t i = at + 2; i < at + 6; ++i) {
    const auto c = static_cast<unsigned char>(json[i]);
    if (!std::isxdigit(c)) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(std::isdigit(c) ? c - '0' : std::tolower(c) - 'a' + 10);
  }
  return value;
}

bool is_high(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_low(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

}  // namespace

std::string without_lone_surrogates(std::string json) {
  for (std::size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at)) {
    const std::optional<unsigned> unit = escaped_unit(json, at);
    if (!unit) {
      at += 2;  // another escape, whatever it escapes
      if (at > json.size()) break;
      continue;
    }
    if (is_high(*unit) && is_low(escaped_unit(json, at + 6).value_or(0))) {
      at += 12;
      continue;
    }
    if (is_high(*unit) || is_low(*unit)) json.replace(at + 2, 4, "fffd");
    at += 6;
  }
  return json;
}

}  // namespace sluice
