// SPDX-License-Identifier: GPL-3.0-or-later
// An adapter version made into files that other programs read. Thread-safe.
#pragma once

#include <string>

#include "base/result.h"
#include "model_api/model.h"

namespace sluice {

// Checks the adapter folder against the model and writes adapter_config.json and adapter_model.safetensors to
// `destination` (created; must be absent or empty). base_model_name: what the configuration shall name as its base.
Status export_peft(const std::string& adapter_folder, const Model& model, const std::string& base_model_name,
                   const std::string& destination);

}  // namespace sluice
