// SPDX-License-Identifier: GPL-3.0-or-later
// Text in which every byte knows where it comes from: the template or what a client sent. All string operations of the
// template language keep the marks, so that the rendered prompt can be cut along them. A value, no thread rules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::jinja {

using Mark = char;
inline constexpr Mark kFromTemplate = 0;
inline constexpr Mark kFromData = 1;
inline constexpr Mark kFromLastMessage = 2;  // data, too; the prompt may have to end behind it

class MarkedText {
 public:
  MarkedText() = default;
  MarkedText(std::string text, Mark mark) : text_(std::move(text)), marks_(text_.size(), mark) {}

  const std::string& text() const { return text_; }
  std::string_view view() const { return text_; }
  std::size_t size() const { return text_.size(); }
  bool empty() const { return text_.empty(); }
  Mark mark(std::size_t byte) const { return marks_[byte]; }
  // One mark for text made of this one as a whole, such as its JSON form: data wins.
  Mark dominant() const;

  // Marked by the filter `safe`: HTML that escapes what other text is joined to it, in an environment without automatic
  // escaping, too. Parts of it are safe as well; append() does not look at it.
  bool safe() const { return safe_; }
  MarkedText as_safe(bool safe = true) const;
  MarkedText escaped() const;  // &, <, >, " and ' as entities; itself where it is safe

  MarkedText substr(std::size_t begin, std::size_t count = std::string::npos) const;
  void append(const MarkedText& other);
  void append(const MarkedText& other, std::size_t begin, std::size_t count);  // bytes of it
  void append(std::string_view text, Mark mark);
  void truncate(std::size_t size);

  std::size_t length() const;  // in code points
  // Python's text[begin:end:step] in code points, indices already clipped and step not 0.
  MarkedText slice(std::int64_t begin, std::int64_t end, std::int64_t step) const;
  MarkedText code_point(std::size_t index) const;  // index < length()

  // Without the characters of `chars`, or white space where it is null, at either end.
  MarkedText strip(const std::string* chars, bool left, bool right) const;
  // At each `separator` (not empty), at most `most` times; most < 0 = no limit.
  std::vector<MarkedText> split(std::string_view separator, std::int64_t most) const;
  std::vector<MarkedText> split_white_space(std::int64_t most) const;
  MarkedText replace(const MarkedText& from, const MarkedText& to, std::int64_t most) const;

  enum class Case { kUpper, kLower, kTitle, kCapitalize };
  MarkedText change_case(Case how) const;

 private:
  std::string text_;
  std::string marks_;  // one per byte
  bool safe_ = false;
};

// Where `needle` is in `text` at or after `from`; npos if nowhere. Linear in the worst case, unlike string_view::find.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);

bool is_python_space(char32_t c);  // str.isspace: Unicode's white space and four separators of ASCII

}  // namespace sluice::jinja
