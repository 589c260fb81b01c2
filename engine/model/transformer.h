// SPDX-License-Identifier: GPL-3.0-or-later
// A model file opened for serving and training. Torch-free header. The Model is immutable and shared; each ModelContext
// it makes belongs to one thread at a time and has ContextOptions::threads - 1 helpers of its own. step() runs under an
// inference guard and leaves the calling thread with one torch core.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/format/gguf.h"
#include "model_api/model.h"

namespace sluice {

struct LoadOptions {
  std::string name;  // ModelInfo::name; empty = the file's name without its quantisation
};

struct LoadedModel {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const GgufFile> file;  // metadata, for the tokenizer and the chat template
};

// GGUF, versions 2 and 3; llama, qwen2 and qwen3 architectures. Blocks while the file is hashed (about 0.3 s for 100 MB).
// Errors name the file and what in it can't be used.
Result<LoadedModel> load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace sluice
