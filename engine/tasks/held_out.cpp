// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/held_out.h"

namespace sluice {
namespace {

// The normal form: words and single marks, ASCII letters small, one space behind each; and where each begins.
struct NormalForm {
  std::string text;
  std::vector<std::size_t> starts;

  std::string_view words(std::size_t first, std::size_t count) const {
    const std::size_t end = first + count < starts.size() ? starts[first + count] : text.size();
    return std::string_view(text).substr(starts[first], end - starts[first]);
  }
};

bool in_word(char c) {
  // Bytes of longer characters count as letters.
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || static_cast<unsigned char>(c) >= 0x80;
}

NormalForm normal_form(std::string_view text) {
  NormalForm out;
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      ++at;
      continue;
    }
    std::size_t end = at + 1;
    if (in_word(c)) {
      while (end < text.size() && in_word(text[end])) ++end;
    }
    out.starts.push_back(out.text.size());
    for (; at < end; ++at) out.text += text[at] >= 'A' && text[at] <= 'Z' ? static_cast<char>(text[at] + ('a' - 'A')) : text[at];
    out.text += ' ';
  }
  return out;
}

}  // namespace

HeldOutTexts::HeldOutTexts(std::initializer_list<const std::vector<TaskPrompt>*> lists) {
  for (const std::vector<TaskPrompt>* list : lists) {
    for (const TaskPrompt& prompt : *list) {
      const NormalForm form = normal_form(prompt.text);
      if (form.starts.empty()) continue;
      texts_.insert(form.text);
      lengths_[std::string(form.words(0, 1))].insert(form.starts.size());
    }
  }
}

bool HeldOutTexts::contain(std::string_view text) const { return !empty() && texts_.contains(normal_form(text).text); }

bool HeldOutTexts::stand_in(std::string_view text) const {
  if (empty()) return false;
  const NormalForm form = normal_form(text);
  for (std::size_t first = 0; first < form.starts.size(); ++first) {
    const auto begins = lengths_.find(form.words(first, 1));
    if (begins == lengths_.end()) continue;
    for (const std::size_t count : begins->second) {
      if (first + count > form.starts.size()) break;
      if (texts_.contains(form.words(first, count))) return true;
    }
  }
  return false;
}

}  // namespace sluice
