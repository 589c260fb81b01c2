// SPDX-License-Identifier: GPL-3.0-or-later
// Values of the template language: Python's, as far as chat templates use them. Containers are immutable once made and
// shared; only a namespace changes. A value, no thread rules (a render owns its own).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "text/data_value.h"
#include "text/jinja/marked_text.h"

namespace sluice::jinja {

class Value;
struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;  // in syntax.h

struct Undefined {
  std::string what;  // "'name' is undefined" and the like: what to say when it is used after all
};
struct None {};
enum class Builtin { kRange, kNamespace, kDict, kRaiseException, kStrftimeNow };

inline constexpr int kMaxNesting = 100;  // of lists and dicts; freeing and printing them recurses
// Bytes that a value would print, roughly. Values are shared, so that a small program could build [x, x] of [x, x] ...
inline constexpr std::size_t kMaxWeight = std::size_t{64} << 20;

class Value {
 public:
  using Variant = std::variant<Undefined, None, bool, std::int64_t, double, std::shared_ptr<const MarkedText>,
                               std::shared_ptr<const List>, std::shared_ptr<const Dict>, std::shared_ptr<Namespace>,
                               std::shared_ptr<const Loop>, const Macro*, Builtin>;

  Value() = default;
  Value(Undefined u) : v_(std::move(u)) {}
  Value(None n) : v_(n) {}
  Value(bool b) : v_(b) {}
  Value(std::int64_t i) : v_(i) {}
  Value(double d) : v_(d) {}
  Value(MarkedText t) : v_(std::make_shared<const MarkedText>(std::move(t))) {}
  Value(std::shared_ptr<const List> l) : v_(std::move(l)) {}
  Value(std::shared_ptr<const Dict> d) : v_(std::move(d)) {}
  Value(std::shared_ptr<Namespace> n) : v_(std::move(n)) {}
  Value(std::shared_ptr<const Loop> l) : v_(std::move(l)) {}
  Value(const Macro* m) : v_(m) {}
  Value(Builtin b) : v_(b) {}

  static Value undefined(std::string what) { return Value(Undefined{std::move(what)}); }
  static Value literal(std::string text) { return Value(MarkedText(std::move(text), kFromTemplate)); }

  template <class T>
  const T* as() const { return std::get_if<T>(&v_); }
  bool is_undefined() const { return as<Undefined>() != nullptr; }
  bool is_none() const { return as<None>() != nullptr; }
  const MarkedText* text() const { return pointer<std::shared_ptr<const MarkedText>>(); }
  const List* list() const { return pointer<std::shared_ptr<const List>>(); }
  const Dict* dict() const { return pointer<std::shared_ptr<const Dict>>(); }
  Namespace* space() const { return pointer<std::shared_ptr<Namespace>>(); }
  const Loop* loop() const { return pointer<std::shared_ptr<const Loop>>(); }
  bool is_number() const { return as<bool>() || as<std::int64_t>() || as<double>(); }

  bool truthy() const;
  int depth() const;           // 0 for scalars
  std::size_t weight() const;  // see kMaxWeight
  const char* type_name() const;  // Python's name of the type

 private:
  template <class P>
  auto pointer() const -> decltype(std::declval<const P&>().get()) {
    const P* p = std::get_if<P>(&v_);
    return p == nullptr ? nullptr : p->get();
  }

  Variant v_;
};

struct List {
  std::vector<Value> items;
  bool tuple = false;
  int depth = 1;
  std::size_t weight = 16;
};
struct Dict {
  std::vector<std::pair<Value, Value>> items;  // in order of insertion, keys distinct
  int depth = 1;
  std::size_t weight = 16;

  const Value* find(std::string_view key) const;
};
struct Namespace {
  std::vector<std::pair<std::string, Value>> items;
};
struct Loop {
  std::int64_t index0 = 0;
  std::int64_t length = 0;
  Value previous;
  Value next;
};

// kInvalidArgument where the result would pass kMaxNesting or kMaxWeight.
Result<Value> make_list(std::vector<Value> items, bool tuple = false);
Result<Value> make_dict(std::vector<std::pair<Value, Value>> items);  // of equal keys the last value counts
Result<Value> from_data(const DataValue& data, Mark mark);

// Python's a == b and a < b. `less` fails for types that have no order.
bool equal(const Value& a, const Value& b);
Result<bool> less(const Value& a, const Value& b);

// Python's str(v) and repr(v); json.dumps(v, ensure_ascii). `indent` < 0 = one line.
MarkedText to_str(const Value& value);
MarkedText to_repr(const Value& value);
Result<MarkedText> to_json(const Value& value, int indent, bool ensure_ascii);

std::string float_repr(double d);

}  // namespace sluice::jinja
