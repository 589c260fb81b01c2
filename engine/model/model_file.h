// SPDX-License-Identifier: GPL-3.0-or-later
// What --model names: a GGUF file, or a Hugging Face folder with config.json and safetensors weights. Opened and checked,
// nothing computed yet. A value of shared, immutable files; any thread may read it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/config.h"
#include "model/format/gguf.h"
#include "model/format/safetensors_folder.h"
#include "model/weight_source.h"

namespace sluice {

struct ModelFile {
  std::string path;  // of the file or the folder
  std::shared_ptr<const GgufFile> gguf;             // one of the two
  std::shared_ptr<const SafetensorsFolder> folder;
  ModelConfig config;
  std::int64_t bytes = 0;  // of the weight files

  Result<WeightSource> weights() const;
  // Identifies weights and shape: SHA-256 of the GGUF file, or over those of config.json and every weight file. Reads all.
  Result<std::string> content_hash() const;
};

// `path` may also be config.json or a safetensors file of a folder: then the folder is meant. Errors name the file and
// what in it can't be used.
Result<ModelFile> open_model_file(const std::string& path);

}  // namespace sluice
