// SPDX-License-Identifier: GPL-3.0-or-later
// Template text -> tokens, with trim_blocks and lstrip_blocks on, as chat templates are written for. Pure function.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::jinja {

enum class TokenKind {
  kText,
  kBlockBegin,
  kBlockEnd,
  kOutputBegin,
  kOutputEnd,
  kName,
  kString,
  kInteger,
  kFloat,
  kOperator,
  kEnd,
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  int line = 1;
  std::string text;  // of a string: its value

  bool is(std::string_view op) const { return kind == TokenKind::kOperator && text == op; }
  bool is_name(std::string_view name) const { return kind == TokenKind::kName && text == name; }
};

// The last token is kEnd. kInvalidArgument with the line for what can't be read.
Result<std::vector<Token>> tokenize(const std::string& source);

Status error_at(int line, const std::string& what);

}  // namespace sluice::jinja
