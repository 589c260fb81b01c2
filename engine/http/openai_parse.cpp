// SPDX-License-Identifier: GPL-3.0-or-later
#include <climits>
#include <random>

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/client_context.h"
#include "http/fields.h"
#include "http/openai.h"
#include "http/openai_chat.h"
#include "http/ordered_json.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMaxPrompts = 64;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopLength = 256;
constexpr std::size_t kMaxBiases = 1024;
constexpr std::size_t kMaxUser = 4096;
constexpr std::size_t kMaxMetadata = 65536;  // holds what OpenAI takes: 16 keys of 64 characters with 512 each, escaped

// A count without an upper bound of its own: more than fits means as much as there can be.
int read_count(Fields& f, const char* name, int fallback) {
  return static_cast<int>(std::min<std::int64_t>(f.integer(name, fallback, 0, INT64_MAX), INT_MAX));
}

std::vector<TokenId> read_ids(const Json& list, const char* name, std::size_t most, const Tokenizer& tokenizer, Fields& f) {
  std::vector<TokenId> ids;
  if (!list.is_array() || list.size() > most) {
    return f.refuse(name, "must be a list of at most " + std::to_string(most) + " token ids"), ids;
  }
  for (const Json& item : list) {
    const auto id = Fields::whole(item);
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      return f.refuse(name, "holds " + excerpt(dump(item)) + ", which is no token id of this model"), ids;
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

using Prompt = std::variant<std::string, std::vector<TokenId>>;

// string, strings, ids, or lists of ids.
std::vector<Prompt> read_prompts(Fields& f, const Tokenizer& tokenizer) {
  constexpr const char* kWhat = "must be a string, a list of strings, a list of token ids, or a list of such lists";
  std::vector<Prompt> prompts;
  const Json* prompt = f.find("prompt");
  if (prompt == nullptr || (!prompt->is_string() && !prompt->is_array())) return f.refuse("prompt", kWhat), prompts;
  const auto add = [&](const Json& one) {
    if (one.is_string()) return prompts.emplace_back(one.get<std::string>()), void();
    prompts.emplace_back(read_ids(one, "prompt", INT_MAX, tokenizer, f));
  };
  if (prompt->is_string() || prompt->empty() || prompt->front().is_number()) return add(*prompt), prompts;
  if (prompt->size() > kMaxPrompts) {
    return f.refuse("prompt", "may hold at most " + std::to_string(kMaxPrompts) + " prompts"), prompts;
  }
  for (const Json& one : *prompt) {
    if (!one.is_string() && !one.is_array()) return f.refuse("prompt", kWhat), prompts;
    add(one);
  }
  return prompts;
}

// Text, or fill in the middle where a suffix is given.
void read_text_input(Fields& f, const OpenAiModel& model, OpenAiCall* call) {
  CompletionRequest& r = call->request;
  const bool fim_route = call->route == OpenAiRoute::kFim;
  if (fim_route && f.has("prompt") && !f.find("prompt")->is_string()) f.refuse("prompt", "must be a string");
  std::vector<Prompt> prompts = read_prompts(f, model.tokenizer);
  const std::string suffix = f.text("suffix");
  if (f.error()) return;
  if (fim_route || f.has("suffix")) {  // an empty one is given, too: it says that nothing follows
    Result<FimFormat> format = find_fim_format(model.tokenizer);
    if (!format.ok() && model.fim_markers) format = fim_format_of(model.tokenizer, *model.fim_markers);
    if (!format.ok()) return f.refuse("suffix", "can't be used: " + format.status().message(), "fim_not_supported");
    for (const Prompt& prompt : prompts) {
      if (!std::holds_alternative<std::string>(prompt)) return f.refuse("prompt", "must be text where a suffix is given");
    }
    r.suffix = suffix;
    r.fim = std::move(format).value();
  }
  if (auto* text = std::get_if<std::string>(&prompts.front())) {
    r.prompt = std::move(*text);
  } else {
    r.prompt_ids = std::move(std::get<std::vector<TokenId>>(prompts.front()));
  }
  r.more_prompts.assign(std::make_move_iterator(prompts.begin() + 1), std::make_move_iterator(prompts.end()));
  r.parse_special = f.boolean("parse_special", true);
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
    if (count_code_points(item.get_ref<const std::string&>()) > kMaxStopLength) {
      return f.refuse("stop", "holds a string of more than 256 characters"), stops;
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
    const auto id = parse_number(key);
    if (!id || *id < 0 || *id >= tokenizer.size()) {
      return f.refuse("logit_bias", "holds the key " + excerpt(key) + ", which is no token id of this model");
    }
    if (!value.is_number() || !(std::abs(value.get<double>()) <= 100)) {
      return f.refuse("logit_bias", "holds a value that is not between -100 and 100");
    }
    sampling->logit_bias.emplace_back(static_cast<TokenId>(*id), value.get<float>());
  }
}

void read_sampling(Fields& f, const SamplingDefaults& absent, SamplingParams* s) {
  s->temperature = static_cast<float>(f.number("temperature", absent.temperature, 0, 2));
  s->top_p = static_cast<float>(f.number("top_p", absent.top_p, 0, 1));
  s->min_p = static_cast<float>(f.number("min_p", 0, 0, 1));
  s->top_k = static_cast<int>(std::min<std::int64_t>(f.integer("top_k", 0, -1, INT64_MAX), INT_MAX));
  s->presence_penalty = static_cast<float>(f.number("presence_penalty", 0, -2, 2));
  s->frequency_penalty = static_cast<float>(f.number("frequency_penalty", 0, -2, 2));
  s->repetition_penalty = static_cast<float>(f.number("repetition_penalty", 1, 0, 10));
  if (s->repetition_penalty <= 0) f.refuse("repetition_penalty", "must be above 0 and at most 10");
  s->min_tokens = read_count(f, "min_tokens", 0);
  if (f.has("seed")) {
    s->seed = static_cast<std::uint64_t>(f.integer("seed", 0, INT64_MIN, INT64_MAX));
  } else {
    std::random_device device;  // below 2^53, so that every JSON reader gives it back unchanged
    s->seed = (static_cast<std::uint64_t>(device()) << 21) ^ (device() & 0x1fffffu);
  }
}

void read_length(Fields& f, OpenAiRoute route, const SamplingDefaults& absent, CompletionRequest* r) {
  const int fallback = route == OpenAiRoute::kChat ? -1 : route == OpenAiRoute::kFim ? 128 : absent.max_tokens;
  r->max_tokens = read_count(f, "max_tokens", fallback);
  r->max_tokens = read_count(f, "max_completion_tokens", r->max_tokens);
}

void read_logprobs(Fields& f, OpenAiCall* call) {
  CompletionRequest& r = call->request;
  if (call->route == OpenAiRoute::kChat) {
    const bool wanted = f.boolean("logprobs", false);
    const auto top = static_cast<int>(f.integer("top_logprobs", 0, 0, 20));
    if (f.has("top_logprobs") && !wanted) f.refuse("top_logprobs", "needs logprobs to be true");
    call->logprobs = wanted ? top : -1;
  } else {
    call->logprobs = f.has("logprobs") ? static_cast<int>(f.integer("logprobs", 0, 0, 20)) : -1;
    r.echo = f.boolean("echo", false);
  }
  r.want_logprobs = call->logprobs >= 0;
  r.sampling.top_logprobs = call->logprobs > 0 ? call->logprobs : -1;
  call->prompt_logprobs = f.has("prompt_logprobs") ? static_cast<int>(f.integer("prompt_logprobs", 0, 0, 20)) : -1;
  r.prompt_logprobs = std::max(call->prompt_logprobs, r.echo && r.want_logprobs ? call->logprobs : -1);
}

// What completions and chat take and fill in the middle does not.
void read_choices(Fields& f, const Tokenizer& tokenizer, OpenAiCall* call) {
  CompletionRequest& r = call->request;
  r.n = static_cast<int>(f.integer("n", 1, 1, 16));
  if (f.integer("best_of", r.n, 1, INT64_MAX) != r.n) f.refuse("best_of", "must equal n");
  read_biases(f, tokenizer, &r.sampling);
  read_logprobs(f, call);
  if (f.has("add_special_tokens")) r.add_special = f.boolean("add_special_tokens", true);
  call->return_token_ids = f.boolean("return_token_ids", false);
}

// What is known but not offered, by name; silence would be worse.
void refuse_unsupported(Fields& f, const OpenAiCall& call) {
  constexpr const char* kUnsupported = "unsupported_parameter";
  const Json* format = f.find("response_format");
  if (format != nullptr && !(format->is_object() && format->value("type", Json()) == "text")) {
    f.refuse("response_format", "may only be {\"type\":\"text\"}", kUnsupported);
  }
  if (call.route == OpenAiRoute::kChat && f.has("suffix")) {
    f.refuse("suffix", "belongs to /v1/completions and /v1/fim/completions, not to chat", kUnsupported);
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

// Who asks, and what is kept with the record.
void read_origin(Fields& f, OpenAiCall* call) {
  CompletionRequest& r = call->request;
  r.user = f.text("user", "", kMaxUser);
  r.store_text = f.boolean("store", true);
  if (const Json* metadata = f.find("metadata")) {
    if (!metadata->is_object()) return f.refuse("metadata", "must be an object");
    r.metadata_json = dump(*metadata);
    if (r.metadata_json.size() > kMaxMetadata) f.refuse("metadata", "must have at most " + std::to_string(kMaxMetadata) + " bytes of JSON text");
  }
  call->conversation = f.text("session_id", "", 256);
  r.turn = f.text("turn_type", "", 16);
  if (!r.turn.empty() && r.turn != "main" && r.turn != "side") f.refuse("turn_type", "must be main or side");
  if (const Json* done = f.find("session_done")) {
    const bool is_text = done->is_string();
    r.conversation_done = done->is_boolean() ? done->get<bool>() : means_yes(is_text ? done->get<std::string>() : dump(*done));
  }
  const Json* own = f.find("sluice");
  if (own != nullptr && !own->is_object()) return f.refuse("sluice", "must be an object");
  const Json none = Json::object();
  Fields inner(own == nullptr ? none : *own, "sluice.");
  call->pin = inner.text("pin", "", 128);
  call->conversation = inner.text("conversation", call->conversation, 256);
  r.turn = inner.text("turn", r.turn, 16);
  if (!r.turn.empty() && r.turn != "main" && r.turn != "side") inner.refuse("turn", "must be main or side");
  f.adopt(inner);
}

void read_chat_input(Fields& f, const std::string& body, const OpenAiModel& model, OpenAiCall* call) {
  CompletionRequest& r = call->request;
  r.render.continue_final_message = f.boolean("continue_final_message", false);
  r.render.add_generation_prompt = f.boolean("add_generation_prompt", !r.render.continue_final_message);
  if (r.render.add_generation_prompt && r.render.continue_final_message) {
    f.refuse("continue_final_message", "excludes add_generation_prompt");
  }
  if (f.error()) return;
  const std::optional<DataValue> data = data_of_json(without_lone_surrogates(body));
  if (data) f.adopt(read_chat(*data, model.chat_template, &r, &call->tool_calls));
}

}  // namespace

const char* openai_route_name(OpenAiRoute route) {
  switch (route) {
    case OpenAiRoute::kText: return "completions";
    case OpenAiRoute::kChat: return "chat";
    case OpenAiRoute::kFim: return "fim";
  }
  return "";
}

std::optional<ApiError> parse_openai_call(const HttpRequest& request, OpenAiRoute route, const OpenAiModel& model,
                                          OpenAiCall* call) {
  Json body;
  if (auto error = parse_object(request, &body)) return error;
  Fields f(body);
  call->route = route;
  call->model = f.text("model", "", 256);
  CompletionRequest& r = call->request;
  r.route = openai_route_name(route);
  const SamplingDefaults absent = route == OpenAiRoute::kText ? model.defaults.value_or(SamplingDefaults()) : SamplingDefaults();
  read_sampling(f, absent, &r.sampling);
  read_length(f, route, absent, &r);
  r.stop = read_stops(f);
  if (const Json* ids = f.find("stop_token_ids")) r.stop_token_ids = read_ids(*ids, "stop_token_ids", 64, model.tokenizer, f);
  r.ignore_eos = f.boolean("ignore_eos", false);
  r.skip_special_tokens = f.boolean("skip_special_tokens", true);
  read_stream(f, call);
  read_origin(f, call);
  refuse_unsupported(f, *call);
  if (route != OpenAiRoute::kFim) read_choices(f, model.tokenizer, call);
  if (route == OpenAiRoute::kChat) {
    read_chat_input(f, request.body, model, call);
  } else {
    read_text_input(f, model, call);
  }
  return f.error();
}

}  // namespace sluice
