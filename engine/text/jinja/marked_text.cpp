// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/marked_text.h"

#include <string.h>
#include <utf8proc.h>

#include <algorithm>

#include "text/utf8.h"

namespace sluice::jinja {
namespace {

// Byte offsets of all code points, and the end.
std::vector<std::size_t> boundaries(std::string_view text) {
  std::vector<std::size_t> out;
  std::size_t at = 0;
  while (at < text.size()) {
    out.push_back(at);
    at += next_code_point(text.substr(at)).length;
  }
  out.push_back(at);
  return out;
}

bool is_cased(char32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL || category == UTF8PROC_CATEGORY_LT;
}

}  // namespace

bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // In windows that grow: sanitizers check all that memmem may read, each time, so that many hits would cost the square.
  for (std::size_t window = 4 * needle.size() + 64; text.size() - from >= needle.size(); window *= 2) {
    const std::size_t length = std::min(window, text.size() - from);
    const void* found = memmem(text.data() + from, length, needle.data(), needle.size());
    if (found != nullptr) return static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
    from += length - needle.size() + 1;
  }
  return std::string_view::npos;
}

Mark MarkedText::dominant() const {
  return marks_.empty() ? kFromTemplate : *std::max_element(marks_.begin(), marks_.end());
}

MarkedText MarkedText::substr(std::size_t begin, std::size_t count) const {
  MarkedText out;
  out.text_ = text_.substr(begin, count);
  out.marks_ = marks_.substr(begin, count);
  out.safe_ = safe_;
  return out;
}

MarkedText MarkedText::as_safe(bool safe) const {
  MarkedText out = *this;
  out.safe_ = safe;
  return out;
}

MarkedText MarkedText::escaped() const {
  if (safe_) return *this;
  MarkedText out;
  for (std::size_t i = 0; i < text_.size(); ++i) {
    switch (text_[i]) {
      case '&': out.append("&amp;", marks_[i]); break;
      case '<': out.append("&lt;", marks_[i]); break;
      case '>': out.append("&gt;", marks_[i]); break;
      case '"': out.append("&#34;", marks_[i]); break;
      case '\'': out.append("&#39;", marks_[i]); break;
      default: out.append(*this, i, 1);
    }
  }
  out.safe_ = true;
  return out;
}

void MarkedText::append(const MarkedText& other) {
  text_ += other.text_;
  marks_ += other.marks_;
}

void MarkedText::append(const MarkedText& other, std::size_t begin, std::size_t count) {
  text_.append(other.text_, begin, count);
  marks_.append(other.marks_, begin, count);
}

void MarkedText::append(std::string_view text, Mark mark) {
  text_ += text;
  marks_.append(text.size(), mark);
}

void MarkedText::truncate(std::size_t size) {
  text_.resize(std::min(size, text_.size()));
  marks_.resize(text_.size());
}

std::size_t MarkedText::length() const {
  return static_cast<std::size_t>(
      std::count_if(text_.begin(), text_.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; }));
}

MarkedText MarkedText::slice(std::int64_t begin, std::int64_t end, std::int64_t step) const {
  const std::vector<std::size_t> at = boundaries(text_);
  MarkedText out;
  out.safe_ = safe_;
  if (step == 1) {
    if (begin >= end) return out;
    const std::size_t from = at[static_cast<std::size_t>(begin)];
    return substr(from, at[static_cast<std::size_t>(end)] - from);
  }
  for (std::int64_t i = begin; step > 0 ? i < end : i > end; i += step) {
    const auto k = static_cast<std::size_t>(i);
    out.append(*this, at[k], at[k + 1] - at[k]);
  }
  return out;
}

MarkedText MarkedText::code_point(std::size_t index) const {
  const auto i = static_cast<std::int64_t>(index);
  return slice(i, i + 1, 1);
}

