// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/chat_template.h"

#include <algorithm>
#include <array>

#include "text/jinja.h"

namespace sluice {
namespace {

using jinja::MarkedText;
using jinja::Value;
using Pairs = std::vector<std::pair<Value, Value>>;

constexpr const char* kChatMl =
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + (message['content'] or '') + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

constexpr std::array<std::string_view, 6> kReserved = {"messages", "tools",     "documents", "add_generation_prompt",
                                                  "bos_token", "eos_token"};

Result<Value> message_value(const ChatMessage& message, jinja::Mark content_mark) {
  Pairs items;
  const auto add = [&](const char* key, Value value) { items.emplace_back(Value::literal(key), std::move(value)); };
  for (const auto& [key, data] : message.extra) {
    SLUICE_ASSIGN_OR_RETURN(Value value, jinja::from_data(data, jinja::kFromData));
    items.emplace_back(MarkedText(key, jinja::kFromData), std::move(value));
  }
  SLUICE_ASSIGN_OR_RETURN(Value role, jinja::from_data(message.role, jinja::kFromData));
  add("role", std::move(role));
  SLUICE_ASSIGN_OR_RETURN(Value content, jinja::from_data(message.content, content_mark));
  add("content", std::move(content));
  for (const auto& [key, text] : {std::pair("name", &message.name), std::pair("tool_call_id", &message.tool_call_id)}) {
    if (text->empty()) continue;
    SLUICE_ASSIGN_OR_RETURN(Value value, jinja::from_data(*text, jinja::kFromData));
    add(key, std::move(value));
  }
  if (!message.tool_calls.is_null()) {
    SLUICE_ASSIGN_OR_RETURN(Value calls, jinja::from_data(message.tool_calls, jinja::kFromData));
    add("tool_calls", std::move(calls));
  }
  return jinja::make_dict(std::move(items));
}

bool has_text(const DataValue& content) {
  if (const auto* text = std::get_if<std::string>(&content.v)) return !text->empty();
  const auto* parts = std::get_if<DataValue::List>(&content.v);
  return parts != nullptr && !parts->empty();
}

// The prompt ends with the last message's text: what the template writes behind it goes.
Status cut_behind_last_message(MarkedText& text) {
  std::size_t end = text.size();
  while (end > 0 && text.mark(end - 1) != jinja::kFromLastMessage) --end;
  if (end == 0) {
    return invalid_argument("the last message can't be continued: the chat template does not write its text");
  }
  text.truncate(end);
  return {};
}

std::vector<Segment> to_segments(const MarkedText& text) {
  std::vector<Segment> segments;
  for (std::size_t begin = 0; begin < text.size();) {
    const bool own = text.mark(begin) == jinja::kFromTemplate;
    std::size_t end = begin + 1;
    while (end < text.size() && (text.mark(end) == jinja::kFromTemplate) == own) ++end;
    segments.push_back({text.text().substr(begin, end - begin), own});
    begin = end;
  }
  return segments;
}

}  // namespace

struct ChatTemplate::Impl {
  std::string source;
  std::string bos_text;
  std::string eos_text;
  std::unique_ptr<const jinja::Template> parsed;

