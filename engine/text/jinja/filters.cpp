// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "text/jinja/functions.h"
#include "text/jinja/ordering.h"
#include "text/utf8.h"

namespace sluice::jinja {
namespace {

using Filter = Result<Value> (*)(const Value&, const Arguments&, Budget&);
using Case = MarkedText::Case;

Result<std::int64_t> integer_argument(const Arguments& arguments, std::size_t place, std::string_view name,
                                      std::int64_t fallback) {
  const Value* value = arguments.find(place, name);
  if (value == nullptr || value->is_none()) return fallback;
  if (const auto* i = value->as<std::int64_t>()) return *i;
  return invalid_argument("the argument \"" + std::string(name) + "\" must be an integer");
}

template <Case how>
Result<Value> change_case(const Value& v, const Arguments&, Budget&) {
  return Value(to_str(v).change_case(how));
}

Result<Value> trim(const Value& v, const Arguments& a, Budget&) {
  const Value* chars = a.find(0, "chars");
  if (chars == nullptr || chars->is_none()) return Value(to_str(v).strip(nullptr, true, true));
  const std::string set = to_str(*chars).text();
  return Value(to_str(v).strip(&set, true, true));
}

Result<Value> length(const Value& v, const Arguments&, Budget&) {
  std::size_t n = 0;
  if (const MarkedText* text = v.text()) {
    n = text->length();
  } else if (const List* list = v.list()) {
    n = list->items.size();
  } else if (const Dict* dict = v.dict()) {
    n = dict->items.size();
  } else if (!v.is_undefined()) {
    return invalid_argument("object of type '" + std::string(v.type_name()) + "' has no length");
  }
  return Value(static_cast<std::int64_t>(n));
}

Result<Value> join(const Value& v, const Arguments& a, Budget& budget) {
  const Value* separator = a.find(0, "d");
  const Value* attribute = a.find(1, "attribute");
  const MarkedText between = separator ? to_str(*separator) : MarkedText();
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Value> items, iterate(v, budget));
  MarkedText out;
  for (std::size_t i = 0; i < items.size(); ++i) {
    Value item = items[i];
    if (attribute != nullptr) {
      SLUICE_ASSIGN_OR_RETURN(item, follow(item, *attribute));
    }
    if (i > 0) out.append(between);
    out.append(to_str(item));
    SLUICE_RETURN_IF_ERROR(budget.charge(item.weight() + between.size()));
    if (out.size() > kMaxWeight) return invalid_argument("a text grows above 64 MiB");
  }
  return Value(std::move(out));
}

// Items for map and the select family: of what is false, as None is, they make nothing.
Result<std::vector<Value>> items_if_true(const Value& v, Budget& budget) {
  return v.truthy() ? iterate(v, budget) : std::vector<Value>();
}

// The rest of the arguments, for the filter or test named by the first.
Arguments behind_first(const Arguments& a) {
  Arguments rest = a;
  rest.positional.erase(rest.positional.begin());
  return rest;
}

Result<Value> map(const Value& v, const Arguments& a, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Value> items, items_if_true(v, budget));
  const Value* attribute = a.find(SIZE_MAX, "attribute");
  const Value* fallback = a.find(SIZE_MAX, "default");
  const bool by_filter = attribute == nullptr && !a.positional.empty() && a.positional[0].text();
  if (attribute == nullptr && !by_filter) return invalid_argument("map takes a filter's name or attribute=...");
  std::vector<Value> out;
  for (const Value& item : items) {
    Value mapped;
    if (by_filter) {
      SLUICE_ASSIGN_OR_RETURN(mapped, apply_filter(a.positional[0].text()->text(), item, behind_first(a), budget));
    } else {
      SLUICE_ASSIGN_OR_RETURN(mapped, follow(item, *attribute));
      if (mapped.is_undefined() && fallback != nullptr) mapped = *fallback;
    }
    out.push_back(std::move(mapped));
  }
  return make_list(std::move(out));
}

// select, reject (test on the item), selectattr, rejectattr (on an attribute of it). Without a test: whether it is true.
template <bool by_attribute, bool keep>
Result<Value> filter_items(const Value& v, const Arguments& a, Budget& budget) {
  const std::size_t test = by_attribute ? 1 : 0;
  if (a.positional.size() < test) return invalid_argument("selectattr and rejectattr take the name of an attribute");
  SLUICE_ASSIGN_OR_RETURN(const std::vector<Value> items, items_if_true(v, budget));
  std::vector<Value> out;
  for (const Value& item : items) {
    Value subject = item;
    if (by_attribute) {
      SLUICE_ASSIGN_OR_RETURN(subject, follow(item, a.positional[0]));
    }
    bool passes = subject.truthy();
    if (a.positional.size() > test) {
      const std::vector<Value> rest(a.positional.begin() + static_cast<std::ptrdiff_t>(test) + 1, a.positional.end());
      SLUICE_RETURN_IF_ERROR(budget.charge(subject.weight()));
      SLUICE_ASSIGN_OR_RETURN(passes, apply_test(to_str(a.positional[test]).text(), subject, rest));
    }
    if (passes == keep) out.push_back(item);
  }
  return make_list(std::move(out));
}

