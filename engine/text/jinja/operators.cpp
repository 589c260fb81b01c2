// SPDX-License-Identifier: GPL-3.0-or-later
// Arithmetic and joining, by Python's rules; what overflows 64 bits is an error instead of a longer integer.
#include <algorithm>
#include <cmath>
#include <optional>

#include "text/jinja/interpreter.h"

namespace sluice::jinja {
namespace {

std::optional<std::int64_t> integer(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b ? 1 : 0;
  if (const auto* i = v.as<std::int64_t>()) return *i;
  return std::nullopt;
}

double real(const Value& v) {
  const auto i = integer(v);
  return i ? static_cast<double>(*i) : *v.as<double>();
}

Status too_large() { return invalid_argument("a number grows too large"); }

Result<Value> integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return Value(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  std::int64_t out = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(out, base, &out)) return too_large();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return too_large();
  }
  return Value(out);
}

Result<Value> integers(const std::string& op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &out);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &out);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &out);
  } else if (op == "**") {
    return integer_power(a, b);
  } else if (b == 0) {
    return invalid_argument("division by zero");
  } else if (op == "/") {
    return Value(static_cast<double>(a) / static_cast<double>(b));
  } else if (a == INT64_MIN && b == -1) {
    overflow = true;
  } else {  // rounds down; the remainder has the divisor's sign
    const std::int64_t remainder = a % b;
    const bool adjust = remainder != 0 && (remainder < 0) != (b < 0);
    out = op == "//" ? a / b - (adjust ? 1 : 0) : remainder + (adjust ? b : 0);
  }
  if (overflow) return too_large();
  return Value(out);
}

Result<Value> reals(const std::string& op, double a, double b) {
  if (op == "+") return Value(a + b);
  if (op == "-") return Value(a - b);
  if (op == "*") return Value(a * b);
  if (op == "**") return Value(std::pow(a, b));
  if (b == 0) return invalid_argument("division by zero");
  if (op == "/") return Value(a / b);
  const double quotient = std::floor(a / b);
  return Value(op == "//" ? quotient : a - quotient * b);
}

// `~` joins what stands there. With `+` a safe text escapes the other one and stays safe.
Result<Value> join_texts(const MarkedText& a, const MarkedText& b, bool plus, Budget& budget) {
  // What an escaped text may grow to: five bytes each, "&#34;".
  const bool safe = plus && (a.safe() || b.safe());
  const auto most = [safe](const MarkedText& text) { return text.size() * (safe && !text.safe() ? 5 : 1); };
  if (most(a) + most(b) > kMaxWeight) return invalid_argument("a text grows above 64 MiB");
  SLUICE_RETURN_IF_ERROR(budget.charge(most(a) + most(b)));
  MarkedText out = safe ? a.escaped() : a.as_safe(false);
  out.append(safe ? b.escaped() : b);
  return Value(std::move(out));
}

Result<Value> repeat(const MarkedText& text, std::int64_t times, Budget& budget) {
  times = std::max<std::int64_t>(times, 0);
  if (!text.empty() && times > static_cast<std::int64_t>(kMaxWeight / text.size())) {
    return invalid_argument("a text grows above 64 MiB");
  }
  if (text.empty()) return Value(text);
  SLUICE_RETURN_IF_ERROR(budget.charge(text.size() * static_cast<std::size_t>(times)));
  MarkedText out;
  for (std::int64_t i = 0; i < times; ++i) out.append(text);
  return Value(out.as_safe(text.safe()));
}

}  // namespace

Result<Value> binary(const std::string& op, const Value& a, const Value& b, Budget& budget) {
  if (op == "~") return join_texts(to_str(a), to_str(b), false, budget);
  for (const Value* v : {&a, &b}) {
    if (v->is_undefined()) return undefined_error(*v);
  }
  if (a.is_number() && b.is_number()) {
    return integer(a) && integer(b) ? integers(op, *integer(a), *integer(b)) : reals(op, real(a), real(b));
  }
  if (op == "+" && a.text() && b.text()) return join_texts(*a.text(), *b.text(), true, budget);
  if (op == "+" && a.list() && b.list() && a.list()->tuple == b.list()->tuple) {
    SLUICE_RETURN_IF_ERROR(budget.charge(16 * (a.list()->items.size() + b.list()->items.size())));
    std::vector<Value> items = a.list()->items;
    items.insert(items.end(), b.list()->items.begin(), b.list()->items.end());
    return make_list(std::move(items), a.list()->tuple);
  }
  if (op == "*" && a.text() && integer(b)) return repeat(*a.text(), *integer(b), budget);
  if (op == "*" && b.text() && integer(a)) return repeat(*b.text(), *integer(a), budget);
  return invalid_argument("\"" + op + "\" can't join " + std::string(a.type_name()) + " and " + b.type_name());
}

}  // namespace sluice::jinja
