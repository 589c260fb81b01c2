// SPDX-License-Identifier: GPL-3.0-or-later
// Splits text into the pieces that byte-pair merges never cross, by the Unicode patterns of a tokenizer family.
// Immutable once created; any number of threads may share one. Linear time, no recursion.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace sluice {

class PreTokenizer {
 public:
  // By the name model files use: "gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "deepseek-v3" ... kInvalidArgument for
  // any other, listing the known ones, and for none.
  static Result<std::unique_ptr<const PreTokenizer>> create(const std::string& name);
  // By patterns of tokenizer.json, each applied to the pieces of the one before; what a pattern does not match is a piece
  // too. kInvalidArgument for one that does not compile. nfc and ignore_merges are false.
  static Result<std::unique_ptr<const PreTokenizer>> of_patterns(const std::vector<std::string>& patterns);
  ~PreTokenizer();
  PreTokenizer(const PreTokenizer&) = delete;
  PreTokenizer& operator=(const PreTokenizer&) = delete;

  bool nfc() const;            // the family normalises to NFC before it splits
  bool ignore_merges() const;  // a whole piece that is a token stays one

  // Appends the pieces of `text`, which must be valid UTF-8; joined they are the text. They point into it.
  Status split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Impl;
  explicit PreTokenizer(std::unique_ptr<const Impl> impl);

  const std::unique_ptr<const Impl> impl_;
};

}  // namespace sluice
