// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/text_api.h"

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/api_json.h"
#include "http/completions.h"
#include "http/openai.h"
#include "text/chat_template.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

// A string, or the bytes where they are no text by themselves.
Json piece_json(std::string_view piece) {
  if (is_valid_utf8(piece)) return std::string(piece);
  Json bytes = Json::array();
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

HttpReply tokenize(const CompletionService& service, const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  if (!f.has("content")) f.refuse("content", "must be the text to tokenize");
  const std::string content = f.text("content");
  EncodeOptions options;
  options.add_special = f.boolean("add_special", false);
  options.parse_special = f.boolean("parse_special", true);
  const bool with_pieces = f.boolean("with_pieces", false);
  if (f.error()) return error_reply(*f.error());
  const auto ids = service.tokenizer().encode(content, options);
  if (!ids.ok()) return error_reply(api_error(ids.status()));
  Json tokens = Json::array();
  for (const TokenId id : *ids) {
    with_pieces ? tokens.push_back({{"id", id}, {"piece", piece_json(service.tokenizer().piece(id))}}) : tokens.push_back(id);
  }
  return json_reply(Json{{"tokens", std::move(tokens)}});
}

HttpReply detokenize(const CompletionService& service, const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  const Json* tokens = f.find("tokens");
  if (tokens == nullptr || !tokens->is_array()) f.refuse("tokens", "must be a list of token ids");
  const bool skip_special = f.boolean("skip_special_tokens", false);
  if (f.error()) return error_reply(*f.error());
  std::vector<TokenId> ids;
  for (const Json& item : *tokens) {
    const auto id = Fields::whole(item);
    if (!id || *id < 0 || *id >= service.tokenizer().size()) {
      f.refuse("tokens", "holds " + excerpt(dump(item)) + ", which is no token id of this model");
      return error_reply(*f.error());
    }
    ids.push_back(static_cast<TokenId>(*id));
  }
  return json_reply(Json{{"content", service.tokenizer().decode_text(ids, skip_special)}});
}

HttpReply apply_template(const CompletionService& service, const HttpRequest& request) {
  const ChatTemplate* chat_template = service.chat_template();
  OpenAiCall call;
  const OpenAiModel model{service.tokenizer(), chat_template, std::nullopt, std::nullopt};
  if (auto error = parse_openai_call(request, OpenAiRoute::kChat, model, &call)) return error_reply(*error);
  if (chat_template == nullptr) {
    return error_reply(bad_value("messages", "This model has no chat template: send a prompt instead of messages"));
  }
  const auto segments = chat_template->render(*call.request.messages, call.request.render);
  if (!segments.ok()) {
    ApiError error = api_error(segments.status());
    error.code = "template_error";
    error.param = "messages";
    return error_reply(error);
  }
  return json_reply(Json{{"prompt", join_segments(*segments)}});
}

}  // namespace

void TextApi::add_routes(RouteTable& table) {
  using Answer = HttpReply (*)(const CompletionService&, const HttpRequest&);
  const auto add = [&](const char* name, Answer answer) {
    table.add(Scope::kClient, "POST", std::string("/sluice/v1/") + name, [this, answer](const HttpRequest& r, const RouteTable::Parts&) {
      const auto service = control_.service();
      return service ? answer(*service, r) : error_reply(*not_ready(ServingPhase::kLoading));
    });
  };
  add("tokenize", tokenize);
  add("detokenize", detokenize);
  add("apply-template", apply_template);
}

}  // namespace sluice
