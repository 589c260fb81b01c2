// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/utf8.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr char32_t kReplacementPoint = 0xFFFD;

}  // namespace

Utf8Step next_code_point(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {1, lead, true, false};
  if (lead < 0xC2 || lead > 0xF4) return {1, kReplacementPoint, false, false};
  const std::size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range excludes overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code_point = lead & (length == 2 ? 0x1Fu : length == 3 ? 0x0Fu : 0x07u);
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size()) return {i, kReplacementPoint, false, true};
    const unsigned char b = byte(i);
    if (b < (i == 1 ? low : 0x80) || b > (i == 1 ? high : 0xBF)) return {i, kReplacementPoint, false, false};
    code_point = (code_point << 6) | (b & 0x3Fu);
  }
  return {length, code_point, true, false};
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    const Utf8Step step = next_code_point(text);
    if (!step.valid) return false;
    text.remove_prefix(step.length);
  }
  return true;
}

std::size_t count_code_points(std::string_view valid_utf8) {
  return static_cast<std::size_t>(
      std::count_if(valid_utf8.begin(), valid_utf8.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string to_valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Utf8Step step = next_code_point(text);
    out.append(step.valid ? text.substr(0, step.length) : kReplacement);
    text.remove_prefix(step.length);
  }
  return out;
}

void drain_valid_utf8(std::string& pending, std::string& out) {
  std::string_view rest = pending;
  while (!rest.empty()) {
    const Utf8Step step = next_code_point(rest);
    if (step.incomplete) break;
    out.append(step.valid ? rest.substr(0, step.length) : kReplacement);
    rest.remove_prefix(step.length);
  }
  pending.erase(0, pending.size() - rest.size());
}

}  // namespace sluice
