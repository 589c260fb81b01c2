// SPDX-License-Identifier: GPL-3.0-or-later
// An adapter version made into files that other programs read, and their files made into ours. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model_api/model.h"

namespace sluice {

// Checks the adapter folder against the model and writes adapter_config.json and adapter_model.safetensors to
// `destination` (created; must be absent or empty). base_model_name: what the configuration shall name as its base.
Status export_peft(const std::string& adapter_folder, const Model& model, const std::string& base_model_name,
                   const std::string& destination);

struct ImportedAdapter {
  int modules = 0;
  int rank = 0;  // the largest
  std::int64_t bytes = 0;  // of its factors
  std::vector<std::string> warnings;
};

// Checks an adapter of another program (a PEFT folder, or a GGUF LoRA file) against the model and writes it in PEFT layout
// to `destination`, as export_peft does. Errors name the path and list everything that does not bind.
Result<ImportedAdapter> import_adapter(const std::string& path, const Model& model, const std::string& base_model_name,
                                       const std::string& destination);

}  // namespace sluice
