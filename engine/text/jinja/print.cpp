// SPDX-License-Identifier: GPL-3.0-or-later
// Values as text: Python's str and repr, and JSON as its json module writes it. Nesting is bounded by kMaxNesting.
#include <utf8proc.h>

#include <array>
#include <charconv>
#include <cmath>

#include "text/jinja/value.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string hex(char32_t c, int digits) {
  std::string out;
  for (int shift = 4 * (digits - 1); shift >= 0; shift -= 4) out += kHex[(c >> shift) & 15];
  return out;
}

bool is_printable(char32_t c) {  // str.isprintable
  if (c == ' ') return true;
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category != UTF8PROC_CATEGORY_CN && (category < UTF8PROC_CATEGORY_ZS || category > UTF8PROC_CATEGORY_CO);
}

void append_repr(MarkedText& out, const MarkedText& text) {
  const bool single = text.text().find('\'') != std::string::npos;
  const char quote = single && text.text().find('"') == std::string::npos ? '"' : '\'';
  const Mark mark = text.dominant();
  out.append(std::string(1, quote), mark);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = next_code_point(text.view().substr(at));
    const char32_t c = step.code_point;
    std::string piece(text.view().substr(at, step.length));
    if (c == static_cast<unsigned char>(quote) || c == '\\') {
      piece.insert(0, 1, '\\');
    } else if (c == '\n' || c == '\r' || c == '\t') {
      piece = c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (!is_printable(c)) {
      piece = c < 0x100 ? "\\x" + hex(c, 2) : c < 0x10000 ? "\\u" + hex(c, 4) : "\\U" + hex(c, 8);
    }
    out.append(piece, text.mark(at));
    at += step.length;
  }
  out.append(std::string(1, quote), mark);
}

// \uXXXX, as two of them above the basic plane.
std::string json_escape(char32_t c) {
  if (c < 0x10000) return "\\u" + hex(c, 4);
  return "\\u" + hex(0xd800 + ((c - 0x10000) >> 10), 4) + "\\u" + hex(0xdc00 + (c & 0x3ff), 4);
}

void append_json_text(MarkedText& out, const MarkedText& text, bool ascii) {
  const Mark mark = text.dominant();
  out.append("\"", mark);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Step step = next_code_point(text.view().substr(at));
    std::string piece(text.view().substr(at, step.length));
    switch (step.code_point) {
      case '"': piece = "\\\""; break;
      case '\\': piece = "\\\\"; break;
      case '\n': piece = "\\n"; break;
      case '\r': piece = "\\r"; break;
      case '\t': piece = "\\t"; break;
      case '\b': piece = "\\b"; break;
      case '\f': piece = "\\f"; break;
      default:
        if (step.code_point < 0x20 || (ascii && step.code_point >= 0x7f)) piece = json_escape(step.code_point);
    }
    out.append(piece, text.mark(at));
    at += step.length;
  }
  out.append("\"", mark);
}

void append_repr(MarkedText& out, const Value& value);

void append_sequence(MarkedText& out, const List& list) {
  out.append(list.tuple ? "(" : "[", kFromTemplate);
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    if (i > 0) out.append(", ", kFromTemplate);
    append_repr(out, list.items[i]);
  }
  if (list.tuple && list.items.size() == 1) out.append(",", kFromTemplate);
  out.append(list.tuple ? ")" : "]", kFromTemplate);
}

void append_repr(MarkedText& out, const Value& value) {
  if (const MarkedText* text = value.text()) return append_repr(out, *text);
  if (const List* list = value.list()) return append_sequence(out, *list);
  if (const Dict* dict = value.dict()) {
    out.append("{", kFromTemplate);
    bool first = true;
    for (const auto& [key, item] : dict->items) {
      if (!first) out.append(", ", kFromTemplate);
      first = false;
      append_repr(out, key);
      out.append(": ", kFromTemplate);
      append_repr(out, item);
    }
    out.append("}", kFromTemplate);
    return;
  }
  if (value.is_undefined()) return out.append("Undefined", kFromTemplate);
  out.append(to_str(value));
}

class JsonWriter {
 public:
  JsonWriter(int indent, bool ascii) : indent_(indent), ascii_(ascii) {}

