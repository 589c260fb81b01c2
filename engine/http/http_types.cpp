// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/http_types.h"

#include <strings.h>

#include <charconv>

#include <nlohmann/json.hpp>

namespace sluice {
namespace {

const char* error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404:
    case 405: return "not_found_error";
    case 409: return "conflict_error";
    case 429: return "rate_limit_error";
    case 500: return "server_error";
    case 503: return "unavailable_error";
    default: return "invalid_request_error";
  }
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers) {
    if (same_name(key, name)) return value;
  }
  return {};
}

std::size_t HttpRequest::header_count(std::string_view name) const {
  std::size_t n = 0;
  for (const auto& header : headers) n += same_name(header.first, name) ? 1 : 0;
  return n;
}

ApiError make_error(int status, const std::string& code, const std::string& message, const std::string& param) {
  ApiError error;
  error.status = status;
  error.code = code;
  error.message = message;
  error.param = param;
  return error;
}

ApiError bad_value(const std::string& param, const std::string& message) {
  return make_error(400, "invalid_value", message, param);
}

std::string error_json(const ApiError& error) {
  const auto or_null = [](const std::string& text) {
    return text.empty() ? nlohmann::json(nullptr) : nlohmann::json(text);
  };
  nlohmann::json object = {{"message", error.message},
                           {"type", error_type(error.status)},
                           {"param", or_null(error.param)},
                           {"code", or_null(error.code)}};
  for (const auto& [name, value] : error.numbers) object[name] = std::stoll(value);
  return nlohmann::json{{"error", object}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpReply error_reply(const ApiError& error) {
  HttpReply reply;
  reply.status = error.status;
  reply.body = error_json(error);
  if (error.retry_after_s > 0) {
    reply.headers.emplace_back("Retry-After", std::to_string(error.retry_after_s));
    reply.headers.emplace_back("retry-after-ms", std::to_string(error.retry_after_s * 1000));
  }
  // Clients repeat these by themselves, which can't help.
  if (error.status == 409 || error.status == 500) reply.headers.emplace_back("x-should-retry", "false");
  return reply;
}

ApiError api_error(const Status& status, const std::string& conflict_code) {
  ApiError error;
  error.message = status.message();
  switch (status.code()) {
    case Code::kInvalidArgument: error.status = 400, error.code = "invalid_value"; break;
    case Code::kNotFound: error.status = 404, error.code = "route_not_found"; break;
    case Code::kConflict: error.status = 409, error.code = conflict_code; break;
    case Code::kBusy: error.status = 429, error.code = "queue_full", error.retry_after_s = 1; break;
    case Code::kUnavailable: error.status = 503, error.code = "store_unavailable", error.retry_after_s = 5; break;
    case Code::kDeadline: error.status = 503, error.code = "engine_paused", error.retry_after_s = 5; break;
    case Code::kCancelled: error.status = 503, error.code = "shutting_down", error.retry_after_s = 5; break;
    default: error.status = 500, error.code = "internal_error"; break;
  }
  switch (status.reason()) {
    case Reason::kNone: break;
    case Reason::kContextLength: error.code = "context_length_exceeded"; break;
    case Reason::kTemplate: error.code = "template_error", error.param = "messages"; break;
    case Reason::kLoading: error.code = "model_loading"; break;
    case Reason::kPaused: error.code = "engine_paused"; break;
    case Reason::kAsleep: error.code = "engine_asleep"; break;
    case Reason::kStopping: error.code = "shutting_down"; break;
    case Reason::kNotFinite: error.code = "non_finite_logits"; break;
    case Reason::kStale: error.code = "revision_mismatch"; break;
  }
  return error;
}

}  // namespace sluice
