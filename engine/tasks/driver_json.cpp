// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/driver_json.h"

#include <nlohmann/json.hpp>

#include "base/json_limits.h"

namespace sluice {
namespace {

using nlohmann::json;

std::string text_of(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

Result<json> parse(std::string_view body, const char* what) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(body, what));
  json value = json::parse(body, nullptr, false);
  if (!value.is_object()) return invalid_argument(std::string(what) + " is no JSON object");
  return value;
}

// The string at a path of keys, or "" where there is none.
std::string string_in(const json& value, std::initializer_list<const char*> keys) {
  const json* at = &value;
  for (const char* key : keys) {
    if (!at->is_object() || !at->contains(key)) return "";
    at = &at->at(key);
  }
  return at->is_string() ? at->get<std::string>() : "";
}

}  // namespace

std::string chat_request_json(const TaskRecipe& recipe, const TaskPrompt& prompt, const std::string& model, std::uint64_t seed) {
  json messages = json::array();
  if (!recipe.system_prompt.empty()) messages.push_back({{"role", "system"}, {"content", recipe.system_prompt}});
  messages.push_back({{"role", "user"}, {"content", prompt.text}});
  return text_of({{"model", model},
                  {"messages", std::move(messages)},
                  {"temperature", recipe.sampling.temperature},
                  {"top_p", recipe.sampling.top_p},
                  {"max_tokens", recipe.sampling.max_tokens},
                  {"seed", seed},
                  {"stream", false},
                  {"user", recipe.user.name},
                  {"metadata", {{"stream", recipe.name}, {"prompt", prompt.id}, {"topic", prompt.topic}}}});
}

Result<ChatReply> parse_chat_reply(std::string_view body) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(body, "chat answer"));
  ChatReply reply;
  reply.record_id = string_in(value, {"sluice", "record_id"});
  reply.adapter = string_in(value, {"sluice", "adapter"});
  if (reply.record_id.empty()) return invalid_argument("the chat answer has no sluice.record_id");
  const json& version = value.at("sluice").value("version", json());
  if (version.is_number_integer()) reply.version = version.get<std::int64_t>();
  const auto choices = value.find("choices");
  if (choices == value.end() || !choices->is_array() || choices->empty()) return invalid_argument("the chat answer has no choice");
  reply.text = string_in(choices->front(), {"message", "content"});
  reply.finish_reason = string_in(choices->front(), {"finish_reason"});
  return reply;
}

std::string feedback_request_json(const VerdictMessage& verdict) {
  json body = {{"record_id", verdict.record_id},
               {"kind", verdict.accepted ? "accept" : "reject"},
               {"source", "persona"},
               {"labeller", verdict.labeller},
               {"key", "persona:" + verdict.record_id}};
  if (!verdict.reason.empty()) {
    body["reason"] = verdict.reason;
    body["comment"] = verdict.detail;
    body["metadata"] = {{"violations", verdict.reason}};
  }
  return text_of(body);
}

Result<std::string> parse_feedback_state(std::string_view body) {
  SLUICE_ASSIGN_OR_RETURN(const json value, parse(body, "feedback answer"));
  std::string state = string_in(value, {"state"});
  if (state.empty()) return invalid_argument("the feedback answer has no \"state\"");
  return state;
}

std::string error_text(int status, std::string_view body) {
  constexpr std::size_t kMost = 300;
  const Result<json> value = parse(body, "error answer");
  std::string message = value.ok() ? string_in(*value, {"error", "message"}) : "";
  if (message.empty()) message = std::string(body.substr(0, kMost));
  return "HTTP " + std::to_string(status) + (message.empty() ? "" : ": " + message);
}

}  // namespace sluice
