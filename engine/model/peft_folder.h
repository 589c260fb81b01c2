// SPDX-License-Identifier: GPL-3.0-or-later
// Adapter folders in PEFT layout: adapter_config.json + adapter_model.safetensors. Reading follows learning.md §7: every
// key of the configuration is honoured, known to be harmless, or refused by name; every tensor must bind. Pure
// functions over files, thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/result.h"
#include "model/lora.h"
#include "model/weights.h"
#include "model_api/adapter.h"

namespace sluice {

// kNotFound: no such folder or file. kInvalidArgument: settings Sluice can't honour, or the full list of what does not
// bind. kCorrupt: a damaged file.
Result<LoraData> read_peft_folder(const std::string& folder, const ModelConfig& config);

// A LoRA file as llama.cpp's converter writes it (alpha / rank; q and k of the llama family pair-interleaved). Errors as
// above.
Result<LoraData> read_gguf_adapter(const std::string& path, const ModelConfig& config);
// Whichever of the two `path` is: a file is taken for GGUF, anything else for a PEFT folder.
Result<LoraData> read_adapter(const std::string& path, const ModelConfig& config);
// The same, for this very model: where a folder has a provenance file, kInvalidArgument when it was made for another base,
// kCorrupt when a file is not the one that was written.
Result<LoraData> read_adapter_for(const std::string& path, const TransformerWeights& weights);

// Writes both files into an existing folder and fsyncs them; equal data gives equal bytes. Sets nothing else: the
// provenance file and the rename are the caller's. Returns the SHA-256 of adapter_model.safetensors.
Result<std::string> write_peft_folder(const std::string& folder, const LoraData& data, const ModelConfig& config,
                                      const std::string& base_model_name);

// sluice_provenance.json beside the two files: base model hash plus whatever the caller knows (parent, step, ...), and
// the SHA-256 of both files.
Status write_provenance(const std::string& folder, const std::string& base_hash,
                        const std::map<std::string, std::string>& facts);

// For Model::adapter_loader(): read_adapter_for -> LoraAdapter.
std::unique_ptr<AdapterLoader> make_adapter_loader(std::shared_ptr<const TransformerWeights> weights);

}  // namespace sluice
