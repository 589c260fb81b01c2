// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/load.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "learn/settings.h"
#include "model/model_file.h"
#include "model/transformer.h"
#include "text/tokenizer_json.h"

namespace sluice {
namespace {

std::optional<std::int32_t> optional_id(const GgufFile& file, const char* key) {
  const auto id = file.get_u32(key);
  return id.ok() ? std::optional<std::int32_t>(static_cast<std::int32_t>(*id)) : std::nullopt;
}

// Older files name three of the markers otherwise.
FimIds fim_of(const GgufFile& file) {
  const auto id = [&](const char* key, const char* older) {
    const auto found = optional_id(file, key);
    return found || older == nullptr ? found : optional_id(file, older);
  };
  return {.prefix = id("tokenizer.ggml.fim_pre_token_id", "tokenizer.ggml.prefix_token_id"),
          .suffix = id("tokenizer.ggml.fim_suf_token_id", "tokenizer.ggml.suffix_token_id"),
          .middle = id("tokenizer.ggml.fim_mid_token_id", "tokenizer.ggml.middle_token_id"),
          .pad = id("tokenizer.ggml.fim_pad_token_id", nullptr),
          .repo = id("tokenizer.ggml.fim_rep_token_id", nullptr),
          .file = id("tokenizer.ggml.fim_sep_token_id", nullptr)};
}

Result<Vocabulary> vocabulary_of(const GgufFile& file) {
  Vocabulary v;
  SLUICE_ASSIGN_OR_RETURN(v.model, file.get_string("tokenizer.ggml.model"));
  SLUICE_ASSIGN_OR_RETURN(v.pre_tokenizer, file.get_string_or("tokenizer.ggml.pre", ""));
  SLUICE_ASSIGN_OR_RETURN(v.tokens, file.string_array("tokenizer.ggml.tokens"));
  if (file.has("tokenizer.ggml.token_type")) {
    SLUICE_ASSIGN_OR_RETURN(const std::vector<std::int32_t> types, file.i32_array("tokenizer.ggml.token_type"));
    v.types.reserve(types.size());
    for (const std::int32_t type : types) v.types.push_back(static_cast<TokenType>(type));
  }
  if (v.model == "gpt2" || file.has("tokenizer.ggml.merges")) {
    SLUICE_ASSIGN_OR_RETURN(v.merges, file.string_array("tokenizer.ggml.merges"));
  }
  if (file.has("tokenizer.ggml.scores")) {
    SLUICE_ASSIGN_OR_RETURN(v.scores, file.float_array("tokenizer.ggml.scores"));
  }
  if (file.has("tokenizer.ggml.add_space_prefix")) {
    SLUICE_ASSIGN_OR_RETURN(v.add_space_prefix, file.get_bool_or("tokenizer.ggml.add_space_prefix", true));
  }
  v.fim = fim_of(file);
  v.bos = optional_id(file, "tokenizer.ggml.bos_token_id");
  v.eos = optional_id(file, "tokenizer.ggml.eos_token_id");
  v.eot = optional_id(file, "tokenizer.ggml.eot_token_id");
  v.unk = optional_id(file, "tokenizer.ggml.unknown_token_id");
  v.pad = optional_id(file, "tokenizer.ggml.padding_token_id");
  // Files of these kinds that say nothing are made for a bos.
  const bool wants_bos = v.bos && (v.model == "llama" || v.pre_tokenizer == "llama-bpe" || v.pre_tokenizer == "llama3");
  SLUICE_ASSIGN_OR_RETURN(v.add_bos, file.get_bool_or("tokenizer.ggml.add_bos_token", wants_bos));
  SLUICE_ASSIGN_OR_RETURN(v.add_eos, file.get_bool_or("tokenizer.ggml.add_eos_token", false));
  SLUICE_ASSIGN_OR_RETURN(v.chat_template, file.get_string_or("tokenizer.chat_template", ""));
  return v;
}

Result<Vocabulary> vocabulary_of_folder(const std::string& folder) {
  TokenizerFiles files;
  const auto read = [&](const char* name, std::string& into) -> Status {
    Result<std::string> text = read_model_text(folder + "/" + name);
    if (!text.ok()) return text.code() == Code::kNotFound ? Status() : text.status();
    into = std::move(text).value();
    return {};
  };
  SLUICE_RETURN_IF_ERROR(read("tokenizer.json", files.tokenizer_json));
  if (files.tokenizer_json.empty()) {
    return not_found(folder + " has no tokenizer.json: download it, or save the tokenizer again with transformers' fast class");
  }
  SLUICE_RETURN_IF_ERROR(read("tokenizer_config.json", files.tokenizer_config_json));
  SLUICE_RETURN_IF_ERROR(read("special_tokens_map.json", files.special_tokens_map_json));
  SLUICE_RETURN_IF_ERROR(read("chat_template.jinja", files.chat_template_jinja));
  SLUICE_RETURN_IF_ERROR(read("config.json", files.config_json));
  SLUICE_RETURN_IF_ERROR(read("generation_config.json", files.generation_config_json));
  Result<Vocabulary> vocabulary = vocabulary_from_json(files);
  if (!vocabulary.ok()) return Status(vocabulary.code(), folder + ": " + vocabulary.status().message());
  return vocabulary;
}

std::int64_t proc_value_kb(const char* path, const std::string& name) {
  std::ifstream in(path);
  std::string key;
  while (in >> key) {
    std::int64_t value = 0;
    if (key == name && in >> value) return value;
    in.ignore(1 << 20, '\n');
  }
  return 0;
}

}  // namespace

Result<LoadedSystem> load_system(const std::string& path) {
  LoadedSystem system;
  system.path = path;
  SLUICE_ASSIGN_OR_RETURN(LoadedModel loaded, load_model(path));
  system.model = std::move(loaded.model);
  SLUICE_ASSIGN_OR_RETURN(const Vocabulary vocabulary, loaded.file.gguf != nullptr ? vocabulary_of(*loaded.file.gguf)
                                                                                   : vocabulary_of_folder(loaded.file.path));
  auto tokenizer = Tokenizer::create(vocabulary);
  if (!tokenizer.ok()) return Status(tokenizer.code(), path + ": " + tokenizer.status().message());
  system.tokenizer = std::move(tokenizer).value();
  if (system.tokenizer->size() > system.model->info().vocab_size) {
    return invalid_argument(path + ": the vocabulary has " + std::to_string(system.tokenizer->size()) +
                            " tokens, the embedding only " + std::to_string(system.model->info().vocab_size) +
                            " rows: choose another file");
  }
  auto chat_template = ChatTemplate::for_model(vocabulary, *system.tokenizer);
  if (chat_template.ok()) {
    system.chat_template = std::move(chat_template).value();
    system.chat_guessed = vocabulary.chat_template.empty();
  } else {
    system.chat_error = chat_template.status().message();
  }
  return system;
}

std::string find_bundled_model() {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (const char* named = std::getenv("SLUICE_MODEL"); named && *named) return named;
  const fs::path file = fs::path("models") / "SmolLM2-135M-Instruct.Q4_1.gguf";
  std::vector<fs::path> caches;
  if (const char* dir = std::getenv("SLUICE_CACHE_DIR"); dir && *dir) caches.emplace_back(dir);
  if (const char* dir = std::getenv("XDG_CACHE_HOME"); dir && *dir) caches.push_back(fs::path(dir) / "sluice");
  if (const char* home = std::getenv("HOME"); home && *home) caches.push_back(fs::path(home) / ".cache" / "sluice");
  caches.emplace_back(SLUICE_CACHE_DIR);  // where the build fetched it to
  for (const fs::path& cache : caches) {
    if (fs::exists(cache / file, ignored)) return (cache / file).string();
  }
  return "";
}

Result<std::int64_t> estimate_memory(const std::string& path, std::int64_t kv_tokens) {
  SLUICE_ASSIGN_OR_RETURN(const ModelFile file, open_model_file(path));
  const ModelConfig& config = file.config;
  const std::int64_t kv = kv_tokens * 2 * config.layers * config.kv_size() * static_cast<std::int64_t>(sizeof(float));
  // Activations of a training micro-batch: learning.md §9.
  const std::int64_t block_floats = 4 * config.hidden + 2 * (config.q_size() + config.kv_size()) + 3 * config.ffn;
  const std::int64_t training = LearnSettings().micro_batch_tokens * config.layers * block_floats * static_cast<std::int64_t>(sizeof(float));
  constexpr std::int64_t kProgram = 200 << 20;  // with adapter, gradient, moments
  return file.bytes + kv + training + kProgram;
}

std::int64_t available_memory() { return proc_value_kb("/proc/meminfo", "MemAvailable:") * 1024; }

std::int64_t resident_memory() { return proc_value_kb("/proc/self/status", "VmRSS:") * 1024; }

}  // namespace sluice
