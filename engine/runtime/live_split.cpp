// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/live_split.h"

#include <algorithm>
#include <type_traits>
#include <variant>

#include "release/evidence.h"

namespace sluice {
namespace {

// Messages are compared whole, whichever side they are of: earlier turns are trained on as the context of later ones.
// A raw prompt may have turns written into it by its client, so there a held-out prompt counts wherever it stands.
bool asks_held_out(const HeldOutTexts& held_back, const Tokenizer& tokenizer, const CompletionRequest& r) {
  if (held_back.empty()) return false;
  if (r.messages && std::any_of(r.messages->begin(), r.messages->end(), [&](const ChatMessage& m) {
        const auto* text = std::get_if<std::string>(&m.content.v);
        return text && held_back.contain(*text);
      })) {
    return true;
  }
  const auto holds = [&](const auto& prompt) {
    if constexpr (std::is_same_v<std::decay_t<decltype(prompt)>, std::string>) return held_back.stand_in(prompt);
    else return held_back.stand_in(tokenizer.decode(prompt, false));
  };
  return (r.prompt && holds(*r.prompt)) || (r.prompt_ids && holds(*r.prompt_ids)) ||
         std::any_of(r.more_prompts.begin(), r.more_prompts.end(), [&](const auto& more) { return std::visit(holds, more); });
}

}  // namespace

Split live_split(const Recipe& recipe, const std::string& salt, const Tokenizer& tokenizer, const CompletionRequest& request) {
  if (asks_held_out(recipe.held_back, tokenizer, request)) return Split::kHeldOut;
  return recipe.task.held_out.empty() ? split_of(salt, request.group_key) : Split::kTrain;
}

}  // namespace sluice
