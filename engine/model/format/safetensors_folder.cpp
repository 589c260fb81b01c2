// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/format/safetensors_folder.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "base/json_limits.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";

bool is_inside(const fs::path& file, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), file.begin(), file.end()).first == folder.end();
}

// .../models--x/snapshots/<revision> links to .../models--x/blobs/<hash>: how the hub's own cache keeps files.
bool is_hub_blob(const fs::path& file, const fs::path& folder) {
  return folder.parent_path().filename() == "snapshots" &&
         file.parent_path() == folder.parent_path().parent_path() / "blobs";
}

// Where a shard that the index names really is; an error when that is not in the folder.
Result<std::string> shard_path(const std::string& folder, const std::string& name) {
  const std::string where = "'" + folder + "/" + kIndex + "' names the file '" + name + "'";
  const fs::path relative(name);
  const bool climbs = std::find(relative.begin(), relative.end(), "..") != relative.end();
  if (name.empty() || name.find('\0') != std::string::npos || relative.is_absolute() || climbs) {
    return invalid_argument(where + ", which is not inside the folder; Sluice does not follow it");
  }
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  if (error) return unavailable("can't look at '" + folder + "': " + error.message());
  const fs::path file = fs::weakly_canonical(home / relative, error);
  if (error) return unavailable(where + ", which can't be looked at: " + error.message());
  if (!is_inside(file, home) && !is_hub_blob(file, home)) {
    return invalid_argument(where + ", a link out of the folder; Sluice does not follow it");
  }
  return (fs::path(folder) / relative).string();
}

// Tensor -> shard, as the index says.
Result<std::map<std::string, std::string>> weight_map(std::string_view text, const std::string& path) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(text, "'" + path + "'"));
  const json index = json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return corrupt("'" + path + "' holds no \"weight_map\": download it again");
  }
  std::map<std::string, std::string> map;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) return corrupt("'" + path + "': \"weight_map\" gives '" + tensor + "' no file name");
    map.emplace(tensor, file.get<std::string>());
  }
  if (map.empty()) return corrupt("'" + path + "': its \"weight_map\" is empty");
  return map;
}

std::string no_weights(const std::string& folder) {
  std::error_code ignored;
  std::string message = "'" + folder + "' holds neither " + kWeights + " nor " + kIndex;
  if (fs::exists(fs::path(folder) / "pytorch_model.bin", ignored)) {
    message += "; pytorch_model.bin can run code, so Sluice does not read it: save the model as safetensors";
  }
  return message;
}

}  // namespace

Result<std::string> read_model_text(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return not_found("there is no file '" + path + "'");
  if (!fs::is_regular_file(path, error)) return invalid_argument("'" + path + "' is not a regular file");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) return unavailable("can't look at '" + path + "': " + error.message());
  if (size > JsonLimits{}.max_bytes) return invalid_argument("'" + path + "' is larger than 32 MiB");
  std::ifstream in(path, std::ios::binary);
  if (!in) return unavailable("can't open '" + path + "'");
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (in.bad()) return unavailable("can't read '" + path + "'");
  return text;
}

Result<std::shared_ptr<const SafetensorsFolder>> SafetensorsFolder::open(const std::string& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) return not_found("there is no folder '" + folder + "'");
  std::shared_ptr<SafetensorsFolder> opened(new SafetensorsFolder(folder));
  SLUICE_RETURN_IF_ERROR(opened->read());
  std::sort(opened->tensors_.begin(), opened->tensors_.end(), [](const auto* a, const auto* b) { return a->name < b->name; });
  return std::shared_ptr<const SafetensorsFolder>(std::move(opened));
}

Status SafetensorsFolder::release_pages() const {
  for (const auto& file : files_) SLUICE_RETURN_IF_ERROR(file->release_pages());
  return {};
}

Status SafetensorsFolder::read() {
  const Result<std::string> index = read_model_text(path_ + "/" + kIndex);
  if (index.ok()) return read_shards(*index);
  if (index.code() != Code::kNotFound) return index.status();
  const std::string single = path_ + "/" + kWeights;
  std::error_code ignored;
  if (!fs::exists(single, ignored)) return not_found(no_weights(path_));
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const SafetensorsFile> file, SafetensorsFile::open(single));
  for (const SafeTensor& tensor : file->tensors()) tensors_.push_back(&tensor);
  files_.push_back(std::move(file));
  return {};
}

Status SafetensorsFolder::read_shards(std::string_view index) {
  const std::string index_path = path_ + "/" + kIndex;
  SLUICE_ASSIGN_OR_RETURN(const auto map, weight_map(index, index_path));
  std::map<std::string, std::shared_ptr<const SafetensorsFile>> shards;
  for (const auto& [tensor, name] : map) shards.emplace(name, nullptr);
  std::string missing;
  std::error_code ignored;
  for (auto& [name, file] : shards) {
    SLUICE_ASSIGN_OR_RETURN(const std::string path, shard_path(path_, name));
    if (!fs::exists(path, ignored)) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty()) {
    return not_found("'" + path_ + "' lacks shards that its index names: " + missing + "; download them");
  }
  for (auto& [name, file] : shards) {
    SLUICE_ASSIGN_OR_RETURN(file, SafetensorsFile::open(path_ + "/" + name));
    for (const SafeTensor& tensor : file->tensors()) {
      const auto at = map.find(tensor.name);
      if (at == map.end() || at->second != name) {
        return corrupt("'" + file->path() + "' holds the tensor '" + tensor.name + "', which the index does not place there");
      }
      tensors_.push_back(&tensor);
    }
    files_.push_back(file);
  }
  if (tensors_.size() == map.size()) return {};
  for (const auto& [tensor, name] : map) {  // each tensor was found at most once, so one is absent
    if (shards[name]->find(tensor) == nullptr) {
      return corrupt("'" + shards[name]->path() + "' has no tensor '" + tensor + "', which the index places there");
    }
  }
  return {};
}

}  // namespace sluice
