// SPDX-License-Identifier: GPL-3.0-or-later
// Status and Result<T>: how every fallible call in the engine reports. Value types, no thread rules of their own.
// The message of a failed Status names the input that was wrong and what to do about it; it is shown to people.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace sluice {

// The HTTP status each code maps to stands behind it.
enum class Code {
  kOk,
  kInvalidArgument,  // 400
  kNotFound,         // 404
  kConflict,         // 409
  kBusy,             // 429
  kCancelled,        // connection gone
  kUnavailable,      // 503
  kDeadline,         // 503
  kCorrupt,          // 500
  kInternal,         // 500
};

inline const char* code_name(Code code) {
  switch (code) {
    case Code::kOk: return "ok";
    case Code::kInvalidArgument: return "invalid argument";
    case Code::kNotFound: return "not found";
    case Code::kConflict: return "conflict";
    case Code::kBusy: return "busy";
    case Code::kCancelled: return "cancelled";
    case Code::kUnavailable: return "unavailable";
    case Code::kDeadline: return "deadline";
    case Code::kCorrupt: return "corrupt";
    case Code::kInternal: return "internal";
  }
  return "unknown";
}

// Which of the failures of its code it is, where somebody must tell it from the others. The code each belongs to stands
// behind it.
enum class Reason : unsigned char {
  kNone,
  kContextLength,  // kInvalidArgument: the prompt fills the context; Status::count() is its number of tokens
  kTemplate,       // kInvalidArgument: the chat template refused the messages
  kLoading,        // kUnavailable: no model yet
  kPaused,         // kUnavailable
  kAsleep,         // kUnavailable
  kStopping,       // kUnavailable
  kNotFinite,      // kInternal: the model's output is not a number
  kStale,          // kConflict: what the caller saw is no longer the newest
};

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  static Status ok_status() { return {}; }

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  Reason reason() const { return reason_; }
  std::int64_t count() const { return count_; }

  // The same failure, said more closely.
  Status with(Reason reason, std::int64_t count = 0) && {
    reason_ = reason;
    count_ = count;
    return std::move(*this);
  }

 private:
  Code code_ = Code::kOk;
  Reason reason_ = Reason::kNone;
  std::int64_t count_ = 0;
  std::string message_;
};

inline Status invalid_argument(std::string m) { return {Code::kInvalidArgument, std::move(m)}; }
inline Status not_found(std::string m) { return {Code::kNotFound, std::move(m)}; }
inline Status conflict(std::string m) { return {Code::kConflict, std::move(m)}; }
inline Status busy(std::string m) { return {Code::kBusy, std::move(m)}; }
inline Status cancelled(std::string m) { return {Code::kCancelled, std::move(m)}; }
inline Status unavailable(std::string m) { return {Code::kUnavailable, std::move(m)}; }
inline Status deadline_exceeded(std::string m) { return {Code::kDeadline, std::move(m)}; }
inline Status corrupt(std::string m) { return {Code::kCorrupt, std::move(m)}; }
inline Status internal_error(std::string m) { return {Code::kInternal, std::move(m)}; }

// A value or the Status that says why there is none. value() and status() assert on the wrong alternative.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) { assert(!std::get<1>(state_).ok()); }

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  const T& value() const& { assert(ok()); return *std::get_if<0>(&state_); }
  T& value() & { assert(ok()); return *std::get_if<0>(&state_); }
  T&& value() && { assert(ok()); return std::move(*std::get_if<0>(&state_)); }
  const T& operator*() const& { return value(); }
  T& operator*() & { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  const T* operator->() const { return &value(); }
  T* operator->() { return &value(); }

  const Status& status() const {
    assert(!ok());
    return *std::get_if<1>(&state_);
  }
  Code code() const { return ok() ? Code::kOk : status().code(); }

 private:
  std::variant<T, Status> state_;
};

// Leaves the enclosing function with the failed status; works for Status and Result<T> return types.
#define SLUICE_RETURN_IF_ERROR(expr)                        \
  do {                                                      \
    if (::sluice::Status sluice_status_ = (expr); !sluice_status_.ok()) return sluice_status_; \
  } while (false)

#define SLUICE_CONCAT_INNER(a, b) a##b
#define SLUICE_CONCAT(a, b) SLUICE_CONCAT_INNER(a, b)
// SLUICE_ASSIGN_OR_RETURN(auto x, f()): x = value of f(), or leaves with its status.
#define SLUICE_ASSIGN_OR_RETURN(lhs, expr) SLUICE_ASSIGN_OR_RETURN_IMPL(SLUICE_CONCAT(sluice_result_, __LINE__), lhs, expr)
#define SLUICE_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                                 \
  if (!tmp.ok()) return tmp.status();                \
  lhs = std::move(tmp).value()

}  // namespace sluice
