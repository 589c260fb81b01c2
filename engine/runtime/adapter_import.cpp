// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/adapter_import.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "learn/candidate_folder.h"
#include "model/export.h"

namespace sluice {
namespace {

// Folders of versions that have no row yet: they go again unless the rows were written.
class NewFolders {
 public:
  ~NewFolders() {
    std::error_code ignored;
    for (const std::string& path : paths_) std::filesystem::remove_all(path, ignored);
  }
  void add(std::string path) { paths_.push_back(std::move(path)); }
  void keep() { paths_.clear(); }

 private:
  std::vector<std::string> paths_;
};

// "target_modules" as the folder's own config names them.
std::string modules_json(const std::string& folder) {
  std::ifstream in(folder + "/adapter_config.json", std::ios::binary);
  const nlohmann::json config = nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(in), {}), nullptr, false);
  const auto modules = config.is_object() ? config.find("target_modules") : config.end();
  return config.is_object() && modules != config.end() ? modules->dump() : "";
}

Result<VersionRow> bring_in(Store& store, const Model& model, SessionId session, const AdapterImport& wanted, NewFolders& made) {
  SLUICE_ASSIGN_OR_RETURN(const VersionId version, store.reserve_version());
  const std::string folder = store.adapter_folder(version);
  ImportedAdapter imported;
  const Result<SavedAdapter> saved = write_adapter_folder(folder, [&](const std::string& part) -> Result<SavedAdapter> {
    SLUICE_ASSIGN_OR_RETURN(imported, import_adapter(wanted.path, model, model.info().name, part));
    return describe_adapter(part);
  });
  if (saved.code() == Code::kUnavailable) return saved.status();
  if (!saved.ok()) return invalid_argument(wanted.path + ": " + saved.status().message());
  made.add(folder);
  VersionRow row;
  row.id = version;
  row.name = wanted.name;
  row.parent = kBaseVersion;
  row.session = session;
  row.origin = "import";
  row.label = wanted.note;
  row.content_hash = saved->content_hash;
  row.bytes = imported.bytes;
  row.rank = imported.rank;
  return row;
}

}  // namespace

Result<std::vector<NewCandidate>> import_adapters(Store& store, const Model& model, SessionId session,
                                                  const std::vector<AdapterImport>& wanted) {
  NewFolders made;
  std::vector<VersionRow> rows;
  std::vector<NewCandidate> out;
  for (const AdapterImport& each : wanted) {
    SLUICE_ASSIGN_OR_RETURN(VersionRow row, bring_in(store, model, session, each, made));
    out.push_back({row.name, row.id, row.rank, row.bytes, modules_json(store.adapter_folder(row.id))});
    rows.push_back(std::move(row));
  }
  SLUICE_RETURN_IF_ERROR(store.add_versions(rows));
  made.keep();
  return out;
}

}  // namespace sluice
