// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/record_builder.h"

#include "base/json_object.h"
#include "chat/json_text.h"

namespace sluice {
namespace {

// A stop string is text of the client; an id is not.
bool tells_stop(const ChoiceResult& choice, bool store_text) {
  return !choice.stop_reason.empty() && (store_text || choice.stop_id >= 0);
}

std::string choice_json(const ChoiceResult& choice, bool store_text) {
  JsonObject json;
  if (store_text) json.add("text", choice.text);
  json.add("token_ids", choice.token_ids);
  json.add("finish_reason", finish_reason_name(choice.finish));
  if (tells_stop(choice, store_text)) json.add("stop_reason", choice.stop_reason);
  return json.text();
}

template <class List, class Write>
void append_rest(std::string& out, const List& list, Write write) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    out += i == 1 ? '[' : ',';
    out += write(list[i]);
  }
  out += ']';
}

std::string prompt_json(const PromptFacts& prompt, bool store_text) {
  JsonObject json;
  if (store_text) json.add("text", prompt.text);
  json.add("prompt_ids", *prompt.ids);
  return json.text();
}

std::string sampling_json(const RecordFacts& facts) {
  const CompletionRequest& request = *facts.request;
  const std::vector<ChoiceResult>& choices = *facts.choices;
  const bool text = request.store_text;
  const SamplingParams& s = request.sampling;
  JsonObject json;
  json.add("presence_penalty", s.presence_penalty);
  json.add("frequency_penalty", s.frequency_penalty);
  json.add("repetition_penalty", s.repetition_penalty);
  if (s.min_tokens > 0) json.add("min_tokens", s.min_tokens);
  if (request.ignore_eos) json.add("ignore_eos", true);
  if (!s.logit_bias.empty()) {
    JsonObject biases;
    for (const auto& [token, bias] : s.logit_bias) biases.add(std::to_string(token), bias);
    json.add_raw("logit_bias", biases.text());
  }
  if (text && !request.stop.empty()) {
    std::string& out = json.key("stop");
    for (std::size_t i = 0; i < request.stop.size(); ++i) {
      out += i == 0 ? '[' : ',';
      append_json_string(out, request.stop[i]);
    }
    out += ']';
  }
  if (!request.stop_token_ids.empty()) json.add("stop_token_ids", request.stop_token_ids);
  if (tells_stop(choices.front(), text)) json.add("stop_reason", choices.front().stop_reason);
  if (text && request.suffix) json.add("suffix", *request.suffix);
  if (text && !request.user.empty()) json.add("user", request.user);
  if (text && !request.metadata_json.empty()) json.add_raw("metadata", request.metadata_json);
  if (!request.turn.empty()) json.add("turn", request.turn);
  if (request.n > 1) json.add("n", request.n);
  if (facts.prompts.size() > 1) {
    append_rest(json.key("prompts"), facts.prompts, [text](const PromptFacts& p) { return prompt_json(p, text); });
  }
  if (choices.size() > 1) {
    append_rest(json.key("choices"), choices, [text](const ChoiceResult& c) { return choice_json(c, text); });
  }
  return json.text();
}

}  // namespace

RecordRow make_record(const RecordFacts& facts) {
  const CompletionRequest& request = *facts.request;
  const ChoiceResult& first = facts.choices->front();
  RecordRow row;
  row.id = facts.id;
  row.session = request.session;
  row.conversation = request.conversation;
  row.turn = request.turn;
  row.conversation_done = request.conversation_done;
  row.stream = request.stream;
  row.holds = request.stream_holds;
  if (request.store_text) row.tags_json = request.tags_json;
  row.version = facts.version;
  row.adapter_name = facts.adapter_name;
  row.purpose = request.purpose;
  row.split = request.split;
  row.route = request.route;
  row.group_key = request.group_key;
  if (request.store_text) {
    row.prompt_text = facts.prompts.front().text;
    if (request.messages) row.prompt_json = request.prompt_json.empty() ? messages_json(*request.messages) : request.prompt_json;
    row.completion_text = first.text;
    if (request.prompt) {
      row.prompt_digest = request.suffix ? text_digest(*request.prompt, *request.suffix) : text_digest(*request.prompt);
    }
  }
  row.prompt_ids = *facts.prompts.front().ids;
  row.token_ids = first.token_ids;
  row.lp_full = first.lp_full;
  row.lp_mu = first.lp_mu;
  row.temperature = request.sampling.temperature;
  row.top_p = request.sampling.top_p;
  row.min_p = request.sampling.min_p;
  row.top_k = request.sampling.top_k;
  row.max_tokens = facts.prompts.front().max_tokens;
  row.seed = request.sampling.seed;
  row.sampling_json = sampling_json(facts);
  row.finish_reason = finish_reason_name(first.finish);
  row.complete = facts.complete;
  row.received_us = facts.received_us;
  row.queue_us = facts.timings.queue_us;
  row.prefill_us = facts.timings.prefill_us;
  row.decode_us = facts.timings.decode_us;
  return row;
}

std::string content_text(const DataValue& content) {
  if (const auto* text = std::get_if<std::string>(&content.v)) return *text;
  std::string out;
  const auto* parts = std::get_if<DataValue::List>(&content.v);
  if (!parts) return out;
  for (const DataValue& part : *parts) {
    const auto* fields = std::get_if<DataValue::Dict>(&part.v);
    if (!fields) continue;
    for (const auto& [key, value] : *fields) {
      if (key != "text") continue;
      if (const auto* text = std::get_if<std::string>(&value.v)) out += *text;
    }
  }
  return out;
}

std::string prompt_text_of(const std::vector<ChatMessage>& messages) {
  for (auto m = messages.rbegin(); m != messages.rend(); ++m) {
    if (m->role == "user") return content_text(m->content);
  }
  return messages.empty() ? std::string() : content_text(messages.back().content);
}

std::string messages_json(const std::vector<ChatMessage>& messages) {
  std::string out = "[";
  for (const ChatMessage& message : messages) {
    JsonObject json;
    json.add("role", message.role);
    append_json(json.key("content"), message.content);
    if (!message.name.empty()) json.add("name", message.name);
    if (!message.tool_call_id.empty()) json.add("tool_call_id", message.tool_call_id);
    if (!message.tool_calls.is_null()) append_json(json.key("tool_calls"), message.tool_calls);
    for (const auto& [key, value] : message.extra) append_json(json.key(key), value);
    if (out.size() > 1) out += ',';
    out += json.text();
  }
  return out + ']';
}

}  // namespace sluice
