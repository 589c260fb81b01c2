// SPDX-License-Identifier: GPL-3.0-or-later
// The weight files of a Hugging Face model folder: one model.safetensors, or the shards that model.safetensors.index.json
// names. Only files that the index names are read, and only inside the folder (a hub cache's links to its blobs
// excepted). Immutable once open; any thread may read it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/format/safetensors.h"

namespace sluice {

class SafetensorsFolder {
 public:
  // kNotFound: no such folder, or it holds no weights. kCorrupt / kInvalidArgument name the folder and the file, tensor or
  // key that is wrong; absent shards are listed.
  static Result<std::shared_ptr<const SafetensorsFolder>> open(const std::string& folder);

  const std::string& path() const { return path_; }
  const std::vector<std::shared_ptr<const SafetensorsFile>>& files() const { return files_; }  // ascending by path
  Status release_pages() const;
  const std::vector<const SafeTensor*>& tensors() const { return tensors_; }                   // ascending by name

 private:
  explicit SafetensorsFolder(std::string path) : path_(std::move(path)) {}
  Status read();
  Status read_shards(std::string_view index);

  std::string path_;
  std::vector<std::shared_ptr<const SafetensorsFile>> files_;
  std::vector<const SafeTensor*> tensors_;
};

// A small text file of a model folder. kNotFound where there is none; kInvalidArgument above 32 MiB.
Result<std::string> read_model_text(const std::string& path);

}  // namespace sluice
