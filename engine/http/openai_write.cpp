// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <nlohmann/json.hpp>

#include "http/fields.h"
#include "http/openai.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

double wire_logprob(float value) { return std::isfinite(value) ? static_cast<double>(value) : -9999.0; }

// A token's text; one that is no text by itself shows its bytes.
std::string token_text(const std::string& piece) {
  if (is_valid_utf8(piece)) return piece;
  std::string out = "bytes:";
  constexpr const char* kHex = "0123456789abcdef";
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
  }
  return out;
}

Json bytes_of(const std::string& piece) {
  Json list = Json::array();
  for (const char c : piece) list.push_back(static_cast<unsigned char>(c));
  return list;
}

Json chat_logprobs(const std::vector<TokenLogprob>& tokens) {
  Json content = Json::array();
  for (const TokenLogprob& t : tokens) {
    Json top = Json::array();
    for (const auto& [piece, logprob] : t.top) {
      top.push_back({{"token", token_text(piece)}, {"bytes", bytes_of(piece)}, {"logprob", wire_logprob(logprob)}});
    }
    content.push_back({{"token", token_text(t.piece)},
                       {"bytes", bytes_of(t.piece)},
                       {"logprob", wire_logprob(t.logprob)},
                       {"top_logprobs", std::move(top)}});
  }
  return {{"content", std::move(content)}};
}

// Appends to the four parallel lists. Offsets count characters of the choice's text, which has `most` so far and in which
// these tokens' text begins at `begin`; `alternatives`: how many were asked for.
void add_text_logprobs(Json& out, const std::vector<TokenLogprob>& tokens, bool first_is_start, int alternatives,
                       std::size_t begin, std::size_t most) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenLogprob& t = tokens[i];
    const bool unknown = first_is_start && i == 0;
    out["tokens"].push_back(token_text(t.piece));
    out["token_logprobs"].push_back(unknown ? Json() : Json(wire_logprob(t.logprob)));
    Json top = Json::object();
    for (std::size_t k = 0; k < t.top.size() && static_cast<int>(k) < alternatives; ++k) {
      top[token_text(t.top[k].first)] = wire_logprob(t.top[k].second);
    }
    top[token_text(t.piece)] = wire_logprob(t.logprob);
    out["top_logprobs"].push_back(unknown ? Json() : std::move(top));
    out["text_offset"].push_back(std::min(begin + t.offset, most));
  }
}

Json empty_text_logprobs() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

