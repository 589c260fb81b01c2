// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/token_offsets.h"

#include <algorithm>
#include <utility>

namespace sluice {
namespace {

// How far behind its due place a token's text is looked for.
constexpr std::size_t kSlack = 16;

// Whether `piece` stands at `at` in `text`.
bool stands(std::string_view text, std::size_t at, std::string_view piece) {
  return text.compare(at, piece.size(), piece) == 0;
}

// The begin and the length of a token's text from `due` on.
std::pair<std::size_t, std::size_t> place(std::string_view text, std::size_t due, std::string_view piece, bool special) {
  if (stands(text, due, piece)) return {due, piece.size()};
  if (special) return {due, 0};
  if (piece.starts_with(' ') && stands(text, due, piece.substr(1))) return {due, piece.size() - 1};
  const std::size_t found = text.substr(0, std::min(text.size(), due + kSlack + piece.size())).find(piece, due);
  return found == std::string_view::npos ? std::pair(due, std::size_t{0}) : std::pair(found, piece.size());
}

}  // namespace

std::vector<std::size_t> token_offsets(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, std::string_view text) {
  std::vector<std::size_t> offsets;
  std::size_t due = 0, counted = 0, characters = 0;  // characters begun in the first `counted` bytes
  for (const std::int32_t id : ids) {
    const auto [begin, length] = place(text, due, tokenizer.piece(id), tokenizer.is_special(id));
    for (; counted < begin; ++counted) characters += (static_cast<unsigned char>(text[counted]) & 0xC0) != 0x80;
    offsets.push_back(characters);
    due = begin + length;
  }
  return offsets;
}

}  // namespace sluice