  Status write(const Value& value, int level) {
    if (out.size() > kMaxWeight) return invalid_argument("the JSON form grows above 64 MiB");
    if (const MarkedText* text = value.text()) {
      append_json_text(out, *text, ascii_);
    } else if (value.is_none()) {
      out.append("null", kFromTemplate);
    } else if (const bool* b = value.as<bool>()) {
      out.append(*b ? "true" : "false", kFromTemplate);
    } else if (value.as<std::int64_t>()) {
      out.append(to_str(value));
    } else if (const double* d = value.as<double>()) {
      const std::string infinite = *d < 0 ? "-Infinity" : "Infinity";
      out.append(std::isnan(*d) ? "NaN" : std::isinf(*d) ? infinite : float_repr(*d), kFromTemplate);
    } else if (const List* list = value.list()) {
      return write_all('[', ']', list->items, level, [&](const Value& item) { return write(item, level + 1); });
    } else if (const Dict* dict = value.dict()) {
      return write_all('{', '}', dict->items, level, [&](const auto& item) { return write_pair(item, level); });
    } else {
      const Undefined* u = value.as<Undefined>();
      return invalid_argument(u ? u->what : "a " + std::string(value.type_name()) + " has no JSON form");
    }
    return {};
  }

  MarkedText out;

 private:
  template <class Items, class Write>
  Status write_all(char open, char close, const Items& items, int level, Write write_item) {
    out.append(std::string(1, open), kFromTemplate);
    bool first = true;
    for (const auto& item : items) {
      if (!first) out.append(indent_ < 0 ? ", " : ",", kFromTemplate);
      first = false;
      new_line(level + 1);
      SLUICE_RETURN_IF_ERROR(write_item(item));
    }
    if (!first) new_line(level);
    out.append(std::string(1, close), kFromTemplate);
    return {};
  }

  Status write_pair(const std::pair<Value, Value>& item, int level) {
    if (item.first.text()) {
      append_json_text(out, *item.first.text(), ascii_);
    } else {  // json.dumps turns other keys into their text
      out.append("\"", kFromTemplate);
      SLUICE_RETURN_IF_ERROR(write(item.first, level + 1));
      out.append("\"", kFromTemplate);
    }
    out.append(": ", kFromTemplate);
    return write(item.second, level + 1);
  }

  void new_line(int level) {
    if (indent_ < 0) return;
    const auto spaces = static_cast<std::size_t>(indent_) * static_cast<std::size_t>(level);
    out.append("\n" + std::string(spaces, ' '), kFromTemplate);
  }

  int indent_;
  bool ascii_;
};

}  // namespace

// Python's repr of a float: the shortest digits that read back the same; an exponent below 1e-4 and from 1e16 on.
std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  std::array<char, 64> buffer;
  const double size = std::fabs(d);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto format = exponent ? std::chars_format::scientific : std::chars_format::fixed;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), d, format).ptr;
  std::string out(buffer.data(), end);
  if (!exponent && out.find('.') == std::string::npos) out += ".0";
  return out;
}

MarkedText to_str(const Value& value) {
  const auto plain = [](std::string text) { return MarkedText(std::move(text), kFromTemplate); };
  if (const MarkedText* text = value.text()) return *text;
  if (value.is_undefined()) return {};
  if (value.is_none()) return plain("None");
  if (const bool* b = value.as<bool>()) return plain(*b ? "True" : "False");
  if (const auto* i = value.as<std::int64_t>()) return plain(std::to_string(*i));
  if (const double* d = value.as<double>()) return plain(float_repr(*d));
  if (value.list() || value.dict()) return to_repr(value);
  return plain("<" + std::string(value.type_name()) + ">");
}

MarkedText to_repr(const Value& value) {
  MarkedText out;
  append_repr(out, value);
  return out;
}

Result<MarkedText> to_json(const Value& value, int indent, bool ensure_ascii) {
  JsonWriter writer(indent, ensure_ascii);
  SLUICE_RETURN_IF_ERROR(writer.write(value, 0));
  return std::move(writer.out);
}

}  // namespace sluice::jinja
