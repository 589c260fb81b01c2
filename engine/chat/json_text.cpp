// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/json_text.h"

#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace sluice {
namespace {

template <class T>
void append_number(std::string& out, T value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  out.append(buffer, end);
}

struct Writer {
  std::string& out;

  void operator()(std::monostate) const { out += "null"; }
  void operator()(bool b) const { out += b ? "true" : "false"; }
  void operator()(std::int64_t i) const { out += std::to_string(i); }
  void operator()(double d) const { append_json_number(out, d); }
  void operator()(const std::string& s) const { append_json_string(out, s); }
  void operator()(const DataValue::List& list) const {
    out += '[';
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i > 0) out += ',';
      append_json(out, list[i]);
    }
    out += ']';
  }
  void operator()(const DataValue::Dict& dict) const {
    out += '{';
    for (std::size_t i = 0; i < dict.size(); ++i) {
      if (i > 0) out += ',';
      append_json_string(out, dict[i].first);
      out += ':';
      append_json(out, dict[i].second);
    }
    out += '}';
  }
};

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string valid;
  if (!is_valid_utf8(text)) {
    valid = to_valid_utf8(text);
    text = valid;
  }
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

void append_json_number(std::string& out, double value) { append_number(out, value); }
void append_json_number(std::string& out, float value) { append_number(out, value); }

// Depth is bounded where the data came in (json_limits), so plain recursion is safe.
void append_json(std::string& out, const DataValue& value) { std::visit(Writer{out}, value.v); }

}  // namespace sluice
