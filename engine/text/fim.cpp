// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/fim.h"

#include <algorithm>
#include <optional>
#include <set>

namespace sluice {
namespace {

struct Family {
  std::array<std::string_view, 3> markers;  // before the prefix, the suffix, the answer
  bool bos;                                 // a bos stands in front
  std::vector<std::string_view> stops;      // besides the markers
};

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {{"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"},  // Qwen
       false,
       {"<|endoftext|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>"}},
      {{"<fim_prefix>", "<fim_suffix>", "<fim_middle>"}, false, {"<|endoftext|>", "<file_sep>"}},  // StarCoder
      {{"▁<PRE>", "▁<SUF>", "▁<MID>"}, true, {"▁<EOT>"}},                                          // CodeLlama
      {{"<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>"}, true, {}},                              // DeepSeek-Coder
  };
  return table;
}

// The id of a token by its text as vocabularies show it; SentencePiece writes spaces as U+2581.
std::optional<std::int32_t> id_of(const Tokenizer& tokenizer, std::string_view text) {
  if (const auto id = tokenizer.special_id(text)) return id;
  if (const auto id = tokenizer.token_id(text)) return id;
  constexpr std::string_view kSpace = "▁";
  if (text.substr(0, kSpace.size()) != kSpace) return std::nullopt;
  return tokenizer.token_id(" " + std::string(text.substr(kSpace.size())));
}

using Ids = std::array<std::int32_t, 3>;

std::optional<Ids> ids_of(const Tokenizer& tokenizer, const Family& family) {
  Ids ids{};
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto id = id_of(tokenizer, family.markers[i]);
    if (!id) return std::nullopt;
    ids[i] = *id;
  }
  return ids;
}

// `family` is null for markers of none that we know.
FimFormat format_of(const Tokenizer& tokenizer, const Ids& ids, const Family* family) {
  FimFormat format;
  const bool bos = family ? family->bos : tokenizer.add_bos();
  format.bos = bos && tokenizer.bos();
  if (format.bos) format.open.push_back(*tokenizer.bos());
  format.open.push_back(ids[0]);
  format.between = {ids[1]};
  format.close = {ids[2]};
  std::set<std::int32_t> stops(ids.begin(), ids.end());
  if (family != nullptr) {
    for (const std::string_view text : family->stops) {
      if (const auto id = id_of(tokenizer, text)) stops.insert(*id);
    }
  }
  const FimIds& named = tokenizer.fim();
  for (const auto& id : {named.pad, named.repo, named.file, tokenizer.eos()}) {
    if (id) stops.insert(*id);
  }
  format.stop_ids.assign(stops.begin(), stops.end());
  return format;
}

}  // namespace

Result<FimFormat> find_fim_format(const Tokenizer& tokenizer) {
  const FimIds& named = tokenizer.fim();
  std::optional<Ids> given;
  if (named.prefix && named.suffix && named.middle) given = Ids{*named.prefix, *named.suffix, *named.middle};
  for (const Family& family : families()) {
    const std::optional<Ids> ids = ids_of(tokenizer, family);
    if (ids && (!given || *given == *ids)) return format_of(tokenizer, *ids, &family);
  }
  if (given) return format_of(tokenizer, *given, nullptr);
  return invalid_argument(
      "this model has no fill-in-the-middle tokens: send the code as a prompt without suffix, use a code model that has "
      "them, or set fim.markers in the recipe");
}

Result<FimFormat> fim_format_of(const Tokenizer& tokenizer, const std::array<std::string, 3>& markers) {
  FimFormat format;
  format.bos = tokenizer.add_bos();
  if (format.bos) format.open.push_back(*tokenizer.bos());
  std::set<std::int32_t> stops;
  if (tokenizer.eos()) stops.insert(*tokenizer.eos());
  std::vector<std::int32_t>* const parts[] = {&format.open, &format.between, &format.close};
  for (std::size_t i = 0; i < markers.size(); ++i) {
    if (markers[i].empty()) return invalid_argument("fim.markers must hold three texts, and one is empty");
    SLUICE_ASSIGN_OR_RETURN(const std::vector<std::int32_t> ids,
                            tokenizer.encode(markers[i], {.parse_special = true, .continues = true}));
    if (ids.size() == 1 && tokenizer.is_special(ids[0])) stops.insert(ids[0]);
    parts[i]->insert(parts[i]->end(), ids.begin(), ids.end());
  }
  format.stop_ids.assign(stops.begin(), stops.end());
  return format;
}

Result<FimPrompt> make_fim_prompt(const Tokenizer& tokenizer, const FimFormat& format, std::string_view prefix,
                                  std::string_view suffix, std::size_t max_tokens) {
  if (max_tokens < format.marker_count()) {
    return invalid_argument("no room for the fill-in-the-middle markers: " + std::to_string(max_tokens) +
                            " tokens are left, the markers take " + std::to_string(format.marker_count()));
  }
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::int32_t> before, tokenizer.encode(prefix));
  SLUICE_ASSIGN_OR_RETURN(const std::vector<std::int32_t> behind, tokenizer.encode(suffix, {.continues = true}));
  const std::size_t room = max_tokens - format.marker_count();
  std::size_t keep_before = std::min(before.size(), room - room / 4);
  const std::size_t keep_behind = std::min(behind.size(), room - keep_before);
  keep_before = std::min(before.size(), room - keep_behind);
  FimPrompt prompt;
  prompt.prefix_cut = before.size() - keep_before;
  prompt.suffix_cut = behind.size() - keep_behind;
  const auto add = [&](auto begin, auto end) { prompt.ids.insert(prompt.ids.end(), begin, end); };
  prompt.ids.reserve(format.marker_count() + keep_before + keep_behind);
  add(format.open.begin(), format.open.end());
  add(before.end() - static_cast<std::ptrdiff_t>(keep_before), before.end());
  add(format.between.begin(), format.between.end());
  add(behind.begin(), behind.begin() + static_cast<std::ptrdiff_t>(keep_behind));
  add(format.close.begin(), format.close.end());
  return prompt;
}

bool is_fim_formatted(const FimFormat& format, std::span<const std::int32_t> ids) {
  auto at = ids.begin();
  for (const auto* part : {&format.open, &format.between, &format.close}) {
    const auto begin = part->begin() + (part == &format.open && format.bos ? 1 : 0);
    at = std::search(at, ids.end(), begin, part->end());
    if (at == ids.end()) return false;
    at += part->end() - begin;
  }
  return true;
}

}  // namespace sluice
