// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/added_tokens.h"

#include <algorithm>

#include "text/utf8.h"

namespace sluice {
namespace {

// The begin of the code point that ends at `end` (> 0) of valid UTF-8.
std::size_t previous_begin(std::string_view text, std::size_t end) {
  std::size_t at = end - 1;
  while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool word_ends_at(std::string_view text, std::size_t at) {
  return at > 0 && is_word_char(next_code_point(text.substr(previous_begin(text, at))).code_point);
}

bool word_begins_at(std::string_view text, std::size_t at) {
  return at < text.size() && is_word_char(next_code_point(text.substr(at)).code_point);
}

std::size_t skip_space_left(std::string_view text, std::size_t at, std::size_t least) {
  while (at > least) {
    const std::size_t begin = previous_begin(text, at);
    if (begin < least || !is_white_space(next_code_point(text.substr(begin)).code_point)) break;
    at = begin;
  }
  return at;
}

std::size_t skip_space_right(std::string_view text, std::size_t at, std::size_t most) {
  while (at < most) {
    const Utf8Step step = next_code_point(text.substr(at));
    if (!is_white_space(step.code_point) || at + step.length > most) break;
    at += step.length;
  }
  return at;
}

}  // namespace

void AddedTokens::add(std::string_view text, const AddedTokenFlags& flags, bool control) {
  if (text.empty() || text.size() > kMaxLength) return;
  std::uint32_t node = 0;
  for (const char c : text) {
    const std::uint64_t edge = (static_cast<std::uint64_t>(node) << 8) | static_cast<unsigned char>(c);
    const auto [it, fresh] = edges_.try_emplace(edge, static_cast<std::uint32_t>(token_at_.size()));
    if (fresh) token_at_.push_back(-1);
    node = it->second;
  }
  token_at_[node] = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back({flags, control});
  starts_[static_cast<unsigned char>(text[0])] = true;
}

AddedTokens::Hit AddedTokens::longest_at(std::string_view text, std::size_t at, std::size_t control_end) const {
  Hit best;
  std::uint32_t node = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const auto it = edges_.find((static_cast<std::uint64_t>(node) << 8) | static_cast<unsigned char>(text[i]));
    if (it == edges_.end()) break;
    node = it->second;
    if (token_at_[node] < 0) continue;
    const Token& token = tokens_[static_cast<std::size_t>(token_at_[node])];
    if (!token.control || i + 1 <= control_end) best = {i + 1 - at, &token};
  }
  return best;
}

std::vector<AddedMatch> AddedTokens::find(std::string_view text, const std::vector<ByteRange>& control_allowed) const {
  std::vector<AddedMatch> matches;
  if (tokens_.empty()) return matches;
  std::size_t range = 0;
  std::size_t taken = 0;  // the end of the last match
  for (std::size_t at = 0; at < text.size();) {
    if (!starts_[static_cast<unsigned char>(text[at])]) {
      ++at;
      continue;
    }
    while (range < control_allowed.size() && control_allowed[range].end <= at) ++range;
    const bool inside = range < control_allowed.size() && control_allowed[range].begin <= at;
    const Hit hit = longest_at(text, at, inside ? control_allowed[range].end : at);
    if (hit.token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = at;
    std::size_t end = at + hit.length;
    const AddedTokenFlags& flags = hit.token->flags;
    at = end;
    if (flags.single_word && (word_ends_at(text, begin) || word_begins_at(text, end))) continue;
    const std::size_t least = hit.token->control ? std::max(taken, control_allowed[range].begin) : taken;
    const std::size_t most = hit.token->control ? control_allowed[range].end : text.size();
    if (flags.lstrip) begin = skip_space_left(text, begin, least);
    if (flags.rstrip) end = skip_space_right(text, end, most);
    at = std::max(at, end);
    taken = end;
    matches.push_back({{begin, end}, flags.id});
  }
  return matches;
}

}  // namespace sluice
