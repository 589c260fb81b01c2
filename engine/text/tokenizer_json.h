// SPDX-License-Identifier: GPL-3.0-or-later
// The tokenizer of a Hugging Face model folder -> Vocabulary. Takes the files' contents; whoever reads the folder passes
// them. Pure function, any thread.
#pragma once

#include <string>

#include "base/result.h"
#include "text/vocabulary.h"

namespace sluice {

// Contents of the files of a model folder; empty = the folder has no such file.
struct TokenizerFiles {
  std::string tokenizer_json = {};           // tokenizer.json; must be there
  std::string tokenizer_config_json = {};    // tokenizer_config.json: bos, eos, pad, add_bos_token, chat_template
  std::string special_tokens_map_json = {};   // special_tokens_map.json: bos, eos, pad where the config names none
  std::string chat_template_jinja = {};      // chat_template.jinja: comes before the config's template
  std::string config_json = {};              // config.json: eos_token_id, a number or a list
  std::string generation_config_json = {};   // generation_config.json: eos_token_id, a number or a list
};

// Byte-level BPE with the splits of GPT-2, SmolLM2, StarCoder, Llama 3, Qwen2/3, DeepSeek, Tekken and GPT-4o; BPE over
// SentencePiece pieces with byte fallback as in Llama 2, Mistral, Gemma. End ids are the union of both configs' (CFG-8).
// kInvalidArgument, naming the file and the part of it, for anything else and for damage.
Result<Vocabulary> vocabulary_from_json(const TokenizerFiles& files);

}  // namespace sluice
