// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/maintenance.h"

#include <filesystem>

#include "base/sha256.h"
#include "model/export.h"
#include "runtime/load.h"
#include "store/store.h"

namespace sluice {
namespace {

Result<std::unique_ptr<Store>> open_existing(const std::string& folder) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::path(folder) / "sluice.db", ignored)) {
    return not_found(folder + " is no workspace: it holds no sluice.db");
  }
  StoreOptions options;
  options.folder = folder;
  return Store::open(options);
}

}  // namespace

Result<std::vector<std::string>> verify_workspace(const std::string& folder) {
  SLUICE_ASSIGN_OR_RETURN(const auto store, open_existing(folder));
  std::vector<std::string> problems = store->verify();
  for (const VersionRow& version : store->versions()) {
    if (version.id == kBaseVersion || version.state == VersionState::kPruned) continue;
    const std::string path = store->adapter_folder(version.id) + "/adapter_model.safetensors";
    const auto hash = sha256_file(path);
    if (!hash.ok()) {
      problems.push_back("version " + std::to_string(version.id.value) + ": " + hash.status().message());
    } else if (*hash != version.content_hash) {
      problems.push_back("version " + std::to_string(version.id.value) + ": " + path + " does not have the hash of its row");
    }
  }
  return problems;
}

Status export_from_workspace(const std::string& folder, VersionId version, const std::string& model_path,
                             const std::string& out) {
  SLUICE_ASSIGN_OR_RETURN(const auto store, open_existing(folder));
  const auto row = store->version(version);
  if (!row) return not_found("version " + std::to_string(version.value) + " is not in " + folder);
  if (row->state == VersionState::kPruned) return not_found("the files of version " + std::to_string(version.value) + " were deleted");
  std::string path = model_path.empty() ? store->value(kWorkspaceModelPath).value_or("") : model_path;
  if (path.empty()) path = find_bundled_model();
  if (path.empty()) return not_found("the bundled model is not here: give --model");
  SLUICE_ASSIGN_OR_RETURN(const LoadedSystem system, load_system(path));
  return export_peft(store->adapter_folder(version), *system.model, system.model->info().name, out);
}

}  // namespace sluice