  Result<MarkedText> render(const std::vector<ChatMessage>& messages, bool generation_prompt, bool mark_last,
                            const RenderOptions& options) const;
};

Result<MarkedText> ChatTemplate::Impl::render(const std::vector<ChatMessage>& messages, bool generation_prompt,
                                              bool mark_last, const RenderOptions& options) const {
  std::vector<Value> list;
  for (const ChatMessage& message : messages) {
    const bool last = mark_last && &message == &messages.back();
    SLUICE_ASSIGN_OR_RETURN(Value value, message_value(message, last ? jinja::kFromLastMessage : jinja::kFromData));
    list.push_back(std::move(value));
  }
  std::vector<std::pair<std::string, Value>> globals;
  SLUICE_ASSIGN_OR_RETURN(Value all, jinja::make_list(std::move(list)));
  globals.emplace_back("messages", std::move(all));
  for (const auto& [name, data] : {std::pair("tools", &options.tools), std::pair("documents", &options.documents)}) {
    SLUICE_ASSIGN_OR_RETURN(Value value, jinja::from_data(*data, jinja::kFromData));
    globals.emplace_back(name, std::move(value));
  }
  globals.emplace_back("add_generation_prompt", Value(generation_prompt));
  globals.emplace_back("bos_token", Value::literal(bos_text));
  globals.emplace_back("eos_token", Value::literal(eos_text));
  for (const auto& [name, data] : options.kwargs) {
    if (is_taken(name)) return invalid_argument("the template argument \"" + name + "\" can't be set: the name is taken");
    SLUICE_ASSIGN_OR_RETURN(Value value, jinja::from_data(data, jinja::kFromData));
    globals.emplace_back(name, std::move(value));
  }
  jinja::RenderLimits limits;
  limits.now_unix = options.now_unix;
  return parsed->render(std::move(globals), limits);
}

ChatTemplate::ChatTemplate(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
ChatTemplate::~ChatTemplate() = default;

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::create(std::string source, std::string bos_text,
                                                                 std::string eos_text) {
  auto impl = std::make_unique<Impl>();
  SLUICE_ASSIGN_OR_RETURN(impl->parsed, jinja::Template::parse(source));
  impl->source = std::move(source);
  impl->bos_text = std::move(bos_text);
  impl->eos_text = std::move(eos_text);
  return std::shared_ptr<const ChatTemplate>(new ChatTemplate(std::move(impl)));
}

std::shared_ptr<const ChatTemplate> ChatTemplate::chatml() {
  auto made = create(kChatMl, "<|im_start|>", "<|im_end|>");
  return std::move(made).value();  // our own constant: that it parses is tested
}

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::for_model(const Vocabulary& vocabulary,
                                                                    const Tokenizer& tokenizer) {
  if (!vocabulary.chat_template.empty()) {
    return create(vocabulary.chat_template, tokenizer.bos_text(), tokenizer.eos_text());
  }
  if (tokenizer.special_id("<|im_start|>") && tokenizer.special_id("<|im_end|>")) return chatml();
  return invalid_argument("the model file holds no chat template: use /v1/completions, or a file made for chat");
}

Result<std::vector<Segment>> ChatTemplate::render(const std::vector<ChatMessage>& messages,
                                                  const RenderOptions& options) const {
  if (!options.continue_final_message) {
    SLUICE_ASSIGN_OR_RETURN(const MarkedText text, impl_->render(messages, options.add_generation_prompt, false, options));
    return to_segments(text);
  }
  if (messages.empty()) return invalid_argument("there is no last message to continue");
  if (!has_text(messages.back().content) && messages.back().role == "assistant") {
    // Nothing is written yet: the turn is only opened.
    const std::vector<ChatMessage> before(messages.begin(), messages.end() - 1);
    SLUICE_ASSIGN_OR_RETURN(const MarkedText text, impl_->render(before, true, false, options));
    return to_segments(text);
  }
  SLUICE_ASSIGN_OR_RETURN(MarkedText text, impl_->render(messages, false, true, options));
  SLUICE_RETURN_IF_ERROR(cut_behind_last_message(text));
  return to_segments(text);
}

bool ChatTemplate::is_taken(std::string_view name) {
  return std::find(kReserved.begin(), kReserved.end(), name) != kReserved.end();
}

const std::string& ChatTemplate::source() const { return impl_->source; }

std::string join_segments(const std::vector<Segment>& segments) {
  std::string out;
  for (const Segment& segment : segments) out += segment.text;
  return out;
}

Result<std::vector<std::int32_t>> encode_segments(const Tokenizer& tokenizer, const std::vector<Segment>& segments) {
  std::vector<std::int32_t> ids;
  SLUICE_ASSIGN_OR_RETURN(ids, tokenizer.encode(segments));
  if (!tokenizer.bos()) return ids;
  const std::int32_t bos = *tokenizer.bos();
  const auto behind = std::find_if(ids.begin(), ids.end(), [&](std::int32_t id) { return id != bos; });
  if (behind - ids.begin() > 1) ids.erase(ids.begin() + 1, behind);
  if (tokenizer.add_bos() && (ids.empty() || ids[0] != bos)) ids.insert(ids.begin(), bos);
  return ids;
}

}  // namespace sluice
