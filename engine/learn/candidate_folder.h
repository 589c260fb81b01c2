// SPDX-License-Identifier: GPL-3.0-or-later
// Adapter folders appear whole or not at all: written under a temporary name, synced, renamed, parent synced (learning.md
// §8). Functions over files; one writer per workspace.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "learn/step_runner.h"

namespace sluice {

// Calls `save` with a fresh temporary folder beside `folder` and renames it. kConflict: `folder` is there already.
Result<SavedAdapter> write_adapter_folder(const std::string& folder,
                                          const std::function<Result<SavedAdapter>(const std::string&)>& save);

// Removes what a crash left half written in the folder of all adapters.
void remove_unfinished(const std::string& adapters);

// Folders named by a version id that hold a trainer's checkpoint, ascending.
std::vector<VersionId> written_versions(const std::string& adapters);

// Hash and size of the folder's adapter file, as save() reported them.
Result<SavedAdapter> describe_adapter(const std::string& folder);

}  // namespace sluice
