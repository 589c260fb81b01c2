// SPDX-License-Identifier: GPL-3.0-or-later
// Small things that the parts of /sluice/v1 share: replies, labels, query numbers, ETags. Internal to the .cpp files of
// engine/http (it names the JSON library). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/fields.h"
#include "http/http_types.h"
#include "store/store.h"

namespace sluice {

template <class Json>
HttpReply json_reply(const Json& json, int status = 200) {
  HttpReply reply;
  reply.status = status;
  reply.body = dump(json);
  return reply;
}

// A failed Status as the reply of a route on which a conflict means `conflict_code` and a missing thing `not_found_code`.
inline HttpReply failed(const Status& status, const std::string& conflict_code, const std::string& not_found_code = "") {
  ApiError error = api_error(status, conflict_code);
  if (status.code() == Code::kNotFound && !not_found_code.empty()) error.code = not_found_code;
  return error_reply(error);
}

template <class Json>
Json id_json(std::int64_t value) {
  return value >= 0 ? Json(value) : Json();
}

// A JSON text of the store; null when empty, the text itself when it is none.
template <class Json>
Json stored_json(const std::string& text) {
  if (text.empty()) return nullptr;
  Json json = Json::parse(text, nullptr, false);
  return json.is_discarded() ? Json(text) : json;
}

// A label as every route tells of it.
template <class Json>
Json feedback_json(const FeedbackRow& row) {
  return {{"feedback_id", row.id.value},
          {"record_id", row.record.valid() ? Json(row.record.text) : Json()},
          {"choice", row.choice},
          {"shown", row.by_text ? Json(row.shown) : Json()},
          {"kind", feedback_kind_name(row.kind)},
          {"score", row.kind == FeedbackKind::kScore ? Json(row.score) : Json()},
          {"source", feedback_source_name(row.source)},
          {"labeller", row.labeller},
          {"reason", row.reason},
          {"comment", row.comment},
          {"metadata", stored_json<Json>(row.metadata_json)},
          {"time_us", row.time_us},
          {"state", row.state},
          {"retracted", row.retracted}};
}

inline std::string query_text(const HttpRequest& request, const char* name) {
  const auto it = request.query.find(name);
  return it == request.query.end() ? std::string() : it->second;
}

// A whole number of the query string; `value` stays as it is when absent.
inline std::optional<ApiError> read_query(const HttpRequest& request, const char* name, std::int64_t least,
                                          std::int64_t most, std::int64_t* value) {
  const auto it = request.query.find(name);
  if (it == request.query.end()) return std::nullopt;
  const auto number = parse_number(it->second);
  if (number && *number >= least && *number <= most) {
    *value = *number;
    return std::nullopt;
  }
  return bad_value(name, std::string(name) + " must be a whole number between " + std::to_string(least) + " and " +
                             std::to_string(most));
}

// The revision in an If-Match header: "17" with or without quotes. Nothing when absent or "*".
inline std::optional<ApiError> read_if_match(const HttpRequest& request, std::optional<std::int64_t>* revision) {
  std::string_view text = request.header("If-Match");
  if (text.empty() || text == "*") return std::nullopt;
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  *revision = parse_number(text);
  if (*revision) return std::nullopt;
  return bad_value("If-Match", "If-Match must be the ETag of an earlier answer");
}

inline std::string etag(std::int64_t revision) { return "\"" + std::to_string(revision) + "\""; }

}  // namespace sluice
