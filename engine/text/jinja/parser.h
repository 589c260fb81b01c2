// SPDX-License-Identifier: GPL-3.0-or-later
// Template text -> syntax tree. What lies outside the subset is an error that names the construct and its line.
#pragma once

#include <string>

#include "base/result.h"
#include "text/jinja/syntax.h"

namespace sluice::jinja {

inline constexpr int kMaxSyntaxDepth = 100;  // of expressions and of statements within each other

Result<Body> parse(const std::string& source);

}  // namespace sluice::jinja
