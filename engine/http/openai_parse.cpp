// SPDX-License-Identifier: GPL-3.0-or-later
#include <climits>
#include <random>

#include <nlohmann/json.hpp>

#include "http/fields.h"
#include "http/openai.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMaxPrompts = 64;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxBiases = 1024;

DataValue to_data(const Json& json) {
  switch (json.type()) {
    case Json::value_t::boolean: return DataValue(json.get<bool>());
    case Json::value_t::number_integer: return DataValue(json.get<std::int64_t>());
    case Json::value_t::number_unsigned:
      return json.get<std::uint64_t>() > INT64_MAX ? DataValue(json.get<double>()) : DataValue(json.get<std::int64_t>());
    case Json::value_t::number_float: return DataValue(json.get<double>());
    case Json::value_t::string: return DataValue(json.get<std::string>());
    case Json::value_t::array: {
      DataValue::List list;
      for (const Json& item : json) list.push_back(to_data(item));
      return DataValue(std::move(list));
    }
    case Json::value_t::object: {
      DataValue::Dict dict;
      for (const auto& [key, value] : json.items()) dict.emplace_back(key, to_data(value));
      return DataValue(std::move(dict));
    }
    default: return DataValue();
  }
}

// content: string, null, or text parts, which are joined.
DataValue read_content(const Json* content, const std::string& where, Fields& f) {
  if (content == nullptr) return DataValue();
  if (content->is_string()) return DataValue(content->get<std::string>());
  if (!content->is_array()) return f.refuse(where, "must be a string, null, or a list of parts"), DataValue();
  std::string joined;
  for (const Json& part : *content) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") || !part["text"].is_string()) {
      return f.refuse(where, "may only hold parts of type text"), DataValue();
    }
    joined += part["text"].get<std::string>();
  }
  return DataValue(std::move(joined));
}

std::vector<ChatMessage> read_messages(Fields& f, std::string* as_sent) {
  std::vector<ChatMessage> messages;
  const Json* list = f.find("messages");
  if (list == nullptr || !list->is_array() || list->empty()) {
    return f.refuse("messages", "must be a list of at least one message"), messages;
  }
  for (std::size_t i = 0; i < list->size(); ++i) {
    const std::string where = "messages[" + std::to_string(i) + "]";
    const Json& item = (*list)[i];
    if (!item.is_object()) return f.refuse(where, "must be an object"), messages;
    Fields fields(item, where + ".");
    ChatMessage message;
    message.role = fields.text("role");
    if (message.role.empty()) fields.refuse("role", "must be a role such as user");
    message.content = read_content(fields.find("content"), "content", fields);
    message.name = fields.text("name");
    message.tool_call_id = fields.text("tool_call_id");
    if (const Json* calls = fields.find("tool_calls")) message.tool_calls = to_data(*calls);
    f.adopt(fields);
    messages.push_back(std::move(message));
  }
  *as_sent = dump(*list);
  return messages;
}

