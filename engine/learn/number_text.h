// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers as JSON text for the few objects that learn writes by hand. Pure.
#pragma once

#include <cmath>
#include <cstdio>
#include <string>

namespace sluice {

// Nine digits; null where JSON has no such number.
inline std::string json_number(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.9g", value);
  return text;
}

}  // namespace sluice
