// SPDX-License-Identifier: GPL-3.0-or-later
// Jinja's tests (`x is name`), and the operations on containers that filters and the interpreter share.
#include <cmath>
#include <unordered_map>

#include "text/jinja/functions.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

bool is_integer(const Value& v) { return v.as<std::int64_t>() != nullptr; }

bool is_iterable(const Value& v) { return v.text() || v.list() || v.dict() || v.is_undefined(); }

Result<std::int64_t> as_integer(const Value& v) {
  if (const auto* i = v.as<std::int64_t>()) return *i;
  if (const bool* b = v.as<bool>()) return static_cast<std::int64_t>(*b);
  return invalid_argument("an integer is wanted, not " + std::string(v.type_name()));
}

using Unary = bool (*)(const Value&);

const std::unordered_map<std::string_view, Unary>& unary_tests() {
  static const std::unordered_map<std::string_view, Unary> tests = {
      {"defined", [](const Value& v) { return !v.is_undefined(); }},
      {"undefined", [](const Value& v) { return v.is_undefined(); }},
      {"none", [](const Value& v) { return v.is_none(); }},
      {"string", [](const Value& v) { return v.text() != nullptr; }},
      {"mapping", [](const Value& v) { return v.dict() != nullptr; }},
      {"sequence", is_iterable},
      {"iterable", is_iterable},
      {"number", [](const Value& v) { return v.is_number(); }},
      {"integer", is_integer},
      {"float", [](const Value& v) { return v.as<double>() != nullptr; }},
      {"boolean", [](const Value& v) { return v.as<bool>() != nullptr; }},
      {"true", [](const Value& v) { return v.as<bool>() && *v.as<bool>(); }},
      {"false", [](const Value& v) { return v.as<bool>() && !*v.as<bool>(); }},
      {"callable", [](const Value& v) { return v.as<const Macro*>() || v.as<Builtin>(); }},
  };
  return tests;
}

enum class Binary { kEqual, kNotEqual, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kDivisible };

const std::unordered_map<std::string_view, Binary>& binary_tests() {
  static const std::unordered_map<std::string_view, Binary> tests = {
      {"equalto", Binary::kEqual},   {"eq", Binary::kEqual},        {"==", Binary::kEqual},
      {"sameas", Binary::kEqual},    {"ne", Binary::kNotEqual},     {"!=", Binary::kNotEqual},
      {"lt", Binary::kLess},         {"lessthan", Binary::kLess},   {"<", Binary::kLess},
      {"le", Binary::kLessEqual},    {"<=", Binary::kLessEqual},    {"gt", Binary::kGreater},
      {">", Binary::kGreater},       {"greaterthan", Binary::kGreater}, {"ge", Binary::kGreaterEqual},
      {">=", Binary::kGreaterEqual}, {"in", Binary::kIn},           {"divisibleby", Binary::kDivisible},
  };
  return tests;
}

Result<bool> negate(Result<bool> result) { return result.ok() ? Result<bool>(!*result) : result; }

Result<bool> binary_test(Binary test, const Value& a, const Value& b) {
  switch (test) {
    case Binary::kEqual: return equal(a, b);
    case Binary::kNotEqual: return !equal(a, b);
    case Binary::kLess: return less(a, b);
    case Binary::kGreater: return less(b, a);
    case Binary::kLessEqual: return negate(less(b, a));
    case Binary::kGreaterEqual: return negate(less(a, b));
    case Binary::kIn: return contains(b, a);
    case Binary::kDivisible: break;
  }
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t x, as_integer(a));
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t y, as_integer(b));
  if (y == 0) return invalid_argument("division by zero");
  return y == -1 || x % y == 0;
}

}  // namespace

bool is_test(std::string_view name) {
  return unary_tests().count(name) > 0 || binary_tests().count(name) > 0 || name == "odd" || name == "even";
}

