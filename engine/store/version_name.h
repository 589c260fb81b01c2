// SPDX-License-Identifier: GPL-3.0-or-later
// How a single version is called wherever clients see it: be-brief@3. Pure function.
#pragma once

#include <string>

#include "base/ids.h"

namespace sluice {

inline std::string version_name(const std::string& adapter, VersionId version) {
  return adapter + "@" + std::to_string(version.value);
}

}  // namespace sluice
