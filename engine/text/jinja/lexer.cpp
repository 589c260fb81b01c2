// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/lexer.h"

#include <algorithm>
#include <cctype>

#include "text/jinja/marked_text.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80); }
bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

// Jinja reads every line end as LF and drops the last one.
std::string normalize_lines(const std::string& source) {
  std::string out;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      out += '\n';
    }
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(const std::string& source) : source_(normalize_lines(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) SLUICE_RETURN_IF_ERROR(next());
    push(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
  bool looking_at(std::string_view text) const { return std::string_view(source_).substr(at_, text.size()) == text; }

  void advance(std::size_t count) {
    const auto from = source_.begin() + static_cast<std::ptrdiff_t>(at_);
    line_ += static_cast<int>(std::count(from, from + static_cast<std::ptrdiff_t>(count), '\n'));
    at_ += count;
    line_starting_ = count > 0 && source_[at_ - 1] == '\n';
  }

  void push(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }

  void skip_space() {
    while (at_ < source_.size()) {
      const Utf8Step step = next_code_point(std::string_view(source_).substr(at_));
      if (!is_python_space(step.code_point)) break;
      advance(step.length);
    }
  }

  // Text up to the next tag, then the tag.
  Status next() {
    std::size_t tag = at_;
    while (tag < source_.size()) {
      tag = source_.find('{', tag);
      if (tag == std::string::npos) tag = source_.size();
      if (tag + 1 < source_.size() && std::string_view("{%#").find(source_[tag + 1]) != std::string_view::npos) break;
      if (tag < source_.size()) ++tag;
    }
    const char kind = tag < source_.size() ? source_[tag + 1] : '\0';
    const char sign = kind != '\0' && tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    push_text(source_.substr(at_, tag - at_), kind, sign);
    advance(tag - at_);
    if (kind == '\0') return {};
    const bool signed_tag = sign == '-' || (sign == '+' && kind != '{');
    const std::size_t opening = signed_tag ? 3 : 2;
    if (kind == '#') return comment(opening);
    if (kind == '%') {
      bool was_raw = false;
      SLUICE_RETURN_IF_ERROR(raw(opening, was_raw));
      if (was_raw) return {};
    }
    push(kind == '{' ? TokenKind::kOutputBegin : TokenKind::kBlockBegin, "");
    advance(opening);
    return inside(kind);
  }

  void push_text(std::string text, char kind, char sign) {
    if (kind != '\0' && sign == '-') {
      text = MarkedText(std::move(text), kFromTemplate).strip(nullptr, false, true).text();
    } else if (sign != '+' && (kind == '%' || kind == '#')) {
      // lstrip_blocks: white space alone between the begin of a line and the tag goes.
      const std::size_t newline = text.rfind('\n');
      const std::size_t begin = newline == std::string::npos ? 0 : newline + 1;
      if ((begin > 0 || line_starting_) &&
          MarkedText(text.substr(begin), kFromTemplate).strip(nullptr, true, false).empty()) {
        text.resize(begin);
      }
    }
    if (!text.empty()) push(TokenKind::kText, std::move(text));
  }

  // Behind the sign (if any) and the end of a tag: "-" takes all white space, a plain block end one line end.
  void end_tag(char sign, std::size_t length, bool block) {
    advance(length);
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && block && peek() == '\n') {
      advance(1);
    }
  }

  Status comment(std::size_t opening) {
    const int line = line_;
    const std::size_t end = source_.find("#}", at_ + opening);
    if (end == std::string::npos) return error_at(line, "a comment is not ended by #}");
    const char sign = end > at_ + opening && (source_[end - 1] == '-' || source_[end - 1] == '+') ? source_[end - 1] : '\0';
    end_tag(sign, end + 2 - at_, true);
    return {};
  }

  // {% raw %} ... {% endraw %}: text as it stands.
  Status raw(std::size_t opening, bool& was_raw) {
    std::size_t end = 0;
    char sign = '\0';
    if (!plain_tag(at_ + opening, "raw", end, sign)) return {};
    was_raw = true;
    const int line = line_;
    end_tag(sign, end - at_, false);
    for (std::size_t tag = source_.find("{%", at_); tag != std::string::npos; tag = source_.find("{%", tag + 1)) {
      const char left = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
      const std::size_t skip = left == '-' || left == '+' ? 3 : 2;
      if (!plain_tag(tag + skip, "endraw", end, sign)) continue;
      push_text(source_.substr(at_, tag - at_), '%', left);
      advance(tag - at_);
      end_tag(sign, end - at_, true);
      return {};
    }
    return error_at(line, "raw is not ended by endraw");
  }

  // Whether `word` and the end of the block, nothing else, stand at `at`.
  bool plain_tag(std::size_t at, std::string_view word, std::size_t& end, char& sign) const {
    const auto space = [&] {
      while (at < source_.size() && std::isspace(static_cast<unsigned char>(source_[at]))) ++at;
    };
    space();
    if (std::string_view(source_).substr(at, word.size()) != word) return false;
    at += word.size();
    space();
    sign = at < source_.size() && (source_[at] == '-' || source_[at] == '+') ? source_[at] : '\0';
    if (sign != '\0') ++at;
    if (std::string_view(source_).substr(at, 2) != "%}") return false;
    end = at + 2;
    return true;
  }

  // The tokens of a tag up to its end.
  Status inside(char kind) {
    const int line = line_;
    const std::string close = kind == '{' ? "}}" : "%}";
    std::string open_brackets;
    while (true) {
      skip_space();
      if (at_ >= source_.size()) return error_at(line, "a tag is not ended by " + close);
      if (open_brackets.empty()) {
        const char sign = peek() == '-' || (peek() == '+' && kind == '%') ? peek() : '\0';
        const std::size_t skip = sign == '\0' ? 0 : 1;
        if (std::string_view(source_).substr(at_ + skip, 2) == close) {
          push(kind == '{' ? TokenKind::kOutputEnd : TokenKind::kBlockEnd, "");
          end_tag(sign, 2 + skip, kind == '%');
          return {};
        }
      }
      SLUICE_RETURN_IF_ERROR(token(open_brackets));
    }
  }

  Status token(std::string& open_brackets) {
    const char c = peek();
    if (is_name_start(c)) {
      std::size_t n = 1;
      while (is_name_char(peek(n))) ++n;
      push(TokenKind::kName, source_.substr(at_, n));
      advance(n);
      return {};
    }
    if (is_digit(c)) return number();
    if (c == '"' || c == '\'') return string();
    for (const std::string_view op : {"//", "**", "==", "!=", ">=", "<="}) {
      if (!looking_at(op)) continue;
      push(TokenKind::kOperator, std::string(op));
      advance(2);
      return {};
    }
    if (std::string_view("+-*/%~[](){}<>=.:|,").find(c) == std::string_view::npos) {
      return error_at(line_, "unexpected character \"" + std::string(1, c) + "\"");
    }
    if (std::string_view("([{").find(c) != std::string_view::npos) open_brackets += c;
    if (std::string_view(")]}").find(c) != std::string_view::npos) {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets.empty() || open_brackets.back() != opening) {
        return error_at(line_, "\"" + std::string(1, c) + "\" closes nothing");
      }
      open_brackets.pop_back();
    }
    push(TokenKind::kOperator, std::string(1, c));
    advance(1);
    return {};
  }

  Status number() {
    std::string digits;
    bool is_float = false;
    const auto take = [&] {
      while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) {
        if (peek() != '_') digits += peek();
        advance(1);
      }
    };
    take();
    if (peek() == '.' && is_digit(peek(1))) {
      is_float = true;
      digits += '.';
      advance(1);
      take();
    }
    const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
    if ((peek() == 'e' || peek() == 'E') && is_digit(peek(1 + sign))) {
      is_float = true;
      digits += source_.substr(at_, 1 + sign);
      advance(1 + sign);
      take();
    }
    if (is_name_char(peek())) return error_at(line_, "a number runs into a name");
    push(is_float ? TokenKind::kFloat : TokenKind::kInteger, digits);
    return {};
  }

  // Python's escapes; an unknown one stands for itself.
  Status string() {
    const int line = line_;
    const char quote = peek();
    std::string value;
    advance(1);
    while (at_ < source_.size() && peek() != quote) {
      if (peek() != '\\') {
        value += peek();
        advance(1);
        continue;
      }
      const char c = peek(1);
      constexpr std::string_view kFrom = "\\'\"abfnrtv";
      constexpr std::string_view kTo = "\\'\"\a\b\f\n\r\t\v";
      const std::size_t known = kFrom.find(c);
      if (c != '\0' && known != std::string_view::npos) {
        value += kTo[known];
        advance(2);
      } else if (c == '\n') {
        advance(2);
      } else if (c == 'x' || c == 'u' || c == 'U') {
        SLUICE_RETURN_IF_ERROR(hex_escape(c == 'x' ? 2 : c == 'u' ? 4 : 8, value));
      } else if (c >= '0' && c <= '7') {
        octal_escape(value);
      } else {
        value += '\\';
        advance(1);
      }
    }
    if (at_ >= source_.size()) return error_at(line, "a string is not ended");
    tokens_.push_back({TokenKind::kString, line, std::move(value)});
    advance(1);
    return {};
  }

  Status hex_escape(std::size_t digits, std::string& value) {
    char32_t c = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char d = peek(2 + i);
      if (!std::isxdigit(static_cast<unsigned char>(d))) return error_at(line_, "a \\x, \\u or \\U escape lacks digits");
      c = c * 16 + static_cast<char32_t>(is_digit(d) ? d - '0' : (d | 0x20) - 'a' + 10);
    }
    append_utf8(value, c);
    advance(2 + digits);
    return {};
  }

  void octal_escape(std::string& value) {
    char32_t c = 0;
    std::size_t n = 0;
    for (; n < 3 && peek(1 + n) >= '0' && peek(1 + n) <= '7'; ++n) c = c * 8 + static_cast<char32_t>(peek(1 + n) - '0');
    append_utf8(value, c);
    advance(1 + n);
  }

  const std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last thing taken ended a line
  std::vector<Token> tokens_;
};

}  // namespace

Status error_at(int line, const std::string& what) {
  return invalid_argument("chat template, line " + std::to_string(line) + ": " + what);
}

Result<std::vector<Token>> tokenize(const std::string& source) { return Lexer(source).run(); }

}  // namespace sluice::jinja
