// SPDX-License-Identifier: GPL-3.0-or-later
// What headers say about a request's place: conversation and turn (X-Session-Id, X-Turn-Type, X-Session-Done), stream and
// tags (X-Sluice-Stream; x-reef-scenario, x-reef-tag-*) (serving.md §2.3). Pure function.
#pragma once

#include <optional>
#include <string_view>

#include "chat/completion.h"
#include "http/http_types.h"

namespace sluice {

// Fills conversation, turn, conversation_done, stream and tags_json of `r`, which holds what the body said of the first
// three; headers win. With a conversation the turn is "main" unless it is said to be "side".
std::optional<ApiError> read_client_context(const HttpRequest& request, CompletionRequest* r);

// "1", "true", "yes" or "on", in any case.
bool means_yes(std::string_view text);

}  // namespace sluice
