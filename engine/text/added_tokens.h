// SPDX-License-Identifier: GPL-3.0-or-later
// Finds added tokens (control and user-defined ones) in text: leftmost, then longest, obeying their flags.
// Immutable once filled; any number of threads may search. Time is the text times the longest token, which is capped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocabulary.h"

namespace sluice {

struct ByteRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

struct AddedMatch {
  ByteRange range;  // white space swallowed by lstrip / rstrip included
  std::int32_t id = -1;
};

class AddedTokens {
 public:
  static constexpr std::size_t kMaxLength = 1024;  // bytes; longer ones are refused when the vocabulary is read

  void add(std::string_view text, const AddedTokenFlags& flags, bool control);
  bool empty() const { return tokens_.empty(); }

  // Matches in order, not overlapping. A control token counts only if it lies within one range of `control_allowed`
  // (ascending, disjoint); so does the white space that it swallows.
  std::vector<AddedMatch> find(std::string_view text, const std::vector<ByteRange>& control_allowed) const;

 private:
  struct Token {
    AddedTokenFlags flags;
    bool control;
  };
  struct Hit {
    std::size_t length = 0;
    const Token* token = nullptr;
  };
  // The longest token at `at`; control tokens must end by `control_end`.
  Hit longest_at(std::string_view text, std::size_t at, std::size_t control_end) const;

  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // trie: (node << 8 | byte) -> node; 0 is the root
  std::vector<std::int32_t> token_at_ = {-1};               // node -> index into tokens_
  std::vector<Token> tokens_;
  bool starts_[256] = {};
};

}  // namespace sluice
