// SPDX-License-Identifier: GPL-3.0-or-later
// The chat part of a request body (serving.md §1.3): messages, tools, arguments of the template. Pure function, any thread.
#pragma once

#include <optional>

#include "chat/completion.h"
#include "http/http_types.h"
#include "text/data_value.h"

namespace sluice {

// Fills messages, prompt_json, render.tools and render.kwargs. `calls_wanted`: <tool_call> blocks of the answer are calls.
// `chat_template` is null where the model has none (chat then fails later, with its reason).
std::optional<ApiError> read_chat(const DataValue& body, const ChatTemplate* chat_template, CompletionRequest* request,
                                  bool* calls_wanted);

}  // namespace sluice
