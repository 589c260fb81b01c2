// SPDX-License-Identifier: GPL-3.0-or-later
// Conversations from JSON files, as chat templates take them. For tests only; pure functions.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

#include "text/chat_template.h"

namespace sluice {

using OrderedJson = nlohmann::ordered_json;

inline DataValue data_from_json(const OrderedJson& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) {
    DataValue::List list;
    for (const OrderedJson& item : json) list.push_back(data_from_json(item));
    return list;
  }
  if (json.is_object()) {
    DataValue::Dict dict;
    for (const auto& [key, item] : json.items()) dict.emplace_back(key, data_from_json(item));
    return dict;
  }
  return {};
}

inline ChatMessage message_from_json(const OrderedJson& json) {
  ChatMessage message;
  for (const auto& [key, item] : json.items()) {
    if (key == "role") {
      message.role = item.get<std::string>();
    } else if (key == "content") {
      message.content = data_from_json(item);
    } else if (key == "name") {
      message.name = item.get<std::string>();
    } else if (key == "tool_call_id") {
      message.tool_call_id = item.get<std::string>();
    } else if (key == "tool_calls") {
      message.tool_calls = data_from_json(item);
    } else {
      message.extra.emplace_back(key, data_from_json(item));
    }
  }
  return message;
}

// {"messages", "add_generation_prompt" (true where it is missing), "tools", "documents", "kwargs"}, rendered at that time.
inline Result<std::vector<Segment>> render_json(const ChatTemplate& chat_template, const OrderedJson& conversation, std::int64_t now_unix) {
  std::vector<ChatMessage> messages;
  for (const OrderedJson& message : conversation["messages"]) messages.push_back(message_from_json(message));
  RenderOptions options;
  options.add_generation_prompt = conversation.value("add_generation_prompt", true);
  if (conversation.contains("tools")) options.tools = data_from_json(conversation["tools"]);
  if (conversation.contains("documents")) options.documents = data_from_json(conversation["documents"]);
  if (conversation.contains("kwargs")) options.kwargs = std::get<DataValue::Dict>(data_from_json(conversation["kwargs"]).v);
  options.now_unix = now_unix;
  return chat_template.render(messages, options);
}

}  // namespace sluice
