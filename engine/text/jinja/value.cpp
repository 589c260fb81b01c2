// SPDX-License-Identifier: GPL-3.0-or-later
#include "text/jinja/value.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "text/utf8.h"

namespace sluice::jinja {
namespace {

std::optional<double> number(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b ? 1.0 : 0.0;
  if (const auto* i = v.as<std::int64_t>()) return static_cast<double>(*i);
  if (const double* d = v.as<double>()) return *d;
  return std::nullopt;
}

std::optional<std::int64_t> integer(const Value& v) {
  if (const bool* b = v.as<bool>()) return *b ? 1 : 0;
  if (const auto* i = v.as<std::int64_t>()) return *i;
  return std::nullopt;
}

Status too_deep() {
  return invalid_argument("lists and dicts nest deeper than " + std::to_string(kMaxNesting) + " levels");
}

// Adds `item` to what its container nests and weighs.
template <class Container>
Status weigh(Container& container, const Value& item) {
  container.depth = std::max(container.depth, item.depth() + 1);
  container.weight += item.weight();
  if (container.depth > kMaxNesting) return too_deep();
  if (container.weight > kMaxWeight) return invalid_argument("a list or dict grows above 64 MiB");
  return {};
}

// Equal for equal keys only: 1, 1.0 and true are one key.
std::string key_text(const Value& key) {
  if (const MarkedText* text = key.text()) return "t" + text->text();
  if (const auto i = integer(key)) return "i" + std::to_string(*i);
  if (const double* d = key.as<double>()) {
    const bool whole = *d > -9e18 && *d < 9e18 && static_cast<double>(static_cast<std::int64_t>(*d)) == *d;
    return whole ? "i" + std::to_string(static_cast<std::int64_t>(*d)) : "d" + float_repr(*d);
  }
  return "n";
}

bool equal_lists(const List& a, const List& b) {
  return a.tuple == b.tuple && std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), equal);
}

bool equal_dicts(const Dict& a, const Dict& b) {
  if (a.items.size() != b.items.size()) return false;
  std::unordered_map<std::string, const Value*> others;
  for (const auto& [key, value] : b.items) others.emplace(key_text(key), &value);
  return std::all_of(a.items.begin(), a.items.end(), [&](const std::pair<Value, Value>& item) {
    const auto it = others.find(key_text(item.first));
    return it != others.end() && equal(item.second, *it->second);
  });
}

Result<Value> convert(const DataValue& data, Mark mark, int level) {
  if (level > kMaxNesting) return too_deep();
  if (const bool* b = std::get_if<bool>(&data.v)) return Value(*b);
  if (const auto* i = std::get_if<std::int64_t>(&data.v)) return Value(*i);
  if (const double* d = std::get_if<double>(&data.v)) return Value(*d);
  if (const auto* s = std::get_if<std::string>(&data.v)) return Value(MarkedText(to_valid_utf8(*s), mark));
  if (const auto* list = std::get_if<DataValue::List>(&data.v)) {
    std::vector<Value> items;
    for (const DataValue& item : *list) {
      SLUICE_ASSIGN_OR_RETURN(Value value, convert(item, mark, level + 1));
      items.push_back(std::move(value));
    }
    return make_list(std::move(items));
  }
  if (const auto* dict = std::get_if<DataValue::Dict>(&data.v)) {
    std::vector<std::pair<Value, Value>> items;
    for (const auto& [key, item] : *dict) {
      SLUICE_ASSIGN_OR_RETURN(Value value, convert(item, mark, level + 1));
      items.emplace_back(MarkedText(to_valid_utf8(key), mark), std::move(value));
    }
    return make_dict(std::move(items));
  }
  return Value(None{});
}

}  // namespace

bool Value::truthy() const {
  if (const bool* b = as<bool>()) return *b;
  if (const auto* i = as<std::int64_t>()) return *i != 0;
  if (const double* d = as<double>()) return *d != 0;
  if (const MarkedText* t = text()) return !t->empty();
  if (const List* l = list()) return !l->items.empty();
  if (const Dict* d = dict()) return !d->items.empty();
  return !is_undefined() && !is_none();
}

