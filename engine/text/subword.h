// SPDX-License-Identifier: GPL-3.0-or-later
// How plain text, without added tokens in it, becomes token ids: byte-level BPE or SentencePiece's BPE. The tokenizer puts
// added tokens around it.
// Immutable once created; any number of threads may share one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/merges.h"
#include "text/vocabulary.h"

namespace sluice {

// Where a stretch of plain text stands.
enum class TextPlace {
  kBegin,        // at the begin of the text
  kBehindAdded,  // behind an added token
  kContinues,    // at the begin, of a text that itself continues another
};

class SubwordModel {
 public:
  // By the vocabulary's model name. kInvalidArgument, naming what is wrong, for an unknown one, or for merges or scores
  // that do not fit the tokens. Types must be as many as tokens, or none.
  static Result<std::unique_ptr<const SubwordModel>> create(const Vocabulary& vocabulary);
  virtual ~SubwordModel() = default;

  // Valid UTF-8 as encode wants it: composed, or with the space that stands before it.
  virtual std::string normalize(std::string_view text, TextPlace place) const = 0;
  // Appends the ids of normalised text. Time is n log n.
  virtual Status encode(std::string_view normalized, std::vector<std::int32_t>& out) const = 0;
  // Whether encoding puts a space before a text, which decoding takes off again.
  virtual bool puts_space() const = 0;

  // The bytes each token stands for. Of added tokens their text.
  const std::vector<std::string>& pieces() const { return pieces_; }
  std::optional<std::int32_t> find(std::string_view bytes) const {  // among tokens that plain text can give
    const auto it = ids_.find(std::string(bytes));
    return it == ids_.end() ? std::nullopt : std::optional(it->second);
  }

 protected:
  // The vocabulary's merges by rank. `decode`: bool(std::string_view written, std::string& bytes), a half as the file writes it.
  template <class Decode>
  Status read_merges(const Vocabulary& vocabulary, const Decode& decode, Merges& merges) const;

  std::vector<std::string> pieces_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

Result<std::unique_ptr<const SubwordModel>> create_byte_bpe(const Vocabulary& vocabulary);
Result<std::unique_ptr<const SubwordModel>> create_sentencepiece(const Vocabulary& vocabulary);

// The type of a token; all are normal where the file has no types.
inline TokenType token_type(const Vocabulary& vocabulary, std::size_t id) {
  return vocabulary.types.empty() ? TokenType::kNormal : vocabulary.types[id];
}
inline bool is_added(TokenType type) { return type == TokenType::kControl || type == TokenType::kUserDefined; }

// A text of the model file in quotes, valid and short, for messages.
std::string in_quotes(std::string_view text);

// The byte of "<0x41>", SentencePiece's token for a byte; -1 for another text.
int byte_of(std::string_view text);

template <class Decode>
Status SubwordModel::read_merges(const Vocabulary& vocabulary, const Decode& decode, Merges& merges) const {
  merges.reserve(vocabulary.merges.size());
  std::string left, right;
  std::int32_t rank = 0;
  for (const std::string& merge : vocabulary.merges) {
    const std::size_t space = merge.find(' ', 1);
    const bool split = space != std::string::npos && decode(std::string_view(merge).substr(0, space), left) &&
                       decode(std::string_view(merge).substr(space + 1), right);
    const auto a = split ? find(left) : std::nullopt;
    const auto b = split ? find(right) : std::nullopt;
    const auto joined = split ? find(left + right) : std::nullopt;
    if (!a || !b || !joined) {
      return invalid_argument("the merge " + in_quotes(merge) + " of the model file names no tokens of its vocabulary");
    }
    merges.add(*a, *b, *joined, rank++);
  }
  return {};
}

}  // namespace sluice
