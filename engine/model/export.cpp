// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/export.h"

#include <algorithm>
#include <filesystem>

#include "base/durable_file.h"
#include "model/peft_folder.h"
#include "model/weights.h"

namespace sluice {

namespace {

Status write_to_new_folder(const LoraData& data, const ModelConfig& config, const std::string& base_model_name,
                           const std::string& destination) {
  std::error_code error;
  if (std::filesystem::exists(destination, error) && !std::filesystem::is_empty(destination, error)) {
    return conflict(destination + " is not empty; name a new folder");
  }
  std::filesystem::create_directories(destination, error);
  if (error) return unavailable(destination + " can't be created: " + error.message());
  const Result<std::string> written = write_peft_folder(destination, data, config, base_model_name);
  if (!written.ok()) return written.status();
  return sync_directory(destination);
}

// An adapter file that can't be opened is the mistake of who named it: trying again does not help.
Status unreadable(const Status& status) {
  return status.code() == Code::kUnavailable ? invalid_argument(status.message()) : status;
}

}  // namespace

Status export_peft(const std::string& adapter_folder, const Model& model, const std::string& base_model_name,
                   const std::string& destination) {
  const std::shared_ptr<const TransformerWeights> weights = model_weights(model);
  if (weights == nullptr) return unavailable("this model has no adapters to export");
  SLUICE_ASSIGN_OR_RETURN(const LoraData data, read_adapter_for(adapter_folder, *weights));
  return write_to_new_folder(data, weights->config, base_model_name, destination);
}

Result<ImportedAdapter> import_adapter(const std::string& path, const Model& model, const std::string& base_model_name,
                                       const std::string& destination) {
  const std::shared_ptr<const TransformerWeights> weights = model_weights(model);
  if (weights == nullptr) return invalid_argument("this model takes no adapters");
  const Result<LoraData> read = read_adapter_for(path, *weights);
  if (!read.ok()) return unreadable(read.status());
  const LoraData& data = *read;
  SLUICE_RETURN_IF_ERROR(write_to_new_folder(data, weights->config, base_model_name, destination));
  ImportedAdapter imported;
  imported.modules = static_cast<int>(data.modules.size());
  for (const LoraFactors& f : data.modules) {
    imported.rank = std::max(imported.rank, f.rank);
    imported.bytes += static_cast<std::int64_t>((f.a.size() + f.b.size()) * sizeof(float));
  }
  imported.warnings = data.warnings;
  return imported;
}

}  // namespace sluice
