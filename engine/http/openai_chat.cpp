// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/openai_chat.h"

#include <cctype>

#include "chat/json_text.h"
#include "http/fields.h"
#include "http/ordered_json.h"

namespace sluice {
namespace {

constexpr const char* kUnsupported = "unsupported_parameter";
using Error = std::optional<ApiError>;

const std::string* text_of(const DataValue* value) { return value == nullptr ? nullptr : std::get_if<std::string>(&value->v); }
const DataValue::List* list_of(const DataValue* value) {
  return value == nullptr ? nullptr : std::get_if<DataValue::List>(&value->v);
}
bool is_object(const DataValue& value) { return std::holds_alternative<DataValue::Dict>(value.v); }

// content: string, null, or text parts, which are joined.
Error read_content(const DataValue* content, const std::string& where, DataValue* out) {
  if (content == nullptr) return std::nullopt;
  if (const std::string* text = text_of(content)) {
    *out = DataValue(*text);
    return std::nullopt;
  }
  const DataValue::List* parts = list_of(content);
  if (parts == nullptr) return field_error(where, "must be a string, null, or a list of parts");
  std::string joined;
  for (const DataValue& part : *parts) {
    const std::string* type = text_of(member(part, "type"));
    const std::string* text = text_of(member(part, "text"));
    if (type == nullptr || *type != "text" || text == nullptr) {
      return field_error(where, "may only hold parts of type text: this model reads no other kind");
    }
    joined += *text;
  }
  *out = DataValue(std::move(joined));
  return std::nullopt;
}

Error read_text(const DataValue& message, const char* name, const std::string& where, std::string* out) {
  const DataValue* value = member(message, name);
  if (value == nullptr) return std::nullopt;
  const std::string* text = text_of(value);
  if (text == nullptr) return field_error(where + name, "must be a string");
  *out = *text;
  return std::nullopt;
}

// Clients send arguments as JSON text; templates print them as the object it stands for.
void open_arguments(DataValue& call) {
  auto* dict = std::get_if<DataValue::Dict>(&call.v);
  for (auto& [key, value] : *dict) {
    if (key == "function" && is_object(value)) open_arguments(value);
    if (key != "arguments") continue;
    const std::string* text = text_of(&value);
    if (text == nullptr || !check_json_limits(*text, "arguments").ok()) continue;
    std::optional<DataValue> object = data_of_json(*text);
    if (object && is_object(*object)) value = std::move(*object);
  }
}

Error read_calls(const DataValue* calls, const std::string& where, DataValue* out) {
  if (calls == nullptr) return std::nullopt;
  const DataValue::List* list = list_of(calls);
  if (list == nullptr) return field_error(where, "must be a list of tool calls");
  DataValue::List opened;
  for (const DataValue& call : *list) {
    const DataValue* function = member(call, "function");
    if (function == nullptr || text_of(member(*function, "name")) == nullptr) {
      return field_error(where, "must hold objects {id, type, function: {name, arguments}}");
    }
    opened.push_back(call);
    open_arguments(opened.back());
  }
  if (!opened.empty()) *out = DataValue(std::move(opened));
  return std::nullopt;
}

Error read_message(const DataValue& item, const std::string& where, ChatMessage* out) {
  if (!is_object(item)) return field_error(where, "must be an object");
  const std::string dot = where + ".";
  if (auto error = read_text(item, "role", dot, &out->role)) return error;
  if (out->role.empty()) return field_error(dot + "role", "must be a role such as user");
  if (auto error = read_content(member(item, "content"), dot + "content", &out->content)) return error;
  if (auto error = read_text(item, "name", dot, &out->name)) return error;
  if (auto error = read_text(item, "tool_call_id", dot, &out->tool_call_id)) return error;
  if (auto error = read_calls(member(item, "tool_calls"), dot + "tool_calls", &out->tool_calls)) return error;
  if (const DataValue* reasoning = member(item, "reasoning_content")) out->extra.emplace_back("reasoning_content", *reasoning);
  return std::nullopt;
}

Error read_template_arguments(const DataValue::Dict& arguments, RenderOptions* render) {
  for (const auto& [name, value] : arguments) {
    if (name == "documents") {
      if (!value.is_null() && list_of(&value) == nullptr) return field_error("chat_template_kwargs.documents", "must be a list");
      render->documents = value;
      continue;
    }
    if (ChatTemplate::is_taken(name)) {
      return field_error("chat_template_kwargs", "can't hold \"" + name + "\": the template has that name from elsewhere");
    }
    render->kwargs.emplace_back(name, value);
  }
  return std::nullopt;
}

// Does the template look at a variable of this name?
bool mentions(const std::string& source, std::string_view name) {
  const auto is_word = [&](std::size_t at) {
    return at < source.size() && (std::isalnum(static_cast<unsigned char>(source[at])) || source[at] == '_');
  };
  for (std::size_t at = source.find(name); at != std::string::npos; at = source.find(name, at + 1)) {
    if ((at == 0 || !is_word(at - 1)) && !is_word(at + name.size())) return true;
  }
  return false;
}

Error read_tools(const DataValue& body, const ChatTemplate* chat_template, CompletionRequest* request, bool* calls_wanted) {
  for (const char* name : {"functions", "function_call"}) {
    if (member(body, name) != nullptr) return field_error(name, "is not supported: send tools and tool_choice", kUnsupported);
  }
  const DataValue* choice = member(body, "tool_choice");
  const std::string* mode = text_of(choice);
  if (choice != nullptr && (mode == nullptr || (*mode != "auto" && *mode != "none"))) {
    return field_error("tool_choice", "may only be auto or none", kUnsupported);
  }
  const DataValue* tools = member(body, "tools");
  if (tools == nullptr) return std::nullopt;
  const DataValue::List* list = list_of(tools);
  if (list == nullptr) return field_error("tools", "must be a list of tools");
  if (list->empty()) return std::nullopt;
  for (const DataValue& tool : *list) {
    const std::string* type = text_of(member(tool, "type"));
    const DataValue* function = member(tool, "function");
    if (type == nullptr || *type != "function" || function == nullptr || text_of(member(*function, "name")) == nullptr) {
      return field_error("tools", "must hold objects {type: \"function\", function: {name, ...}}");
    }
  }
  if (chat_template != nullptr && !mentions(chat_template->source(), "tools")) {
    return field_error("tools", "can't be used: this model's chat template has no place for tools", kUnsupported);
  }
  if (mode != nullptr && *mode == "none") return std::nullopt;
  request->render.tools = *tools;
  *calls_wanted = true;
  return std::nullopt;
}

}  // namespace

std::optional<ApiError> read_chat(const DataValue& body, const ChatTemplate* chat_template, CompletionRequest* request,
                                  bool* calls_wanted) {
  const DataValue* messages = member(body, "messages");
  const DataValue::List* list = list_of(messages);
  if (list == nullptr || list->empty()) return field_error("messages", "must be a list of at least one message");
  request->messages.emplace();
  for (std::size_t i = 0; i < list->size(); ++i) {
    ChatMessage message;
    if (auto error = read_message((*list)[i], "messages[" + std::to_string(i) + "]", &message)) return error;
    request->messages->push_back(std::move(message));
  }
  append_json(request->prompt_json, *messages);
  if (const DataValue* kwargs = member(body, "chat_template_kwargs")) {
    if (!is_object(*kwargs)) return field_error("chat_template_kwargs", "must be an object");
    if (auto error = read_template_arguments(std::get<DataValue::Dict>(kwargs->v), &request->render)) return error;
  }
  return read_tools(body, chat_template, request, calls_wanted);
}

}  // namespace sluice
