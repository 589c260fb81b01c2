// SPDX-License-Identifier: GPL-3.0-or-later
// Model file -> model, tokenizer and chat template: everything a workspace serves with. Called on the loader thread.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "model_api/model.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace sluice {

struct LoadedSystem {
  std::shared_ptr<const Model> model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const ChatTemplate> chat_template;  // null: the model completes text but cannot chat
  std::string chat_error;                             // why, when null
  bool chat_guessed = false;                          // the file holds no template, but ChatML's markers
  std::string path;
};

// Errors name the file and what in it can't be used.
Result<LoadedSystem> load_system(const std::string& path);

// Where the bundled model is: $SLUICE_MODEL, else the cache folder that packaging/fetch.sh fills. "" when it is not there.
std::string find_bundled_model();
// Store value: path of the model that the workspace served last; "" or absent = the bundled one.
inline constexpr const char* kWorkspaceModelPath = "workspace.model_path";

// Bytes a model file needs in memory beside its mapping (weights, KV cache of `kv_tokens`, scratch), from its header.
Result<std::int64_t> estimate_memory(const std::string& path, std::int64_t kv_tokens);
// Memory the system can give without swapping, from /proc/meminfo; 0 when unknown.
std::int64_t available_memory();
// Resident set of this process, bytes; 0 when unknown.
std::int64_t resident_memory();

}  // namespace sluice
