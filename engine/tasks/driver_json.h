// SPDX-License-Identifier: GPL-3.0-or-later
// The JSON the driver sends and reads as a client of our HTTP server (serving.md §1, §2). Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tasks/recipe.h"

namespace sluice {

struct ChatReply {
  std::string record_id, adapter, text, finish_reason;
  std::int64_t version = 0;
};

std::string chat_request_json(const TaskRecipe& recipe, const TaskPrompt& prompt, const std::string& model, std::uint64_t seed);
Result<ChatReply> parse_chat_reply(std::string_view body);

struct VerdictMessage {
  std::string record_id;
  bool accepted = false;
  std::string labeller;  // the persona
  std::string reason, detail;
};
std::string feedback_request_json(const VerdictMessage& verdict);
Result<std::string> parse_feedback_state(std::string_view body);

// The server's own words for an error status, else the start of the body.
std::string error_text(int status, std::string_view body);

}  // namespace sluice
