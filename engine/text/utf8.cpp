// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/utf8.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

namespace sluice {
namespace {

constexpr char32_t kReplacementPoint = 0xFFFD;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

// Sorts each run of non-starters by combining class, keeping the order of equals (Unicode ch. 3.11, D109).
void order_canonically(std::vector<utf8proc_int32_t>& points) {
  const auto combining_class = [](utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; };
  std::size_t begin = 0;
  while (begin < points.size()) {
    if (combining_class(points[begin]) == 0) {
      ++begin;
      continue;
    }
    std::size_t end = begin + 1;
    while (end < points.size() && combining_class(points[end]) != 0) ++end;
    std::stable_sort(points.begin() + static_cast<std::ptrdiff_t>(begin),
                     points.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

}  // namespace

void append_utf8(std::string& out, char32_t c) {
  if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF)) c = kReplacementPoint;
  utf8proc_uint8_t bytes[4];
  const auto n = utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<std::size_t>(n));
}

bool is_white_space(char32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool is_word_char(char32_t c) {
  const utf8proc_category_t category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO) || category == UTF8PROC_CATEGORY_PC;
}

std::string to_nfc(std::string_view text) {
  if (is_ascii(text)) return std::string(text);
  // utf8proc_map would do all of this, but orders marks by repeated swaps: quadratic on a long run of them.
  std::vector<utf8proc_int32_t> points;
  points.reserve(text.size());
  utf8proc_int32_t buffer[32];  // the longest canonical decomposition of one code point is four
  while (!text.empty()) {
    const Utf8Step step = next_code_point(text);
    text.remove_prefix(step.length);
    int boundary_class = 0;
    const auto n = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code_point), buffer, 32,
                                           UTF8PROC_DECOMPOSE, &boundary_class);
    points.insert(points.end(), buffer, buffer + std::max<utf8proc_ssize_t>(n, 0));
  }
  order_canonically(points);
  const auto composed = utf8proc_normalize_utf32(points.data(), static_cast<utf8proc_ssize_t>(points.size()),
                                                 static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  std::string out;
  points.resize(static_cast<std::size_t>(std::max<utf8proc_ssize_t>(composed, 0)));
  for (const utf8proc_int32_t point : points) append_utf8(out, static_cast<char32_t>(point));
  return out;
}

}  // namespace sluice
