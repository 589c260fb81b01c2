// SPDX-License-Identifier: GPL-3.0-or-later
// Methods of Python's str and dict, and of Jinja's loop variable.
#include <algorithm>
#include <array>

#include "text/jinja/functions.h"

namespace sluice::jinja {
namespace {

constexpr std::array<std::string_view, 15> kTextMethods = {"split", "strip", "lstrip", "rstrip",     "startswith",
                                                           "endswith", "title", "upper", "lower",    "capitalize",
                                                           "replace", "join", "find", "count",       "removeprefix"};
constexpr std::array<std::string_view, 4> kDictMethods = {"items", "keys", "values", "get"};

template <std::size_t n>
bool has(const std::array<std::string_view, n>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Result<const MarkedText*> text_argument(const Arguments& a, std::size_t place, const std::string& method) {
  const Value* value = a.find(place, "");
  if (value == nullptr || !value->text()) return invalid_argument(method + "() wants a text");
  return value->text();
}

Result<Value> split(const MarkedText& text, const Arguments& a, Budget& budget) {
  const Value* separator = a.find(0, "sep");
  const Value* limit = a.find(1, "maxsplit");
  const std::int64_t most = limit && limit->as<std::int64_t>() ? *limit->as<std::int64_t>() : -1;
  std::vector<MarkedText> parts;
  if (separator == nullptr || separator->is_none()) {
    parts = text.split_white_space(most);
  } else if (separator->text() && !separator->text()->empty()) {
    parts = text.split(separator->text()->view(), most);
  } else {
    return invalid_argument("split() wants a separator that is a text and not empty");
  }
  SLUICE_RETURN_IF_ERROR(budget.charge(parts.size() * 64));
  return make_list(std::vector<Value>(std::make_move_iterator(parts.begin()), std::make_move_iterator(parts.end())));
}

// startswith and endswith take a text or a tuple of texts.
Result<Value> matches_end(const MarkedText& text, const Arguments& a, bool front) {
  const Value* wanted = a.find(0, "");
  std::vector<Value> options;
  if (wanted != nullptr && wanted->list()) options = wanted->list()->items;
  if (wanted != nullptr && wanted->text()) options.push_back(*wanted);
  if (wanted == nullptr || (options.empty() && !wanted->list())) {
    return invalid_argument("startswith() and endswith() want a text");
  }
  for (const Value& option : options) {
    if (!option.text()) return invalid_argument("startswith() and endswith() want texts");
    const std::string_view part = option.text()->view();
    if (front ? text.view().substr(0, part.size()) == part
              : text.size() >= part.size() && text.view().substr(text.size() - part.size()) == part) {
      return Value(true);
    }
  }
  return Value(false);
}

Result<Value> replace(const MarkedText& text, const Arguments& a, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(const MarkedText* from, text_argument(a, 0, "replace"));
  SLUICE_ASSIGN_OR_RETURN(const MarkedText* to, text_argument(a, 1, "replace"));
  const Value* limit = a.find(2, "count");
  const std::int64_t most = limit && limit->as<std::int64_t>() ? *limit->as<std::int64_t>() : -1;
  const std::size_t least_step = std::max<std::size_t>(from->size(), 1);
  const std::size_t bound = text.size() + (text.size() / least_step + 1) * to->size();
  if (to->size() > from->size() && bound > kMaxWeight) return invalid_argument("a text would grow above 64 MiB");
  SLUICE_RETURN_IF_ERROR(budget.charge(bound));
  return Value(text.replace(*from, *to, most));
}

Result<Value> count_or_find(const MarkedText& text, const Arguments& a, bool count) {
  SLUICE_ASSIGN_OR_RETURN(const MarkedText* part, text_argument(a, 0, count ? "count" : "find"));
  const std::size_t first = find_text(text.view(), part->view());
  if (!count) {
    if (first == std::string_view::npos) return Value(std::int64_t{-1});
    return Value(static_cast<std::int64_t>(text.substr(0, first).length()));
  }
  if (part->empty()) return Value(static_cast<std::int64_t>(text.length() + 1));
  std::int64_t n = 0;
  for (std::size_t at = first; at != std::string_view::npos; ++n) {
    at = find_text(text.view(), part->view(), at + part->size());
  }
  return Value(n);
}

Result<Value> text_method(const Value& object, const std::string& name, const Arguments& a, Budget& budget) {
  const MarkedText& text = *object.text();
  if (name == "split") {
    SLUICE_RETURN_IF_ERROR(a.allow("split()", 2, {"sep", "maxsplit"}));
    return split(text, a, budget);
  }
  SLUICE_RETURN_IF_ERROR(a.allow((name + "()").c_str(), 3));
  if (name == "strip" || name == "lstrip" || name == "rstrip") {
    const bool all = a.positional.empty() || a.positional[0].is_none();
    const std::string chars = all ? "" : to_str(a.positional[0]).text();
    return Value(text.strip(all ? nullptr : &chars, name != "rstrip", name != "lstrip"));
  }
  if (name == "startswith" || name == "endswith") return matches_end(text, a, name == "startswith");
  if (name == "replace") return replace(text, a, budget);
  if (name == "find" || name == "count") return count_or_find(text, a, name == "count");
  if (name == "join") {
    if (a.positional.size() != 1) return invalid_argument("join() wants one list of texts");
    return apply_filter("join", a.positional[0], {{object}, {}}, budget);
  }
  if (name == "removeprefix") {
    SLUICE_ASSIGN_OR_RETURN(const MarkedText* part, text_argument(a, 0, "removeprefix"));
    return Value(text.view().substr(0, part->size()) == part->view() ? text.substr(part->size()) : text);
  }
  using Case = MarkedText::Case;
  return Value(text.change_case(name == "upper"   ? Case::kUpper
                                : name == "lower" ? Case::kLower
                                : name == "title" ? Case::kTitle
                                                  : Case::kCapitalize));
}

Result<Value> dict_method(const Dict& dict, const std::string& name, const Arguments& a, Budget& budget) {
  SLUICE_RETURN_IF_ERROR(a.allow((name + "()").c_str(), 2, {"default"}));
  if (name == "get") {
    if (a.positional.empty()) return invalid_argument("get() wants a key");
    for (const auto& [key, value] : dict.items) {
      if (equal(key, a.positional[0])) return value;
    }
    const Value* fallback = a.find(1, "default");
    return fallback ? *fallback : Value(None{});
  }
  SLUICE_RETURN_IF_ERROR(budget.charge(dict.items.size() * 64));
  std::vector<Value> out;
  for (const auto& [key, value] : dict.items) {
    if (name == "items") {
      SLUICE_ASSIGN_OR_RETURN(Value pair, make_list({key, value}, true));
      out.push_back(std::move(pair));
    } else {
      out.push_back(name == "keys" ? key : value);
    }
  }
  return make_list(std::move(out));
}

}  // namespace

bool is_method(const Value& object, std::string_view name) {
  return (object.text() && has(kTextMethods, name)) || (object.dict() && has(kDictMethods, name)) ||
         (object.loop() && name == "cycle");
}

Result<Value> call_method(const Value& object, const std::string& name, const Arguments& arguments, Budget& budget) {
  SLUICE_RETURN_IF_ERROR(budget.charge(object.weight()));
  if (object.text()) return text_method(object, name, arguments, budget);
  if (object.dict()) return dict_method(*object.dict(), name, arguments, budget);
  const auto count = static_cast<std::int64_t>(arguments.positional.size());
  if (count == 0) return invalid_argument("loop.cycle() wants values");
  return arguments.positional[static_cast<std::size_t>(object.loop()->index0 % count)];
}

}  // namespace sluice::jinja