Result<Value> default_value(const Value& v, const Arguments& a, Budget&) {
  const Value* fallback = a.find(0, "default_value");
  const Value* also_false = a.find(1, "boolean");
  const bool replace = v.is_undefined() || (also_false && also_false->truthy() && !v.truthy());
  if (!replace) return v;
  return fallback ? *fallback : Value::literal("");
}

Result<Value> items(const Value& v, const Arguments&, Budget& budget) {
  if (v.is_undefined()) return make_list({});
  if (!v.dict()) return invalid_argument("items wants a dict, not " + std::string(v.type_name()));
  return call_method(v, "items", {}, budget);
}

Result<Value> replace(const Value& v, const Arguments& a, Budget& budget) {
  const Value* from = a.find(0, "old");
  const Value* to = a.find(1, "new");
  if (from == nullptr || to == nullptr) return invalid_argument("replace takes two texts");
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t most, integer_argument(a, 2, "count", -1));
  Arguments call{{Value(to_str(*from)), Value(to_str(*to)), Value(most)}, {}};
  return call_method(Value(to_str(v)), "replace", call, budget);
}

Result<Value> list(const Value& v, const Arguments&, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Value> out, iterate(v, budget));
  return make_list(std::move(out));
}

Result<Value> to_integer(const Value& v, const Arguments& a, Budget&) {
  if (v.is_undefined()) return undefined_error(v);
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t fallback, integer_argument(a, 0, "default", 0));
  if (const bool* b = v.as<bool>()) return Value(static_cast<std::int64_t>(*b));
  if (v.as<std::int64_t>()) return v;
  double d = NAN;
  if (const double* number = v.as<double>()) d = *number;
  if (const MarkedText* text = v.text()) {
    const MarkedText trimmed = text->strip(nullptr, true, true);
    const std::size_t skip = !trimmed.empty() && trimmed.text()[0] == '+' ? 1 : 0;
    const char* begin = trimmed.text().data() + skip;
    const char* end = trimmed.text().data() + trimmed.size();
    std::int64_t integer = 0;
    const auto whole = std::from_chars(begin, end, integer);
    if (whole.ec == std::errc() && whole.ptr == end) return Value(integer);
    const auto read = std::from_chars(begin, end, d);
    if (read.ec != std::errc() || read.ptr != end) d = NAN;
  }
  if (!(std::fabs(d) < 9.2e18)) return Value(fallback);
  return Value(static_cast<std::int64_t>(d));
}

Result<Value> to_float(const Value& v, const Arguments&, Budget&) {
  if (v.is_undefined()) return undefined_error(v);
  if (const bool* b = v.as<bool>()) return Value(*b ? 1.0 : 0.0);
  if (const auto* i = v.as<std::int64_t>()) return Value(static_cast<double>(*i));
  if (v.as<double>()) return v;
  const MarkedText trimmed = to_str(v).strip(nullptr, true, true);
  double d = 0;
  const auto read = std::from_chars(trimmed.text().data(), trimmed.text().data() + trimmed.size(), d);
  return Value(read.ec == std::errc() && read.ptr == trimmed.text().data() + trimmed.size() ? d : 0.0);
}

template <bool last>
Result<Value> end_item(const Value& v, const Arguments&, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Value> all, iterate(v, budget));
  if (all.empty()) return Value::undefined("the sequence is empty");
  return last ? all.back() : all.front();
}

Result<Value> reverse(const Value& v, const Arguments&, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(std::vector<Value> all, iterate(v, budget));
  std::reverse(all.begin(), all.end());
  if (!v.text()) return make_list(std::move(all));
  MarkedText out;
  for (const Value& one : all) out.append(*one.text());
  return Value(std::move(out));
}

Result<Value> tojson(const Value& v, const Arguments& a, Budget& budget) {
  SLUICE_ASSIGN_OR_RETURN(const std::int64_t indent, integer_argument(a, 0, "indent", -1));
  if (indent > 16) return invalid_argument("tojson indents by at most 16");
  const Value* ascii = a.find(SIZE_MAX, "ensure_ascii");
  SLUICE_ASSIGN_OR_RETURN(MarkedText out, to_json(v, static_cast<int>(indent), ascii != nullptr && ascii->truthy()));
  SLUICE_RETURN_IF_ERROR(budget.charge(out.size()));
  return Value(std::move(out));
}

