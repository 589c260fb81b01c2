// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/json_text.h"

#include "base/json_object.h"

namespace sluice {
namespace {

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

// Depth is bounded where the data came in (json_limits), so plain recursion is safe.
void append_json(std::string& out, const DataValue& value) { std::visit(Writer{out}, value.v); }

}  // namespace sluice
