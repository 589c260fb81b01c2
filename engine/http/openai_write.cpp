// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include <nlohmann/json.hpp>

#include "http/fields.h"
#include "http/openai.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

double wire_logprob(float value) { return std::isfinite(value) ? static_cast<double>(value) : -9999.0; }

bool is_utf8(const std::string& bytes) {
  std::size_t i = 0;
  while (i < bytes.size()) {
    const auto c = static_cast<unsigned char>(bytes[i]);
    const std::size_t more = c < 0x80 ? 0 : (c & 0xe0) == 0xc0 ? 1 : (c & 0xf0) == 0xe0 ? 2 : (c & 0xf8) == 0xf0 ? 3 : 9;
    if (more == 9 || i + more >= bytes.size()) return false;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((static_cast<unsigned char>(bytes[i + k]) & 0xc0) != 0x80) return false;
    }
    i += more + 1;
  }
  return true;
}

// A token's text; one that is no text by itself shows its bytes.
std::string token_text(const std::string& piece) {
  if (is_utf8(piece)) return piece;
  std::string out = "bytes:";
  constexpr const char* kHex = "0123456789abcdef";
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::string("\\x") + kHex[byte >> 4] + kHex[byte & 15];
  }
  return out;
}

std::size_t characters(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xc0u) != 0x80u ? 1 : 0;
  return n;
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

// Appends to the four parallel lists; `offset` counts characters of the choice's text.
void add_text_logprobs(Json& out, const std::vector<TokenLogprob>& tokens, bool first_is_start, bool want_top,
                       std::size_t* offset) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const TokenLogprob& t = tokens[i];
    const bool unknown = first_is_start && i == 0;
    out["tokens"].push_back(token_text(t.piece));
    out["token_logprobs"].push_back(unknown ? Json() : Json(wire_logprob(t.logprob)));
    Json top = Json::object();
    if (want_top) {
      for (const auto& [piece, logprob] : t.top) top[token_text(piece)] = wire_logprob(logprob);
    }
    top[token_text(t.piece)] = wire_logprob(t.logprob);
    out["top_logprobs"].push_back(unknown ? Json() : std::move(top));
    out["text_offset"].push_back(*offset);
    *offset += characters(t.piece);
  }
}

Json empty_text_logprobs() {
  return {{"tokens", Json::array()},
          {"token_logprobs", Json::array()},
          {"top_logprobs", Json::array()},
          {"text_offset", Json::array()}};
}

const char* wire_finish(FinishReason reason) { return reason == FinishReason::kLength ? "length" : "stop"; }

Json stop_reason_json(const std::string& reason, const CompletionRequest& request) {
  if (reason.empty()) return nullptr;
  for (const TokenId id : request.stop_token_ids) {
    if (reason == std::to_string(id)) return id;
  }
  return reason;
}

Json usage_json(const CompletionUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}};
}

Json head(const OpenAiCall& call, const AnswerFacts& facts, bool chunk) {
  Json json = {{"id", facts.id},
               {"object", !call.chat ? "text_completion" : chunk ? "chat.completion.chunk" : "chat.completion"},
               {"created", facts.created_s},
               {"model", facts.model},
               {"system_fingerprint", facts.fingerprint}};
  if (chunk && call.include_usage) json["usage"] = nullptr;
  return json;
}

Json prompt_logprobs_json(const std::vector<TokenLogprob>& tokens) {
  Json list = Json::array();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (i == 0) {
      list.push_back(nullptr);
      continue;
    }
    const TokenLogprob& t = tokens[i];
    Json entry = {{token_text(t.piece), wire_logprob(t.logprob)}};
    for (const auto& [piece, logprob] : t.top) entry[token_text(piece)] = wire_logprob(logprob);
    list.push_back(std::move(entry));
  }
  return list;
}

}  // namespace

AnswerWriter::AnswerWriter(const OpenAiCall& call, const AnswerFacts& facts, const Exchange& exchange, int first_index)
    : call_(call),
      facts_(facts),
      exchange_(exchange),
      first_index_(first_index),
      choices_(static_cast<std::size_t>(call.requests.front().n)) {}

void AnswerWriter::collect(const TextEvent& event) {
  Choice& choice = choices_[static_cast<std::size_t>(event.choice)];
  choice.text += event.text;
  choice.logprobs.insert(choice.logprobs.end(), event.logprobs.begin(), event.logprobs.end());
  if (event.kind != TextEvent::Kind::kFinish) return;
  choice.finish = event.finish;
  choice.stop_reason = event.stop_reason;
}

