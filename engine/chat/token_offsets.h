// SPDX-License-Identifier: GPL-3.0-or-later
// Where the tokens of a prompt stand in its text. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace sluice {

// The number of characters of `text` before each token, when `text` is what `ids` were made of or decoded to. A token
// without text of its own (a BOS, the space that SentencePiece puts in front) begins where the next one does; one that begins
// inside a character counts that character. Where normalisation changed the text, offsets near it may be some characters off.
std::vector<std::size_t> token_offsets(const Tokenizer& tokenizer, std::span<const std::int32_t> ids, std::string_view text);

}  // namespace sluice
