// SPDX-License-Identifier: GPL-3.0-or-later
// A model file opened for serving and training. Torch-free header. The Model is immutable and shared; each ModelContext
// it makes belongs to one thread at a time and has ContextOptions::threads - 1 helpers of its own. step() runs under an
// inference guard and leaves the calling thread with one torch core.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model/model_file.h"
#include "model_api/model.h"

namespace sluice {

struct LoadOptions {
  std::string name;  // ModelInfo::name; empty = the file's name without its quantisation
};

struct LoadedModel {
  std::shared_ptr<const Model> model;
  ModelFile file;  // for the tokenizer and the chat template
};

// A GGUF file (version 2 or 3) or a Hugging Face folder; llama, qwen2 and qwen3 architectures. Blocks while the files are
// hashed (about 0.3 s for 100 MB).
// Errors name the file and what in it can't be used.
Result<LoadedModel> load_model(const std::string& path, const LoadOptions& options = {});

}  // namespace sluice