int Value::depth() const {
  if (const List* l = list()) return l->depth;
  if (const Dict* d = dict()) return d->depth;
  return 0;
}

std::size_t Value::weight() const {
  if (const MarkedText* t = text()) return t->size() + 16;
  if (const List* l = list()) return l->weight;
  if (const Dict* d = dict()) return d->weight;
  return 16;
}

const char* Value::type_name() const {
  if (is_undefined()) return "Undefined";
  if (is_none()) return "NoneType";
  if (as<bool>()) return "bool";
  if (as<std::int64_t>()) return "int";
  if (as<double>()) return "float";
  if (text()) return "str";
  if (const List* l = list()) return l->tuple ? "tuple" : "list";
  if (dict()) return "dict";
  if (space()) return "namespace";
  if (loop()) return "loop";
  return "function";
}

const Value* Dict::find(std::string_view key) const {
  for (const auto& [k, v] : items) {
    const MarkedText* text = k.text();
    if (text != nullptr && text->view() == key) return &v;
  }
  return nullptr;
}

Result<Value> make_list(std::vector<Value> items, bool tuple) {
  auto list = std::make_shared<List>();
  for (const Value& item : items) SLUICE_RETURN_IF_ERROR(weigh(*list, item));
  list->items = std::move(items);
  list->tuple = tuple;
  return Value(std::shared_ptr<const List>(std::move(list)));
}

Result<Value> make_dict(std::vector<std::pair<Value, Value>> items) {
  auto dict = std::make_shared<Dict>();
  std::unordered_map<std::string, std::size_t> seen;
  for (auto& [key, value] : items) {
    SLUICE_RETURN_IF_ERROR(weigh(*dict, key));
    SLUICE_RETURN_IF_ERROR(weigh(*dict, value));
    if (!key.text() && !key.is_number() && !key.is_none()) {
      return invalid_argument("a " + std::string(key.type_name()) + " can't be the key of a dict");
    }
    const auto [it, fresh] = seen.emplace(key_text(key), dict->items.size());
    if (!fresh) {
      dict->items[it->second].second = std::move(value);
      continue;
    }
    dict->items.emplace_back(std::move(key), std::move(value));
  }
  return Value(std::shared_ptr<const Dict>(std::move(dict)));
}

Result<Value> from_data(const DataValue& data, Mark mark) { return convert(data, mark, 0); }

bool equal(const Value& a, const Value& b) {
  if (a.text() && b.text()) return a.text()->view() == b.text()->view();
  if (integer(a) && integer(b)) return *integer(a) == *integer(b);
  if (number(a) && number(b)) return *number(a) == *number(b);
  if (a.list() && b.list()) return equal_lists(*a.list(), *b.list());
  if (a.dict() && b.dict()) return equal_dicts(*a.dict(), *b.dict());
  if (a.space() && b.space()) return a.space() == b.space();
  return (a.is_none() && b.is_none()) || (a.is_undefined() && b.is_undefined());
}

Result<bool> less(const Value& a, const Value& b) {
  if (a.text() && b.text()) return a.text()->view() < b.text()->view();  // UTF-8 keeps the order of code points
  if (integer(a) && integer(b)) return *integer(a) < *integer(b);
  if (number(a) && number(b)) return *number(a) < *number(b);
  if (a.list() && b.list()) {
    const auto& x = a.list()->items;
    const auto& y = b.list()->items;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      if (!equal(x[i], y[i])) return less(x[i], y[i]);
    }
    return x.size() < y.size();
  }
  for (const Value* v : {&a, &b}) {
    if (const Undefined* u = v->as<Undefined>()) return invalid_argument(u->what);
  }
  return invalid_argument("'<' is not supported between '" + std::string(a.type_name()) + "' and '" + b.type_name() + "'");
}

}  // namespace sluice::jinja
