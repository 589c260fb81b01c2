// SPDX-License-Identifier: GPL-3.0-or-later
// Fill in the middle (serving.md 1.7): which markers a model has, and prompts that put the code before and behind the
// cursor around them. Pure functions and values, any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer.h"

namespace sluice {

// prompt = open + prefix + between + suffix + close; the model then writes what stands between prefix and suffix.
struct FimFormat {
  bool bos = false;                   // the first id of `open` is bos, which a client's own text need not hold
  std::vector<std::int32_t> open;     // bos (where the family writes it) and the marker before the prefix
  std::vector<std::int32_t> between;  // the marker before the suffix
  std::vector<std::int32_t> close;    // the marker before the answer
  std::vector<std::int32_t> stop_ids;  // ids that end the answer besides the tokenizer's own, ascending

  std::size_t marker_count() const { return open.size() + between.size() + close.size(); }
};

// From the ids that the model file names (Vocabulary::fim), else from the known families' marker texts in the vocabulary.
// kInvalidArgument, to be answered with the code fim_not_supported, where there are none.
Result<FimFormat> find_fim_format(const Tokenizer& tokenizer);

// From a recipe's fim.markers: texts before the prefix, the suffix and the answer, tokenised with special tokens parsed.
// The texts' own ids become no stop ids unless they are one special token each. kInvalidArgument for an empty text.
Result<FimFormat> fim_format_of(const Tokenizer& tokenizer, const std::array<std::string, 3>& markers);

struct FimPrompt {
  std::vector<std::int32_t> ids;
  std::size_t prefix_cut = 0;  // tokens left out at the begin of the prefix
  std::size_t suffix_cut = 0;  // tokens left out at the end of the suffix
};

// The prompt, at most max_tokens long: what is too long is cut from the left of the prefix and from the right of the
// suffix, 3/4 of the room to the prefix and 1/4 to the suffix, spare room to the other side. The texts are tokenised
// without special parsing. kInvalidArgument where the markers alone do not fit.
Result<FimPrompt> make_fim_prompt(const Tokenizer& tokenizer, const FimFormat& format, std::string_view prefix,
                                  std::string_view suffix, std::size_t max_tokens);

// Whether an ordinary prompt holds the three markers in order (an editor wrote the format itself). Such a prompt is never
// cut.
bool is_fim_formatted(const FimFormat& format, std::span<const std::int32_t> ids);

}  // namespace sluice
