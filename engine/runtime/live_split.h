// SPDX-License-Identifier: GPL-3.0-or-later
// On which side of the split a live request stands (gate.md §2). Thread-safe: only reads.
#pragma once

#include <string>

#include "chat/completion.h"
#include "runtime/recipe.h"
#include "text/tokenizer.h"

namespace sluice {

// Held out: what asks, or has asked earlier in its chat, one of the recipe's held-out or probe prompts. Else, where the
// recipe holds out no prompts of its own, the share of groups that `salt` picks by the request's group_key.
Split live_split(const Recipe& recipe, const std::string& salt, const Tokenizer& tokenizer, const CompletionRequest& request);

}  // namespace sluice