Json usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json head(const OpenAiCall& call, const AnswerFacts& facts, bool chunk) {
  Json json = {{"id", facts.id},
               {"object", !call.chat_shape() ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion"},
               {"created", facts.created_s},
               {"model", facts.model},
               {"system_fingerprint", facts.fingerprint}};
  if (chunk && call.include_usage) json["usage"] = nullptr;
  return json;
}

Json calls_json(const std::vector<ToolCall>& calls, std::size_t from, bool with_index) {
  Json list = Json::array();
  for (std::size_t i = from; i < calls.size(); ++i) {
    Json call = {{"id", calls[i].id},
                 {"type", "function"},
                 {"function", {{"name", calls[i].name}, {"arguments", calls[i].arguments}}}};
    if (with_index) call["index"] = i;
    list.push_back(std::move(call));
  }
  return list;
}

Json receipt_of(const Exchange& exchange, SessionId session) {
  return {{"record_id", exchange.record_id().text},
          {"adapter", exchange.adapter_name()},
          {"version", exchange.version().value},
          {"session", session.valid() ? Json(session.value) : Json()},
          {"seed", static_cast<std::int64_t>(exchange.seed())}};
}

Json prompt_logprobs_json(const std::vector<TokenLogprob>& tokens, int alternatives) {
  Json list = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i == 0) {
      list.push_back(nullptr);
      continue;
    }
    const TokenLogprob& t = tokens[i];
    Json entry = {{token_text(t.piece), wire_logprob(t.logprob)}};
    for (std::size_t k = 0; k < t.top.size() && static_cast<int>(k) < alternatives; ++k) {
      entry[token_text(t.top[k].first)] = wire_logprob(t.top[k].second);
    }
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

// The parts of an answer that both forms share.
struct AnswerJson {
  using Choice = AnswerWriter::Choice;

  // The log-probs that were not written yet, the echoed prompt's included; null where there are none.
  static Json logprobs(const AnswerWriter& w, int index, Choice& choice) {
    if (w.call_.logprobs < 0) return nullptr;
    const std::vector<TokenLogprob> tokens = std::exchange(choice.logprobs, {});
    if (w.call_.chat_shape()) return tokens.empty() ? Json() : chat_logprobs(tokens);
    if (tokens.empty() && !choice.echo_due) return nullptr;
    Json lists = empty_text_logprobs();
    const int alternatives = w.call_.logprobs;
    const auto& prompt = w.exchange_.prompt_logprobs(w.prompt_of(index));
    if (std::exchange(choice.echo_due, false)) add_text_logprobs(lists, prompt, true, alternatives, 0, choice.characters);
    add_text_logprobs(lists, tokens, false, alternatives, choice.echo_characters, choice.characters);
    return lists;
  }
  static void add_end(Json& entry, const AnswerWriter& w, int index) {
    const ChoiceResult& result = w.exchange_.choice(index);
    entry["finish_reason"] = w.finish_reason(index);
    entry["stop_reason"] = result.stop_id >= 0 ? Json(result.stop_id)
                           : result.stop_reason.empty() ? Json() : Json(result.stop_reason);
    if (!w.call_.return_token_ids) return;
    entry["token_ids"] = result.token_ids;
    entry["prompt_token_ids"] = w.exchange_.prompt_ids(w.prompt_of(index));
  }
  static void add_prompt_logprobs(Json& entry, const AnswerWriter& w, int index) {
    if (w.call_.prompt_logprobs < 0) return;
    entry["prompt_logprobs"] =
        prompt_logprobs_json(w.exchange_.prompt_logprobs(w.prompt_of(index)), w.call_.prompt_logprobs);
  }
  static void add_receipt(Json& json, const AnswerWriter& w) {
    json["sluice"] = receipt_of(w.exchange_, w.call_.request.session);
    if (!w.facts_.conversation.empty()) json["session_id"] = w.facts_.conversation;
  }
  // One chunk of a choice. `text` is what this chunk adds.
  static Json chunk(const AnswerWriter& w, int index, Choice& choice, const std::string& text, bool finish) {
    Json entry = {{"index", index}, {"finish_reason", nullptr}};
    const bool first = !std::exchange(choice.opened, true);
    if (w.call_.chat_shape()) {
      Json delta = Json::object();
      if (first) delta["role"] = "assistant";
      if (!finish && (!text.empty() || choice.calls_sent == choice.calls.size())) delta["content"] = text;
      if (choice.calls_sent < choice.calls.size()) {
        delta["tool_calls"] = calls_json(choice.calls, choice.calls_sent, true);
        choice.calls_sent = choice.calls.size();
      }
      entry["delta"] = std::move(delta);
    } else {
      entry["text"] = text;
    }
    if (first) add_prompt_logprobs(entry, w, index);
    entry["logprobs"] = logprobs(w, index, choice);
    Json json = head(w.call_, w.facts_, true);
    if (finish) {
      add_end(entry, w, index);
      add_receipt(json, w);
    }
    json["choices"] = Json::array({std::move(entry)});
    return json;
  }
};

AnswerWriter::AnswerWriter(const OpenAiCall& call, const AnswerFacts& facts, const Exchange& exchange)
    : call_(call),
      facts_(facts),
      exchange_(exchange),
      choices_((1 + call.request.more_prompts.size()) * static_cast<std::size_t>(call.request.n)) {
  for (Choice& choice : choices_) choice.echo_due = call.request.echo && call.logprobs >= 0;
}

// What the event adds to the choice's text; calls and log-probs are kept with the choice.
std::string AnswerWriter::take(Choice& choice, const TextEvent& event) {
  const bool finish = event.kind == TextEvent::Kind::kFinish;
  std::string text = event.text;
  if (call_.tool_calls) {
    ToolCallReader::Piece piece = choice.reader.push(event.text);
    if (finish) piece.content += choice.reader.flush().content;
    text = std::move(piece.content);
    std::move(piece.calls.begin(), piece.calls.end(), std::back_inserter(choice.calls));
  }
  choice.characters += count_code_points(text);
  if (event.echo) choice.echo_characters = choice.characters;
  choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  if (finish) choice.finish = event.finish;
  return text;
}

std::vector<std::string> AnswerWriter::chunks(const TextEvent& event) {
  Choice& choice = choice_of(event);
  const std::string text = take(choice, event);
  const bool finish = event.kind == TextEvent::Kind::kFinish;
  std::vector<std::string> out;
  // A stream of the chat shape opens with a role and ends with an empty delta, whatever the answer holds.
  const bool opening = finish && call_.chat_shape() && !choice.opened;
  if (!text.empty() || choice.calls_sent < choice.calls.size() || opening) {
    out.push_back(dump(AnswerJson::chunk(*this, event.choice, choice, text, false)));
  }
  if (finish) out.push_back(dump(AnswerJson::chunk(*this, event.choice, choice, "", true)));
  return out;
}

void AnswerWriter::collect(const TextEvent& event) {
  Choice& choice = choice_of(event);
  choice.text += take(choice, event);
}

std::string AnswerWriter::body() {
  Json json = head(call_, facts_, false);
  json["usage"] = usage_json(exchange_.usage());
  AnswerJson::add_receipt(json, *this);
  json["choices"] = Json::array();
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const int index = static_cast<int>(i);
    Choice& choice = choices_[i];
    Json entry = {{"index", index}};
    if (call_.chat_shape()) {
      const bool only_calls = choice.text.empty() && !choice.calls.empty();
      entry["message"] = {{"role", "assistant"}, {"content", only_calls ? Json() : Json(choice.text)}, {"refusal", nullptr}};
      if (!choice.calls.empty()) entry["message"]["tool_calls"] = calls_json(choice.calls, 0, false);
    } else {
      entry["text"] = choice.text;
    }
    AnswerJson::add_end(entry, *this, index);
    AnswerJson::add_prompt_logprobs(entry, *this, index);
    entry["logprobs"] = AnswerJson::logprobs(*this, index, choice);
    if (call_.logprobs >= 0 && entry["logprobs"].is_null()) {
      entry["logprobs"] = call_.chat_shape() ? chat_logprobs({}) : empty_text_logprobs();
    }
    json["choices"].push_back(std::move(entry));
  }
  return dump(json);
}

const char* AnswerWriter::finish_reason(int index) const {
  const Choice& choice = choices_[static_cast<std::size_t>(index)];
  if (choice.finish == FinishReason::kLength) return "length";
  return choice.calls.empty() ? "stop" : "tool_calls";
}

std::string AnswerWriter::usage_chunk() const {
  Json json = head(call_, facts_, true);
  json["choices"] = Json::array();
  json["usage"] = usage_json(exchange_.usage());
  return dump(json);
}

std::string AnswerWriter::reef_chunk() const {
  Json json = head(call_, facts_, true);
  json["choices"] = Json::array();
  json["reef"] = {{"agent_record_id", exchange_.record_id().text}};
  return dump(json);
}

ApiError completion_error(const Status& status, int context_length) {
  ApiError error = api_error(status);
  if (status.code() == Code::kNotFound) {
    error.code = "model_not_found";
    error.param = "model";
  }
  if (status.reason() == Reason::kContextLength) {
    error.numbers = {{"n_ctx", std::to_string(context_length)}, {"n_prompt_tokens", std::to_string(status.count())}};
  }
  return error;
}

}  // namespace sluice
