// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/token_stream.h"

#include <string>

namespace sluice::jinja {

Status TokenStream::unexpected(std::string_view wanted) const {
  const Token& token = peek();
  std::string found;
  switch (token.kind) {
    case TokenKind::kEnd: found = "the end of the template"; break;
    case TokenKind::kBlockEnd: found = "%}"; break;
    case TokenKind::kOutputEnd: found = "}}"; break;
    case TokenKind::kString: found = "a string"; break;
    default: found = "\"" + token.text + "\"";
  }
  return error_at(token.line, "unexpected " + found + ", wanted " + std::string(wanted));
}

Status TokenStream::expect(std::string_view op) {
  return skip(op) ? Status() : unexpected("\"" + std::string(op) + "\"");
}

}  // namespace sluice::jinja
