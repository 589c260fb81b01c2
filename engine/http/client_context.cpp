// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/client_context.h"

#include <nlohmann/json.hpp>

#include "http/fields.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxConversation = 256, kMaxStream = 128;
constexpr std::string_view kTag = "x-reef-tag-";

std::optional<ApiError> take_text(const HttpRequest& request, const char* name, std::size_t most, std::string* out) {
  const std::string_view value = request.header(name);
  if (value.size() > most) return field_error(name, "must have at most " + std::to_string(most) + " bytes");
  if (!value.empty()) *out = value;
  return std::nullopt;
}

std::string tags_of(const HttpRequest& request) {
  Json tags = Json::object();
  for (const auto& [name, value] : request.headers) {
    if (name.size() > kTag.size() && same_name(std::string_view(name).substr(0, kTag.size()), kTag)) {
      std::string tag = name.substr(kTag.size());
      for (char& c : tag) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      tags[tag] = value;
    }
  }
  return tags.empty() ? std::string() : dump(tags);
}

}  // namespace

bool means_yes(std::string_view text) {
  return same_name(text, "1") || same_name(text, "true") || same_name(text, "yes") || same_name(text, "on");
}

std::optional<ApiError> read_client_context(const HttpRequest& request, CompletionRequest* r) {
  std::string turn;
  for (const auto& error :
       {take_text(request, "X-Session-Id", kMaxConversation, &r->conversation), take_text(request, "X-Turn-Type", 16, &turn),
        take_text(request, "x-reef-scenario", kMaxStream, &r->stream),
        take_text(request, "X-Sluice-Stream", kMaxStream, &r->stream)}) {
    if (error) return error;
  }
  r->stream_holds = !request.header("X-Sluice-Stream").empty();
  if (same_name(turn, "main") || same_name(turn, "side")) {
    r->turn = same_name(turn, "main") ? "main" : "side";
  } else if (!turn.empty()) {
    return field_error("X-Turn-Type", "must be main or side");
  }
  if (r->turn.empty() && !r->conversation.empty()) r->turn = "main";
  if (request.header_count("X-Session-Done") > 0) r->conversation_done = means_yes(request.header("X-Session-Done"));
  r->tags_json = tags_of(request);
  return std::nullopt;
}

}  // namespace sluice