std::vector<TokenId> read_ids(const Json& list, const char* name, std::size_t most, const Tokenizer& tokenizer, Fields& f) {
  std::vector<TokenId> ids;
  if (!list.is_array() || list.size() > most) {
    return f.refuse(name, "must be a list of at most " + std::to_string(most) + " token ids"), ids;
  }
  for (const Json& item : list) {
    const auto id = Fields::whole(item);
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      return f.refuse(name, "holds " + dump(item) + ", which is no token id of this model"), ids;
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

// string, strings, ids, or lists of ids; one request each.
void read_prompts(Fields& f, const CompletionRequest& common, const Tokenizer& tokenizer, OpenAiCall* call) {
  const Json* prompt = f.find("prompt");
  if (prompt == nullptr) return f.refuse("prompt", "must be a string, a list of strings, or token ids");
  const auto add = [&](const Json& one) {
    CompletionRequest request = common;
    if (one.is_string()) {
      request.prompt = one.get<std::string>();
    } else {
      request.prompt_ids = read_ids(one, "prompt", INT_MAX, tokenizer, f);
    }
    call->requests.push_back(std::move(request));
  };
  if (prompt->is_string()) return add(*prompt);
  if (!prompt->is_array()) return f.refuse("prompt", "must be a string, a list of strings, or token ids");
  if (prompt->empty() || prompt->front().is_number()) return add(*prompt);
  if (prompt->size() > kMaxPrompts) {
    return f.refuse("prompt", "may hold at most " + std::to_string(kMaxPrompts) + " prompts");
  }
  for (const Json& one : *prompt) {
    if (!one.is_string() && !one.is_array()) return f.refuse("prompt", "must hold strings or lists of token ids");
    add(one);
  }
}

std::vector<std::string> read_stops(Fields& f) {
  std::vector<std::string> stops;
  const Json* stop = f.find("stop");
  if (stop == nullptr) return stops;
  const Json list = stop->is_array() ? *stop : Json::array({*stop});
  if (list.size() > kMaxStops) return f.refuse("stop", "may hold at most 16 strings"), stops;
  for (const Json& item : list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      return f.refuse("stop", "must be a string, or a list of strings, none of them empty"), stops;
    }
    stops.push_back(item.get<std::string>());
  }
  return stops;
}

void read_biases(Fields& f, const Tokenizer& tokenizer, SamplingParams* sampling) {
  const Json* biases = f.find("logit_bias");
  if (biases == nullptr) return;
  if (!biases->is_object() || biases->size() > kMaxBiases) {
    return f.refuse("logit_bias", "must be an object of at most 1024 token ids");
  }
  for (const auto& [key, value] : biases->items()) {
    const auto id = Fields::whole(Json::parse(key, nullptr, false));
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      return f.refuse("logit_bias", "holds the key " + key + ", which is no token id of this model");
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      return f.refuse("logit_bias", "holds a value that is not between -100 and 100");
    }
    sampling->logit_bias.emplace_back(static_cast<TokenId>(*id), value.get<float>());
  }
}

void read_sampling(Fields& f, const Tokenizer& tokenizer, SamplingParams* s) {
  s->temperature = static_cast<float>(f.number("temperature", 1, 0, 2));
  s->top_p = static_cast<float>(f.number("top_p", 1, 0, 1));
  s->min_p = static_cast<float>(f.number("min_p", 0, 0, 1));
  s->top_k = static_cast<int>(f.integer("top_k", 0, -1, INT_MAX));
  s->presence_penalty = static_cast<float>(f.number("presence_penalty", 0, -2, 2));
  s->frequency_penalty = static_cast<float>(f.number("frequency_penalty", 0, -2, 2));
  s->repetition_penalty = static_cast<float>(f.number("repetition_penalty", 1, 0, 10));
  if (s->repetition_penalty <= 0) f.refuse("repetition_penalty", "must be above 0 and at most 10");
  s->min_tokens = static_cast<int>(f.integer("min_tokens", 0, 0, INT_MAX));
  read_biases(f, tokenizer, s);
  if (f.has("seed")) {
    s->seed = static_cast<std::uint64_t>(f.integer("seed", 0, INT64_MIN, INT64_MAX));
  } else {
    std::random_device device;  // below 2^53, so that every JSON reader gives it back unchanged
    s->seed = (static_cast<std::uint64_t>(device()) << 21) ^ (device() & 0x1fffffu);
  }
}

void read_logprobs(Fields& f, OpenAiCall* call, CompletionRequest* r) {
  if (call->chat) {
    const bool wanted = f.boolean("logprobs", false);
    const auto top = static_cast<int>(f.integer("top_logprobs", 0, 0, 20));
    if (f.has("top_logprobs") && !wanted) f.refuse("top_logprobs", "needs logprobs to be true");
    call->logprobs = wanted ? top : -1;
  } else {
    call->logprobs = f.has("logprobs") ? static_cast<int>(f.integer("logprobs", 0, 0, 20)) : -1;
    r->echo = f.boolean("echo", false);
  }
  r->want_logprobs = call->logprobs >= 0;
  r->sampling.top_logprobs = call->logprobs > 0 ? call->logprobs : -1;
  call->prompt_logprobs = f.has("prompt_logprobs") ? static_cast<int>(f.integer("prompt_logprobs", 0, 0, 20)) : -1;
  r->prompt_logprobs = std::max(call->prompt_logprobs, r->echo && r->want_logprobs ? call->logprobs : -1);
}

