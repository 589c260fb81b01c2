// SPDX-License-Identifier: GPL-3.0-or-later
// What a model file says about its text side, as a plain struct. Whoever reads the file fills it (names in brackets are
// GGUF keys); Tokenizer::create checks it. A value, no thread rules.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace sluice {

// The numbers are GGUF's.
enum class TokenType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,      // a special token: matched in text only where special tokens are allowed
  kUserDefined = 4,  // matched in any text
  kUnused = 5,
  kByte = 6,
};

// How an added token takes the text around it. GGUF files don't carry these flags (all false there).
struct AddedTokenFlags {
  std::int32_t id = -1;
  bool lstrip = false;       // swallows white space before it
  bool rstrip = false;       // swallows white space after it
  bool single_word = false;  // matched only where no word character touches it
  bool normalized = false;   // matched in the normalised text (after NFC) rather than in the text as given
};

// Where SentencePiece vocabularies put a space that the text does not have.
enum class SpacePrefix {
  kNone,
  kFirst,  // before the text, unless it begins with an added token ("legacy": false)
  kEach,   // before the text and behind every added token ("legacy": true)
};

// Ids of the fill-in-the-middle markers.
struct FimIds {
  std::optional<std::int32_t> prefix;  // [tokenizer.ggml.fim_pre_token_id, else prefix_token_id]
  std::optional<std::int32_t> suffix;  // [tokenizer.ggml.fim_suf_token_id, else suffix_token_id]
  std::optional<std::int32_t> middle;  // [tokenizer.ggml.fim_mid_token_id, else middle_token_id]
  std::optional<std::int32_t> pad;     // [tokenizer.ggml.fim_pad_token_id]
  std::optional<std::int32_t> repo;    // [tokenizer.ggml.fim_rep_token_id]
  std::optional<std::int32_t> file;    // [tokenizer.ggml.fim_sep_token_id]
};

struct Vocabulary {
  std::string model = "gpt2";              // [tokenizer.ggml.model] byte-level BPE "gpt2" or SentencePiece "llama"
  std::string pre_tokenizer;               // [tokenizer.ggml.pre] "smollm", "llama-bpe", "qwen2", "gpt-2" ...
  std::vector<std::string> split_patterns;  // instead of pre_tokenizer, where the source holds the patterns themselves
  std::vector<std::string> tokens;         // [tokenizer.ggml.tokens] as stored: normal tokens in the byte alphabet
  std::vector<TokenType> types;            // [tokenizer.ggml.token_type]; empty = all normal
  std::vector<float> scores;               // [tokenizer.ggml.scores] "llama": the higher, the earlier merged
  std::vector<std::string> merges;         // [tokenizer.ggml.merges] "left right", best first; "llama": instead of scores
  std::vector<AddedTokenFlags> added;      // only where the source knows flags
  std::optional<std::int32_t> bos;         // [tokenizer.ggml.bos_token_id]
  std::optional<std::int32_t> eos;         // [tokenizer.ggml.eos_token_id]
  std::optional<std::int32_t> eot;         // [tokenizer.ggml.eot_token_id]
  std::optional<std::int32_t> unk;         // [tokenizer.ggml.unknown_token_id]
  std::optional<std::int32_t> pad;         // [tokenizer.ggml.padding_token_id]
  std::vector<std::int32_t> end_of_generation;  // further ids that end an answer (generation_config's list)
  bool add_bos = false;                    // [tokenizer.ggml.add_bos_token]
  bool add_eos = false;                    // [tokenizer.ggml.add_eos_token]
  std::optional<bool> nfc;                 // normalise to NFC first; empty = what the pre-tokenizer's family does
  std::optional<bool> ignore_merges;       // a whole piece that is a token stays one; empty = as the family does
  std::optional<bool> add_space_prefix;    // [tokenizer.ggml.add_space_prefix] "llama": kEach or kNone; empty = kEach
  std::optional<SpacePrefix> space_prefix;  // "llama": comes before add_space_prefix, where the source knows more
  bool doubles_space = true;               // "llama": whether a text that begins with a space gets one more
  FimIds fim;
  std::string chat_template;               // [tokenizer.chat_template]; empty = none
};

}  // namespace sluice
