// SPDX-License-Identifier: GPL-3.0-or-later
// The head of an HTTP/1.x request: strict parsing, because what two programs read differently lets one request hide in
// another; and the head of an answer. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "http/http_types.h"

namespace sluice {

// `head`: from the request line through the blank line. Fills method, path, query, version and headers. The error names
// what is wrong; the connection must be closed after it, since nobody knows where the next request would begin.
//
// Refused (RFC 9112, and stricter where it leaves a choice): a line that ends in a bare LF or holds a bare CR or NUL, a
// folded header line, a space before a header's colon, an empty or odd header name, control characters in a value, a
// version other than 1.0 and 1.1, a target that is neither "/path" nor "http://host/path", a broken percent escape.
std::optional<ApiError> parse_request_head(std::string_view head, HttpRequest* request);

// May the connection stay open after this request, by its version and Connection header?
bool wants_keep_alive(const HttpRequest& request);

// How the body of an answer is framed.
enum class AnswerFraming { kLength, kChunked, kUntilClose };

// Status line and headers through the blank line. `length` counts for kLength.
std::string answer_head(const HttpReply& reply, AnswerFraming framing, std::size_t length, bool keep_alive);

}  // namespace sluice