MarkedText MarkedText::strip(const std::string* chars, bool left, bool right) const {
  std::vector<char32_t> set;
  for (std::string_view rest = chars ? std::string_view(*chars) : std::string_view(); !rest.empty();) {
    const Utf8Step step = next_code_point(rest);
    set.push_back(step.code_point);
    rest.remove_prefix(step.length);
  }
  const auto goes = [&](char32_t c) {
    return chars ? std::find(set.begin(), set.end(), c) != set.end() : is_python_space(c);
  };
  std::size_t begin = 0;
  std::size_t end = text_.size();
  while (left && begin < end) {
    const Utf8Step step = next_code_point(view().substr(begin));
    if (!goes(step.code_point)) break;
    begin += step.length;
  }
  while (right && end > begin) {
    std::size_t at = end - 1;
    while (at > begin && (static_cast<unsigned char>(text_[at]) & 0xC0) == 0x80) --at;
    if (!goes(next_code_point(view().substr(at)).code_point)) break;
    end = at;
  }
  return substr(begin, end - begin);
}

std::vector<MarkedText> MarkedText::split(std::string_view separator, std::int64_t most) const {
  std::vector<MarkedText> out;
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(out.size()) < most) {
    const std::size_t end = find_text(text_, separator, begin);
    if (end == std::string::npos) break;
    out.push_back(substr(begin, end - begin));
    begin = end + separator.size();
  }
  out.push_back(substr(begin));
  return out;
}

std::vector<MarkedText> MarkedText::split_white_space(std::int64_t most) const {
  std::vector<MarkedText> out;
  std::size_t at = 0;
  const auto skip = [&](bool space) {
    while (at < text_.size()) {
      const Utf8Step step = next_code_point(view().substr(at));
      if (is_python_space(step.code_point) != space) break;
      at += step.length;
    }
  };
  for (skip(true); at < text_.size(); skip(true)) {
    const std::size_t begin = at;
    if (most >= 0 && static_cast<std::int64_t>(out.size()) == most) {
      out.push_back(substr(begin));  // with the white space at its end, as Python does
      break;
    }
    skip(false);
    out.push_back(substr(begin, at - begin));
  }
  return out;
}

MarkedText MarkedText::replace(const MarkedText& from, const MarkedText& to, std::int64_t most) const {
  MarkedText out;
  out.safe_ = safe_;
  std::size_t begin = 0;
  if (from.empty()) {  // Python puts it before every character and at the end
    const std::vector<std::size_t> at = boundaries(text_);
    for (std::size_t i = 0; i < at.size() && (most < 0 || static_cast<std::int64_t>(i) < most); ++i) {
      out.append(*this, begin, at[i] - begin);
      out.append(to);
      begin = at[i];
    }
  } else {
    for (std::int64_t done = 0; most < 0 || done < most; ++done) {
      const std::size_t end = find_text(text_, from.text_, begin);
      if (end == std::string::npos) break;
      out.append(*this, begin, end - begin);
      out.append(to);
      begin = end + from.size();
    }
  }
  out.append(*this, begin, text_.size() - begin);
  return out;
}

MarkedText MarkedText::change_case(Case how) const {
  MarkedText out;
  out.safe_ = safe_;
  bool after_letter = false;
  std::string bytes;
  for (std::size_t at = 0; at < text_.size();) {
    const Utf8Step step = next_code_point(view().substr(at));
    const auto c = static_cast<utf8proc_int32_t>(step.code_point);
    const bool upper = how == Case::kUpper || (how != Case::kLower && !after_letter);
    const bool first_of_word = upper && how != Case::kUpper;
    const auto changed = first_of_word ? utf8proc_totitle(c) : upper ? utf8proc_toupper(c) : utf8proc_tolower(c);
    bytes.clear();
    if (step.code_point == 0xDF && upper) {
      bytes = first_of_word ? "Ss" : "SS";  // the one common letter whose capital form is two
    } else {
      append_utf8(bytes, static_cast<char32_t>(changed));
    }
    out.append(bytes, marks_[at]);
    after_letter = how == Case::kTitle ? is_cased(step.code_point) : true;
    at += step.length;
  }
  return out;
}

}  // namespace sluice::jinja