std::string AnswerWriter::chunk(const TextEvent& event) {
  Choice& choice = choices_[static_cast<std::size_t>(event.choice)];
  const bool finish = event.kind == TextEvent::Kind::kFinish;
  Json entry = {{"index", first_index_ + event.choice}, {"finish_reason", nullptr}, {"logprobs", nullptr}};
  if (call_.chat) {
    Json delta = Json::object();
    if (!choice.opened) delta["role"] = "assistant";
    if (!finish) delta["content"] = event.text;
    if (finish && !choice.opened) delta["content"] = "";
    if (call_.logprobs >= 0 && !event.logprobs.empty()) entry["logprobs"] = chat_logprobs(event.logprobs);
    entry["delta"] = std::move(delta);
  } else {
    entry["text"] = event.text;
    if (call_.logprobs >= 0 && !finish) {
      Json lists = empty_text_logprobs();
      const bool echoed = !choice.opened && call_.requests.front().echo;
      if (echoed) add_text_logprobs(lists, exchange_.prompt_logprobs(), true, call_.logprobs > 0, &choice.offset);
      add_text_logprobs(lists, event.logprobs, false, call_.logprobs > 0, &choice.offset);
      entry["logprobs"] = std::move(lists);
    }
  }
  choice.opened = true;
  Json json = head(call_, facts_, true);
  if (finish) {
    entry["finish_reason"] = wire_finish(event.finish);
    entry["stop_reason"] = stop_reason_json(event.stop_reason, call_.requests.front());
    json["sluice"] = Json::parse(receipt_json({&exchange_}, call_.requests.front().session), nullptr, false);
    if (!facts_.conversation.empty()) json["session_id"] = facts_.conversation;
    if (call_.return_token_ids) entry["token_ids"] = exchange_.choice(event.choice).token_ids;
  }
  json["choices"] = Json::array({std::move(entry)});
  return dump(json);
}

std::string AnswerWriter::choices_json() const {
  std::string out;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    const Choice& choice = choices_[i];
    Json entry = {{"index", first_index_ + static_cast<int>(i)},
                  {"finish_reason", wire_finish(choice.finish)},
                  {"stop_reason", stop_reason_json(choice.stop_reason, call_.requests.front())},
                  {"logprobs", nullptr}};
    if (call_.chat) {
      entry["message"] = {{"role", "assistant"}, {"content", choice.text}, {"refusal", nullptr}};
      if (call_.logprobs >= 0) entry["logprobs"] = chat_logprobs(choice.logprobs);
    } else {
      entry["text"] = choice.text;
      if (call_.logprobs >= 0) {
        Json lists = empty_text_logprobs();
        std::size_t offset = 0;
        if (call_.requests.front().echo) {
          add_text_logprobs(lists, exchange_.prompt_logprobs(), true, call_.logprobs > 0, &offset);
        }
        add_text_logprobs(lists, choice.logprobs, false, call_.logprobs > 0, &offset);
        entry["logprobs"] = std::move(lists);
      }
    }
    if (call_.prompt_logprobs >= 0) entry["prompt_logprobs"] = prompt_logprobs_json(exchange_.prompt_logprobs());
    if (call_.return_token_ids) {
      entry["token_ids"] = exchange_.choice(static_cast<int>(i)).token_ids;
      entry["prompt_token_ids"] = exchange_.prompt_ids();
    }
    out += (out.empty() ? "" : ",") + dump(entry);
  }
  return out;
}

std::string receipt_json(const std::vector<const Exchange*>& exchanges, SessionId session) {
  const Exchange& first = *exchanges.front();
  Json receipt = {{"record_id", first.record_id().text},
                  {"adapter", first.adapter_name()},
                  {"version", first.version().value},
                  {"session", session.valid() ? Json(session.value) : Json()},
                  {"seed", first.seed()}};
  if (exchanges.size() > 1) {
    for (const Exchange* exchange : exchanges) receipt["record_ids"].push_back(exchange->record_id().text);
  }
  return dump(receipt);
}

std::string answer_json(const OpenAiCall& call, const AnswerFacts& facts, const std::vector<std::string>& choices,
                        const CompletionUsage& usage, const std::string& receipt) {
  Json json = head(call, facts, false);
  json["usage"] = usage_json(usage);
  json["sluice"] = Json::parse(receipt, nullptr, false);
  if (!facts.conversation.empty()) json["session_id"] = facts.conversation;
  json["choices"] = Json::array();
  for (const std::string& part : choices) {
    for (const Json& entry : Json::parse("[" + part + "]", nullptr, false)) json["choices"].push_back(entry);
  }
  return dump(json);
}

std::string usage_chunk(const OpenAiCall& call, const AnswerFacts& facts, const CompletionUsage& usage) {
  Json json = head(call, facts, true);
  json["choices"] = Json::array();
  json["usage"] = usage_json(usage);
  return dump(json);
}

ApiError completion_error(const Status& status, int context_length) {
  ApiError error = api_error(status);
  const std::string& text = status.message();
  if (status.code() == Code::kInvalidArgument && text.find("maximum context length") != std::string::npos) {
    error.code = "context_length_exceeded";
    error.numbers.emplace_back("n_ctx", std::to_string(context_length));
    const auto at = text.find("the prompt has ");
    const auto digits = at == std::string::npos ? at : text.find_first_of("0123456789", at);
    if (digits != std::string::npos) error.numbers.emplace_back("n_prompt_tokens", std::to_string(std::stoll(text.substr(digits))));
  } else if (status.code() == Code::kInvalidArgument && text.find("template") != std::string::npos) {
    error.code = "template_error";
    error.param = "messages";
  } else if (status.code() == Code::kNotFound) {
    error.code = "model_not_found";
    error.param = "model";
  } else if (status.code() == Code::kUnavailable && text.find("store unavailable") == std::string::npos) {
    error.code = "shutting_down";
  } else if (status.code() == Code::kInternal && text.find("finite") != std::string::npos) {
    error.code = "non_finite_logits";
  }
  return error;
}

}  // namespace sluice