Result<Value> indent(const Value& v, const Arguments& a, Budget& budget) {
  const Value* width = a.find(0, "width");
  const Value* first = a.find(1, "first");
  const Value* blank = a.find(2, "blank");
  std::string pad(4, ' ');
  if (width != nullptr && width->text()) {
    pad = width->text()->text();
  } else if (width != nullptr) {
    SLUICE_ASSIGN_OR_RETURN(const std::int64_t n, integer_argument(a, 0, "width", 4));
    if (n > 64) return invalid_argument("indent indents by at most 64");
    pad.assign(static_cast<std::size_t>(std::max<std::int64_t>(n, 0)), ' ');
  }
  MarkedText out;
  bool first_line = true;
  for (const MarkedText& line : to_str(v).split("\n", -1)) {
    if (!first_line) out.append("\n", kFromTemplate);
    if (first_line ? first && first->truthy() : !line.empty() || (blank && blank->truthy())) out.append(pad, kFromTemplate);
    out.append(line);
    SLUICE_RETURN_IF_ERROR(budget.charge(line.size() + pad.size()));
    if (out.size() > kMaxWeight) return invalid_argument("a text grows above 64 MiB");
    first_line = false;
  }
  return Value(std::move(out));
}

Result<Value> to_string(const Value& v, const Arguments&, Budget&) { return Value(to_str(v)); }
Result<Value> mark_safe(const Value& v, const Arguments&, Budget&) { return Value(to_str(v).as_safe()); }

Result<Value> absolute(const Value& v, const Arguments&, Budget&) {
  if (const auto* i = v.as<std::int64_t>(); i && *i != INT64_MIN) return Value(*i < 0 ? -*i : *i);
  if (const double* d = v.as<double>()) return Value(std::fabs(*d));
  return invalid_argument("abs wants a number, not " + std::string(v.type_name()));
}

struct Entry {
  Filter filter;
  std::size_t places;  // arguments it takes by place
  std::vector<std::string_view> names;
};

const std::unordered_map<std::string_view, Entry>& filters() {
  static const std::unordered_map<std::string_view, Entry> table = {
      {"abs", {absolute, 0, {}}},
      {"capitalize", {change_case<Case::kCapitalize>, 0, {}}},
      {"count", {length, 0, {}}},
      {"d", {default_value, 2, {"default_value", "boolean"}}},
      {"default", {default_value, 2, {"default_value", "boolean"}}},
      {"dictsort", {dictsort_filter, 0, {}}},
      {"first", {end_item<false>, 0, {}}},
      {"float", {to_float, 0, {}}},
      {"indent", {indent, 3, {"width", "first", "blank"}}},
      {"int", {to_integer, 1, {"default"}}},
      {"items", {items, 0, {}}},
      {"join", {join, 2, {"d", "attribute"}}},
      {"last", {end_item<true>, 0, {}}},
      {"length", {length, 0, {}}},
      {"list", {list, 0, {}}},
      {"lower", {change_case<Case::kLower>, 0, {}}},
      {"map", {map, 8, {"attribute", "default"}}},
      {"max", {max_filter, 2, {"case_sensitive", "attribute"}}},
      {"min", {min_filter, 2, {"case_sensitive", "attribute"}}},
      {"reject", {filter_items<false, false>, 8, {}}},
      {"rejectattr", {filter_items<true, false>, 8, {}}},
      {"replace", {replace, 3, {"old", "new", "count"}}},
      {"reverse", {reverse, 0, {}}},
      {"safe", {mark_safe, 0, {}}},
      {"select", {filter_items<false, true>, 8, {}}},
      {"selectattr", {filter_items<true, true>, 8, {}}},
      {"sort", {sort_filter, 3, {"reverse", "case_sensitive", "attribute"}}},
      {"string", {to_string, 0, {}}},
      {"title", {change_case<Case::kTitle>, 0, {}}},
      {"tojson", {tojson, 0, {"indent", "ensure_ascii"}}},
      {"trim", {trim, 1, {"chars"}}},
      {"unique", {unique_filter, 2, {"case_sensitive", "attribute"}}},
      {"upper", {change_case<Case::kUpper>, 0, {}}},
  };
  return table;
}

}  // namespace

const Value* Arguments::find(std::size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [key, value] : named) {
    if (key == name) return &value;
  }
  return nullptr;
}

Status Arguments::allow(const char* callee, std::size_t places, std::initializer_list<std::string_view> names) const {
  if (positional.size() > places) return invalid_argument(std::string(callee) + " is given too many arguments");
  for (const auto& [key, value] : named) {
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      return invalid_argument(std::string(callee) + " does not know the argument \"" + key + "\"");
    }
  }
  return {};
}

bool is_filter(std::string_view name) { return filters().count(name) > 0; }

Result<Value> apply_filter(const std::string& name, const Value& input, const Arguments& arguments, Budget& budget) {
  const auto it = filters().find(name);
  if (it == filters().end()) return invalid_argument("the filter \"" + name + "\" is unknown");
  SLUICE_RETURN_IF_ERROR(budget.charge(input.weight()));
  if (arguments.positional.size() > it->second.places) {
    return invalid_argument("the filter \"" + name + "\" is given too many arguments");
  }
  for (const auto& [key, value] : arguments.named) {
    const auto& names = it->second.names;
    if (std::find(names.begin(), names.end(), key) == names.end()) {
      return invalid_argument("the filter \"" + name + "\" does not know the argument \"" + key + "\"");
    }
  }
  return it->second.filter(input, arguments, budget);
}

}  // namespace sluice::jinja