// What is known but not offered, by name; silence would be worse.
void refuse_unsupported(Fields& f, const OpenAiCall& call) {
  constexpr const char* kUnsupported = "unsupported_parameter";
  const Json* suffix = f.find("suffix");
  if (!call.chat && suffix != nullptr && *suffix != "") {
    f.refuse("suffix", "is not supported: this model has no fill-in-the-middle tokens", "fim_not_supported");
  }
  for (const char* name : {"tools", "functions"}) {
    const Json* tools = f.find(name);
    if (call.chat && tools != nullptr && *tools != Json::array()) f.refuse(name, "is not supported", kUnsupported);
  }
  const Json* format = f.find("response_format");
  if (format != nullptr && !(format->is_object() && format->value("type", Json()) == "text")) {
    f.refuse("response_format", "may only be {\"type\":\"text\"}", kUnsupported);
  }
}

void read_stream(Fields& f, OpenAiCall* call) {
  call->stream = f.boolean("stream", false);
  const Json* options = f.find("stream_options");
  if (options == nullptr) return;
  if (!call->stream) return f.refuse("stream_options", "needs stream to be true");
  if (!options->is_object()) return f.refuse("stream_options", "must be an object");
  Fields inner(*options, "stream_options.");
  call->include_usage = inner.boolean("include_usage", false);
  f.adopt(inner);
}

void read_sluice(Fields& f, OpenAiCall* call) {
  call->conversation = f.text("session_id", "", 256);
  const Json* own = f.find("sluice");
  if (own == nullptr) return;
  if (!own->is_object()) return f.refuse("sluice", "must be an object");
  Fields inner(*own, "sluice.");
  call->pin = inner.text("pin", "", 128);
  call->conversation = inner.text("conversation", call->conversation, 256);
  f.adopt(inner);
}

void read_render(Fields& f, CompletionRequest* r) {
  r->render.add_generation_prompt = f.boolean("add_generation_prompt", !f.boolean("continue_final_message", false));
  r->render.continue_final_message = f.boolean("continue_final_message", false);
  if (r->render.add_generation_prompt && r->render.continue_final_message) {
    f.refuse("continue_final_message", "excludes add_generation_prompt");
  }
  const Json* kwargs = f.find("chat_template_kwargs");
  if (kwargs == nullptr) return;
  if (!kwargs->is_object()) return f.refuse("chat_template_kwargs", "must be an object");
  for (const auto& [key, value] : kwargs->items()) r->render.kwargs.emplace_back(key, to_data(value));
}

}  // namespace

std::optional<ApiError> parse_openai_call(const HttpRequest& request, bool chat, const Tokenizer& tokenizer,
                                          OpenAiCall* call) {
  Json body;
  if (auto error = parse_object(request, &body)) return error;
  Fields f(body);
  call->chat = chat;
  call->model = f.text("model", "", 256);
  CompletionRequest common;
  common.route = chat ? "chat" : "completions";
  read_sampling(f, tokenizer, &common.sampling);
  common.max_tokens = static_cast<int>(f.integer("max_tokens", chat ? -1 : 16, 0, INT_MAX));
  common.max_tokens = static_cast<int>(f.integer("max_completion_tokens", common.max_tokens, 0, INT_MAX));
  common.n = static_cast<int>(f.integer("n", 1, 1, 16));
  if (f.integer("best_of", common.n, 1, 16) != common.n) f.refuse("best_of", "must equal n");
  common.stop = read_stops(f);
  if (const Json* ids = f.find("stop_token_ids")) common.stop_token_ids = read_ids(*ids, "stop_token_ids", 64, tokenizer, f);
  common.ignore_eos = f.boolean("ignore_eos", false);
  common.skip_special_tokens = f.boolean("skip_special_tokens", true);
  common.user = f.text("user", "", 256);
  call->return_token_ids = f.boolean("return_token_ids", false);
  read_stream(f, call);
  read_logprobs(f, call, &common);
  read_sluice(f, call);
  refuse_unsupported(f, *call);
  if (chat) {
    read_render(f, &common);
    common.messages = read_messages(f, &common.prompt_json);
    call->requests.push_back(std::move(common));
  } else {
    common.parse_special = f.boolean("parse_special", true);
    common.add_special = f.boolean("add_special_tokens", true);
    read_prompts(f, common, tokenizer, call);
  }
  return f.error();
}

}  // namespace sluice
