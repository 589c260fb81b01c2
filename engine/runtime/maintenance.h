// SPDX-License-Identifier: GPL-3.0-or-later
// Work on a workspace that no engine has open. Each opens it under its lock and closes it again; blocks.
#pragma once

#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace sluice {

// Database, decision chain, and for every version with bytes: the files are there and their hashes are those of the row.
// One line per problem. kNotFound when there is no workspace: nothing is made.
Result<std::vector<std::string>> verify_workspace(const std::string& folder);

// Writes a version in PEFT layout. `model_path` "" = the bundled model.
Status export_from_workspace(const std::string& folder, VersionId version, const std::string& model_path,
                             const std::string& out);

}  // namespace sluice
