// SPDX-License-Identifier: GPL-3.0-or-later
// Adapters of other programs, PEFT folders or GGUF LoRA files, become candidates of the workspace (serving.md §3.4).
// Thread-safe; blocks while files are read and written.
#pragma once

#include <vector>

#include "http/control.h"
#include "model_api/model.h"
#include "store/store.h"

namespace sluice {

// Writes each adapter into the workspace and adds a row per adapter: all or none. kInvalidArgument names the path and what is
// wrong with it (with the full list of what does not bind), or that it was trained on another base. The gate measures what was
// imported like any other candidate.
Result<std::vector<NewCandidate>> import_adapters(Store& store, const Model& model, SessionId session,
                                                  const std::vector<AdapterImport>& wanted);

}  // namespace sluice
