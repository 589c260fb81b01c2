// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/candidate_folder.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/durable_file.h"
#include "base/fault.h"
#include "base/sha256.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

const char kUnfinished[] = ".part";

}  // namespace

Result<SavedAdapter> write_adapter_folder(const std::string& folder,
                                          const std::function<Result<SavedAdapter>(const std::string&)>& save) {
  const std::string part = folder + kUnfinished;
  const std::string parent = fs::path(folder).parent_path().string();
  std::error_code error;
  if (fs::exists(folder, error)) return conflict("the adapter folder " + folder + " exists already: it is never overwritten");
  fs::remove_all(part, error);
  fs::create_directories(part, error);
  if (error) return unavailable("cannot make the folder " + part + ": " + error.message());
  fault_point("adapter_folder_made");
  Result<SavedAdapter> saved = save(part);
  if (!saved.ok()) {
    fs::remove_all(part, error);
    return saved;
  }
  SLUICE_RETURN_IF_ERROR(sync_directory(part));
  fault_point("adapter_files_synced");
  fs::rename(part, folder, error);
  if (error) return unavailable("cannot rename " + part + " to " + folder + ": " + error.message());
  fault_point("adapter_folder_renamed");
  SLUICE_RETURN_IF_ERROR(sync_directory(parent));
  fault_point("adapter_folder_synced");
  return saved;
}

void remove_unfinished(const std::string& adapters) {
  std::error_code error;
  std::vector<fs::path> leftovers;
  for (fs::directory_iterator it(adapters, error), end; !error && it != end; it.increment(error)) {
    if (it->path().extension() == kUnfinished) leftovers.push_back(it->path());
  }
  for (const fs::path& path : leftovers) fs::remove_all(path, error);
}

std::vector<VersionId> written_versions(const std::string& adapters) {
  std::error_code error;
  std::vector<VersionId> out;
  for (fs::directory_iterator it(adapters, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    std::int64_t id = 0;
    const auto [last, failed] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (failed != std::errc() || last != name.data() + name.size()) continue;
    std::error_code ignored;
    if (fs::exists(it->path() / "trainer.safetensors", ignored)) out.push_back(VersionId(id));
  }
  std::sort(out.begin(), out.end());
  return out;
}

Result<SavedAdapter> describe_adapter(const std::string& folder) {
  const std::string path = folder + "/adapter_model.safetensors";
  std::ifstream in(path, std::ios::binary);
  if (!in) return not_found("there is no file " + path);
  const std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (in.bad()) return unavailable("cannot read " + path);
  SavedAdapter out;
  out.content_hash = sha256(std::string_view(bytes));
  out.bytes = static_cast<std::int64_t>(bytes.size());
  return out;
}

}  // namespace sluice