Result<bool> apply_test(const std::string& name, const Value& input, const std::vector<Value>& arguments) {
  const auto wrong_count = [&](const char* wanted) {
    return invalid_argument("the test \"" + name + "\" takes " + wanted);
  };
  if (const auto it = unary_tests().find(name); it != unary_tests().end()) {
    if (!arguments.empty()) return wrong_count("no argument");
    return it->second(input);
  }
  if (const auto it = binary_tests().find(name); it != binary_tests().end()) {
    if (arguments.size() != 1) return wrong_count("one argument");
    return binary_test(it->second, input, arguments[0]);
  }
  if (name != "odd" && name != "even") return invalid_argument("the test \"" + name + "\" is unknown");
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t i, as_integer(input));
  return (i % 2 != 0) == (name == "odd");
}

Status undefined_error(const Value& value) {
  const Undefined* u = value.as<Undefined>();
  return invalid_argument(u == nullptr || u->what.empty() ? "an undefined value is used" : u->what);
}

Result<Value> get_item(const Value& object, const Value& key) {
  if (object.is_undefined()) return undefined_error(object);
  const auto missing = [&](const std::string& what) { return Value::undefined(what); };
  const MarkedText* name = key.text();
  if (const Dict* dict = object.dict()) {
    if (name != nullptr) {
      const Value* found = dict->find(name->view());
      return found ? *found : missing("'dict object' has no attribute '" + name->text() + "'");
    }
    for (const auto& [k, v] : dict->items) {
      if (equal(k, key)) return v;
    }
    return missing("the dict has no such key");
  }
  if (const Namespace* space = object.space(); space && name) {
    for (const auto& [k, v] : space->items) {
      if (k == name->view()) return v;
    }
    return missing("the namespace has no attribute '" + name->text() + "'");
  }
  const auto* index = key.as<std::int64_t>();
  if (index != nullptr && (object.list() || object.text())) {
    const auto size = static_cast<std::int64_t>(object.list() ? object.list()->items.size() : object.text()->length());
    const std::int64_t at = *index < 0 ? *index + size : *index;
    if (at < 0 || at >= size) return missing("the index " + std::to_string(*index) + " is out of range");
    if (object.list()) return object.list()->items[static_cast<std::size_t>(at)];
    return Value(object.text()->code_point(static_cast<std::size_t>(at)));
  }
  return missing("'" + std::string(object.type_name()) + "' has no attribute '" + (name ? name->text() : "") + "'");
}

Result<std::vector<Value>> iterate(const Value& value, Budget& budget) {
  std::vector<Value> items;
  if (const List* list = value.list()) {
    items = list->items;
  } else if (const Dict* dict = value.dict()) {
    for (const auto& [key, item] : dict->items) items.push_back(key);
  } else if (const MarkedText* text = value.text()) {
    SLUICE_RETURN_IF_ERROR(budget.charge(text->size() * 64));
    for (std::size_t at = 0; at < text->size();) {
      const std::size_t length = next_code_point(text->view().substr(at)).length;
      items.emplace_back(text->substr(at, length));
      at += length;
    }
  } else if (!value.is_undefined()) {
    return invalid_argument("a " + std::string(value.type_name()) + " can't be iterated over");
  }
  SLUICE_RETURN_IF_ERROR(budget.charge(items.size() * 16));
  return items;
}

Result<bool> contains(const Value& container, const Value& item) {
  if (const MarkedText* text = container.text()) {
    if (!item.text()) {
      return invalid_argument("'in <string>' requires string as left operand, not " + std::string(item.type_name()));
    }
    return find_text(text->view(), item.text()->view()) != std::string_view::npos;
  }
  if (const List* list = container.list()) {
    for (const Value& one : list->items) {
      if (equal(one, item)) return true;
    }
    return false;
  }
  if (const Dict* dict = container.dict()) {
    for (const auto& [key, value] : dict->items) {
      if (equal(key, item)) return true;
    }
    return false;
  }
  if (container.is_undefined()) return false;
  return invalid_argument("argument of type '" + std::string(container.type_name()) + "' is not iterable");
}

}  // namespace sluice::jinja
