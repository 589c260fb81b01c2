// SPDX-License-Identifier: GPL-3.0-or-later
// The interpreter's attributes, slices, comparisons and calls.
#include <algorithm>
#include <array>
#include <ctime>

#include "text/jinja/interpreter.h"

namespace sluice::jinja {
namespace {

constexpr std::int64_t kMaxRange = 100'000;

Result<Value> loop_attribute(const Loop& loop, const std::string& name) {
  if (name == "index") return Value(loop.index0 + 1);
  if (name == "index0") return Value(loop.index0);
  if (name == "revindex") return Value(loop.length - loop.index0);
  if (name == "revindex0") return Value(loop.length - loop.index0 - 1);
  if (name == "first") return Value(loop.index0 == 0);
  if (name == "last") return Value(loop.index0 + 1 == loop.length);
  if (name == "length") return Value(loop.length);
  if (name == "depth") return Value(std::int64_t{1});  // deeper only in recursive loops, which are not supported
  if (name == "depth0") return Value(std::int64_t{0});
  if (name == "previtem") return loop.previous;
  if (name == "nextitem") return loop.next;
  return Value::undefined("loop has no attribute '" + name + "'");
}

// Python's slice.indices: begin, end and step clipped to a sequence of `size`.
struct Range {
  std::int64_t begin, end, step;
};
Result<Range> clip(const std::array<Value, 3>& parts, std::int64_t size) {
  std::array<std::int64_t, 3> given{};
  std::array<bool, 3> has{};
  for (std::size_t i = 0; i < 3; ++i) {
    if (parts[i].is_none()) continue;
    const auto* value = parts[i].as<std::int64_t>();
    if (value == nullptr) return invalid_argument("slice indices must be integers or None");
    given[i] = *value;
    has[i] = true;
  }
  const std::int64_t step = has[2] ? std::clamp<std::int64_t>(given[2], -size - 1, size + 1) : 1;
  if (step == 0) return invalid_argument("slice step cannot be zero");
  const std::int64_t least = step > 0 ? 0 : -1;
  const std::int64_t most = step > 0 ? size : size - 1;
  const auto place = [&](std::size_t i, std::int64_t fallback) {
    if (!has[i]) return fallback;
    return given[i] < 0 ? std::max(given[i] + size, least) : std::min(given[i], most);
  };
  return Range{place(0, step > 0 ? least : most), place(1, step > 0 ? most : least), step};
}

Result<Value> make_range(const Arguments& a) {
  SLUICE_RETURN_IF_ERROR(a.allow("range()", 3));
  std::array<std::int64_t, 3> numbers{0, 0, 1};
  for (std::size_t i = 0; i < a.positional.size(); ++i) {
    const auto* n = a.positional[i].as<std::int64_t>();
    if (n == nullptr) return invalid_argument("range() wants integers");
    numbers[a.positional.size() == 1 ? 1 : i] = *n;
  }
  if (a.positional.empty() || numbers[2] == 0) return invalid_argument("range() wants an end, and no step of zero");
  std::vector<Value> out;
  for (std::int64_t n = numbers[0]; numbers[2] > 0 ? n < numbers[1] : n > numbers[1];) {
    if (static_cast<std::int64_t>(out.size()) >= kMaxRange) {
      return invalid_argument("range() gives more than 100000 numbers");
    }
    out.emplace_back(n);
    if (__builtin_add_overflow(n, numbers[2], &n)) break;
  }
  return make_list(std::move(out));
}

Result<Value> format_time(const Arguments& a, std::int64_t now_unix) {
  if (a.positional.size() != 1 || !a.positional[0].text()) return invalid_argument("strftime_now() wants a format");
  const std::string format = a.positional[0].text()->text() + " ";  // never an empty result, which strftime can't tell
  const std::time_t time = now_unix < 0 ? std::time(nullptr) : static_cast<std::time_t>(now_unix);
  std::tm parts{};
  gmtime_r(&time, &parts);
  std::array<char, 256> buffer{};
  const std::size_t n = std::strftime(buffer.data(), buffer.size(), format.c_str(), &parts);
  if (n == 0) return invalid_argument("strftime_now() is given a format that is too long");
  return Value(MarkedText(std::string(buffer.data(), n - 1), a.positional[0].text()->dominant()));
}

}  // namespace

Result<Value> Interpreter::attribute(const Value& object, const std::string& name) {
  if (object.is_undefined()) return undefined_error(object);
  if (const Loop* loop = object.loop()) return loop_attribute(*loop, name);
  if (const Dict* dict = object.dict()) SLUICE_RETURN_IF_ERROR(budget_.charge(16 * dict->items.size()));  // a linear search
  if (const Namespace* space = object.space()) SLUICE_RETURN_IF_ERROR(budget_.charge(16 * space->items.size()));
  return get_item(object, Value::literal(name));
}

Result<Value> Interpreter::subscript(const Value& object, const Value& index) {
  if (object.text()) SLUICE_RETURN_IF_ERROR(budget_.charge(object.weight()));  // characters are counted from the front
  if (const Dict* dict = object.dict()) SLUICE_RETURN_IF_ERROR(budget_.charge(16 * dict->items.size()));
  if (object.loop() && index.text()) return loop_attribute(*object.loop(), index.text()->text());
  return get_item(object, index);
}

Result<Value> Interpreter::slice(const Expr& expr, Frame& frame) {
  SLUICE_ASSIGN_OR_RETURN(const Value object, evaluate(*expr.args[0], frame));
  std::array<Value, 3> parts = {Value(None{}), Value(None{}), Value(None{})};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!expr.args[i + 1]) continue;
    SLUICE_ASSIGN_OR_RETURN(parts[i], evaluate(*expr.args[i + 1], frame));
  }
  if (object.is_undefined()) return undefined_error(object);
  SLUICE_RETURN_IF_ERROR(budget_.charge(object.weight()));
  if (const MarkedText* text = object.text()) {
    SLUICE_ASSIGN_OR_RETURN(const Range range, clip(parts, static_cast<std::int64_t>(text->length())));
    return Value(text->slice(range.begin, range.end, range.step));
  }
  const List* list = object.list();
  if (list == nullptr) return invalid_argument("a " + std::string(object.type_name()) + " can't be sliced");
  SLUICE_ASSIGN_OR_RETURN(const Range range, clip(parts, static_cast<std::int64_t>(list->items.size())));
  std::vector<Value> out;
  for (std::int64_t i = range.begin; range.step > 0 ? i < range.end : i > range.end; i += range.step) {
    out.push_back(list->items[static_cast<std::size_t>(i)]);
  }
  return make_list(std::move(out), list->tuple);
}

