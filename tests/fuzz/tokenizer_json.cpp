// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/tokenizer_json.h"

#include <cstdlib>

#include "targets.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace sluice::fuzz {

void tokenizer_json(std::string_view input) {
  const std::size_t nul = std::min(input.find('\0'), input.size());
  const std::string text = nul < input.size() ? std::string(input.substr(nul + 1)) : "a b <s>\xC3\xA9\n";
  const auto vocabulary = vocabulary_from_json({.tokenizer_json = std::string(input.substr(0, nul))});
  if (!vocabulary.ok()) return;
  const auto tokenizer = Tokenizer::create(*vocabulary);
  if (!tokenizer.ok()) return;
  const auto ids = (*tokenizer)->encode(text, {.parse_special = true});
  if (!ids.ok()) return;
  StreamDecoder decoder(*tokenizer, false);
  std::string streamed;
  for (const std::int32_t id : *ids) {
    if (id < 0 || id >= (*tokenizer)->size()) std::abort();
    streamed += decoder.push(id);
  }
  streamed += decoder.flush();
  if (streamed != (*tokenizer)->decode(*ids, false) || !is_valid_utf8(streamed)) std::abort();
}

}  // namespace sluice::fuzz
