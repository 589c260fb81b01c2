// SPDX-License-Identifier: GPL-3.0-or-later
// The tokens of a template, read in order by the parsers. The last one, kEnd, is never passed. Used by one thread.
#pragma once

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/lexer.h"

namespace sluice::jinja {

class TokenStream {
 public:
  explicit TokenStream(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  const Token& peek(std::size_t ahead = 0) const { return tokens_[std::min(at_ + ahead, tokens_.size() - 1)]; }
  Token take() { return tokens_[at_ + 1 < tokens_.size() ? at_++ : at_]; }
  bool skip(std::string_view op) {
    const bool found = peek().is(op);
    if (found) take();
    return found;
  }
  bool skip_name(std::string_view name) {
    const bool found = peek().is_name(name);
    if (found) take();
    return found;
  }
  int line() const { return peek().line; }
  Status expect(std::string_view op);
  // "unexpected X", where something else should stand.
  Status unexpected(std::string_view wanted) const;

 private:
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
};

}  // namespace sluice::jinja
