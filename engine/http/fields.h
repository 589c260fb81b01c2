// SPDX-License-Identifier: GPL-3.0-or-later
// Reads fields of a request's JSON object with the rules of serving.md §1.1: integers may arrive as 1.0, null is absent,
// a wrong type or bound is an error that names the field. The first error stays; later reads give their fallback. Internal
// to the .cpp files of engine/http (it names the JSON library). One thread.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include "base/json_limits.h"
#include "http/http_types.h"

namespace sluice {

// "\\ud83d" without its other half can't be said in UTF-8: it becomes "\\ufffd", as browsers do.
std::string without_lone_surrogates(std::string json);

inline ApiError field_error(const std::string& param, const std::string& what, const std::string& code = "invalid_value") {
  return make_error(400, code, param + " " + what, param);
}

template <class Json>
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

template <class Json>
class FieldsOf {
 public:
  explicit FieldsOf(const Json& object, std::string prefix = "") : object_(object), prefix_(std::move(prefix)) {}

  const Json* find(const char* name) const {
    const auto it = object_.find(name);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }
  bool has(const char* name) const { return find(name) != nullptr; }

  double number(const char* name, double fallback, double least, double most) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_number()) return refuse(name, "must be a number"), fallback;
    const double v = value->template get<double>();
    if (!(v >= least && v <= most)) return refuse(name, bounds(least, most)), fallback;
    return v;
  }

  std::int64_t integer(const char* name, std::int64_t fallback, std::int64_t least, std::int64_t most) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    const std::optional<std::int64_t> v = whole(*value);
    if (!v) return refuse(name, "must be a whole number"), fallback;
    if (*v < least || *v > most) return refuse(name, bounds(static_cast<double>(least), static_cast<double>(most))), fallback;
    return *v;
  }

  bool boolean(const char* name, bool fallback) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) return refuse(name, "must be true or false"), fallback;
    return value->template get<bool>();
  }

  // `most` counts bytes.
  std::string text(const char* name, std::string fallback = "", std::size_t most = std::size_t{1} << 30) {
    const Json* value = find(name);
    if (value == nullptr) return fallback;
    if (!value->is_string()) return refuse(name, "must be a string"), fallback;
    if (value->template get_ref<const std::string&>().size() > most) {
      return refuse(name, "must have at most " + std::to_string(most) + " bytes"), fallback;
    }
    return value->template get<std::string>();
  }

  void refuse(const std::string& name, const std::string& what, const std::string& code = "invalid_value") {
    if (!error_) error_ = field_error(prefix_ + name, what, code);
  }
  const std::optional<ApiError>& error() const { return error_; }
  void adopt(const FieldsOf& inner) { adopt(inner.error_); }
  void adopt(const std::optional<ApiError>& error) {
    if (!error_) error_ = error;
  }

  static std::optional<std::int64_t> whole(const Json& value) {
    if (value.is_number_unsigned() && value.template get<std::uint64_t>() > INT64_MAX) return std::nullopt;
    if (value.is_number_integer()) return value.template get<std::int64_t>();
    if (!value.is_number_float()) return std::nullopt;
    const double v = value.template get<double>();
    if (std::trunc(v) != v || std::abs(v) >= 0x1p63) return std::nullopt;
    return static_cast<std::int64_t>(v);
  }

 private:
  static std::string short_number(double v) {
    std::string text = std::to_string(v);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
    return text;
  }
  static std::string bounds(double least, double most) {
    return most > 1e15 ? "must be at least " + short_number(least)
                       : "must be between " + short_number(least) + " and " + short_number(most);
  }

  const Json& object_;
  const std::string prefix_;
  std::optional<ApiError> error_;
};

// The body of a request as one JSON object, or why it is none.
template <class Json>
std::optional<ApiError> parse_object(const HttpRequest& request, Json* out) {
  if (const Status s = check_json_limits(request.body, "The request body"); !s.ok()) {
    return make_error(400, "invalid_json", s.message());
  }
  const std::string body = without_lone_surrogates(request.body);
  *out = Json::parse(body, nullptr, false);
  if (out->is_object()) return std::nullopt;
  return make_error(400, "invalid_json",
                    out->is_discarded() ? "The request body is not valid JSON: " + json_problem<Json>(body)
                                        : "The request body must be a JSON object");
}

}  // namespace sluice
