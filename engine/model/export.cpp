// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/export.h"

#include <filesystem>

#include "base/durable_file.h"
#include "model/peft_folder.h"
#include "model/weights.h"

namespace sluice {

Status export_peft(const std::string& adapter_folder, const Model& model, const std::string& base_model_name,
                   const std::string& destination) {
  const std::shared_ptr<const TransformerWeights> weights = model_weights(model);
  if (weights == nullptr) return unavailable("this model has no adapters to export");
  SLUICE_RETURN_IF_ERROR(check_provenance(adapter_folder, weights->content_hash));
  SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_peft_folder(adapter_folder, weights->config));
  std::error_code error;
  if (std::filesystem::exists(destination, error) && !std::filesystem::is_empty(destination, error)) {
    return conflict(destination + " is not empty; name a new folder");
  }
  std::filesystem::create_directories(destination, error);
  if (error) return unavailable(destination + " can't be created: " + error.message());
  const Result<std::string> written = write_peft_folder(destination, data, weights->config, base_model_name);
  if (!written.ok()) return written.status();
  return sync_directory(destination);
}

}  // namespace sluice
