// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/subword.h"

#include "text/utf8.h"

namespace sluice {

std::string in_quotes(std::string_view text) { return "\"" + to_valid_utf8(text.substr(0, 80)) + "\""; }

Result<std::unique_ptr<const SubwordModel>> SubwordModel::create(const Vocabulary& vocabulary) {
  if (vocabulary.model == "gpt2") return create_byte_bpe(vocabulary);
  if (vocabulary.model == "llama") return create_sentencepiece(vocabulary);
  return invalid_argument("the model file's tokenizer is of the kind " + in_quotes(vocabulary.model) +
                          "; known are byte-level BPE (\"gpt2\") and SentencePiece's BPE (\"llama\"): use another model");
}

}  // namespace sluice
