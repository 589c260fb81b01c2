// SPDX-License-Identifier: GPL-3.0-or-later
// Regular expressions over module names. Patterns come from adapter files, so matching is bounded. Pure, thread-safe.
#pragma once

#include <string>

#include "base/result.h"

namespace sluice {

// Whether `pattern` matches all of `name`. kInvalidArgument: not a regular expression, or the match limit was hit.
Result<bool> matches_whole(const std::string& pattern, const std::string& name);

}  // namespace sluice
