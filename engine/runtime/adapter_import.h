// SPDX-License-Identifier: GPL-3.0-or-later
// Folders in PEFT layout become candidates of the workspace (serving.md §3.4). Thread-safe; blocks while files are copied.
#pragma once

#include <vector>

#include "http/control.h"
#include "model_api/adapter.h"
#include "store/store.h"

namespace sluice {

// Copies each folder's two files into the workspace, loads them once, and adds a row per adapter: all or none.
// kInvalidArgument names the folder and what the loader found wrong (with the full list of what does not bind). The gate
// measures what was imported like any other candidate.
Result<std::vector<NewCandidate>> import_adapters(Store& store, const AdapterLoader& loader, SessionId session,
                                                     const std::vector<AdapterImport>& wanted);

}  // namespace sluice
