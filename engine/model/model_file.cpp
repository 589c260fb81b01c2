// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/model_file.h"

#include <filesystem>
#include <span>

#include "base/sha256.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "config.json";

// The folder that `path` is, or is the file of; empty for anything else.
std::string folder_of(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return path;
  const std::string name = fs::path(path).filename().string();
  const bool in_folder = name == kConfig || name.ends_with(".safetensors") || name.ends_with(".safetensors.index.json");
  if (!in_folder || !fs::exists(path, ignored)) return "";
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

Result<ModelFile> open_folder(const std::string& folder) {
  ModelFile out;
  out.path = folder;
  const std::string config = folder + "/" + kConfig;
  const Result<std::string> text = read_model_text(config);
  if (text.code() == Code::kNotFound) {
    return not_found("'" + folder + "' is no model folder: it has no config.json. Name a GGUF file, or a folder with config.json, "
                     "tokenizer.json and safetensors weights");
  }
  if (!text.ok()) return text.status();
  SLUICE_ASSIGN_OR_RETURN(out.config, config_from_json(*text, config));
  SLUICE_ASSIGN_OR_RETURN(out.folder, SafetensorsFolder::open(folder));
  std::error_code ignored;
  for (const auto& file : out.folder->files()) out.bytes += static_cast<std::int64_t>(fs::file_size(file->path(), ignored));
  return out;
}

}  // namespace

Result<WeightSource> ModelFile::weights() const {
  if (gguf != nullptr) return WeightSource(*gguf);
  return WeightSource::create(*folder);
}

Result<std::string> ModelFile::content_hash() const {
  if (gguf != nullptr) return sha256_file(gguf->path());
  std::string list;
  const auto add = [&](const std::string& file) -> Status {
    SLUICE_ASSIGN_OR_RETURN(const std::string hash, sha256_file(file));
    list += hash + "\n";
    return {};
  };
  SLUICE_RETURN_IF_ERROR(add(path + "/" + kConfig));
  for (const auto& file : folder->files()) SLUICE_RETURN_IF_ERROR(add(file->path()));
  return sha256(list);
}

Result<ModelFile> open_model_file(const std::string& path) {
  const std::string folder = folder_of(path);
  if (!folder.empty()) return open_folder(folder);
  ModelFile out;
  out.path = path;
  SLUICE_ASSIGN_OR_RETURN(out.gguf, GgufFile::open(path));
  SLUICE_ASSIGN_OR_RETURN(out.config, config_from_gguf(*out.gguf));
  out.bytes = static_cast<std::int64_t>(out.gguf->file_size());
  return out;
}

}  // namespace sluice