Result<Value> Interpreter::compare(const Expr& expr, Frame& frame) {
  SLUICE_ASSIGN_OR_RETURN(Value left, evaluate(*expr.args[0], frame));
  for (std::size_t i = 0; i < expr.names.size(); ++i) {
    SLUICE_ASSIGN_OR_RETURN(Value right, evaluate(*expr.args[i + 1], frame));
    SLUICE_RETURN_IF_ERROR(budget_.charge(left.weight() + right.weight()));
    const std::string& op = expr.names[i];
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = equal(left, right) == (op == "==");
    } else if (op == "in" || op == "not in") {
      SLUICE_ASSIGN_OR_RETURN(holds, contains(right, left));
      if (op == "not in") holds = !holds;
    } else {
      const bool swapped = op == ">" || op == "<=";
      SLUICE_ASSIGN_OR_RETURN(holds, swapped ? less(right, left) : less(left, right));
      if (op == "<=" || op == ">=") holds = !holds;
    }
    if (!holds) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

Result<Value> Interpreter::call(const Expr& expr, Frame& frame) {
  const Expr& callee = *expr.args[0];
  if (callee.kind == ExprKind::kAttribute) {
    SLUICE_ASSIGN_OR_RETURN(const Value object, evaluate(*callee.args[0], frame));
    if (object.is_undefined()) return undefined_error(object);
    if (is_method(object, callee.name)) {
      SLUICE_ASSIGN_OR_RETURN(const Arguments args, arguments(expr, frame));
      return call_method(object, callee.name, args, budget_);
    }
    if (!object.space()) {
      return invalid_argument("a " + std::string(object.type_name()) + " has no method " + callee.name + "() here");
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const Value function, evaluate(callee, frame));
  SLUICE_ASSIGN_OR_RETURN(Arguments args, arguments(expr, frame));
  if (const auto* macro = function.as<const Macro*>()) return call_macro(**macro, std::move(args));
  if (const Builtin* builtin = function.as<Builtin>()) return call_builtin(*builtin, args);
  if (function.is_undefined()) return undefined_error(function);
  return invalid_argument("a " + std::string(function.type_name()) + " can't be called");
}

Result<Value> Interpreter::call_macro(const Macro& macro, Arguments given) {
  Frame frame{{}, &globals_};
  std::size_t named_used = 0;
  for (std::size_t i = 0; i < macro.parameters.size(); ++i) {
    const auto& [name, fallback] = macro.parameters[i];
    if (const Value* value = given.find(i, name)) {
      frame.set(name, *value);
      named_used += i >= given.positional.size() ? 1 : 0;
    } else if (fallback) {
      SLUICE_ASSIGN_OR_RETURN(Value value, evaluate(*fallback, frame));
      frame.set(name, std::move(value));
    } else {
      frame.set(name, Value::undefined("parameter '" + name + "' was not provided"));
    }
  }
  if (named_used != given.named.size() || given.positional.size() > macro.parameters.size()) {
    return invalid_argument("the macro \"" + macro.name + "\" is given an argument it does not take");
  }
  MarkedText out;
  const Result<Flow> flow = execute(macro.body, frame, out);
  if (!flow.ok()) return flow.status();
  return Value(std::move(out));
}

Result<Value> Interpreter::make_namespace(const Arguments& a) {
  SLUICE_RETURN_IF_ERROR(budget_.charge(64));
  auto space = std::make_shared<Namespace>();
  if (!a.positional.empty() && a.positional[0].dict()) {
    for (const auto& [key, value] : a.positional[0].dict()->items) space->items.emplace_back(to_str(key).text(), value);
  }
  for (const auto& [key, value] : a.named) space->items.emplace_back(key, value);
  namespaces_.push_back(space);
  return Value(std::move(space));
}

Result<Value> Interpreter::call_builtin(Builtin builtin, const Arguments& a) {
  switch (builtin) {
    case Builtin::kRange: {
      SLUICE_ASSIGN_OR_RETURN(Value numbers, make_range(a));
      SLUICE_RETURN_IF_ERROR(budget_.charge(16 * numbers.list()->items.size()));
      return numbers;
    }
    case Builtin::kNamespace: return make_namespace(a);
    case Builtin::kStrftimeNow: return format_time(a, now_unix_);
    case Builtin::kDict: {
      std::vector<std::pair<Value, Value>> items;
      for (const auto& [key, value] : a.named) items.emplace_back(Value::literal(key), value);
      return make_dict(std::move(items));
    }
    case Builtin::kRaiseException: break;
  }
  return invalid_argument(a.positional.empty() ? "the template raises an error" : to_str(a.positional[0]).text())
      .with(Reason::kTemplate);
}

}  // namespace sluice::jinja
