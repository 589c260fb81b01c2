// SPDX-License-Identifier: GPL-3.0-or-later
// The filters, tests and methods that templates may call, as Jinja and Python define them. Pure but for the budget.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "text/jinja/value.h"

namespace sluice::jinja {

// What a render may still spend: a step for each node evaluated and for each 64 bytes or 4 items handled.
class Budget {
 public:
  explicit Budget(std::int64_t steps) : left_(steps) {}
  Status charge(std::size_t bytes) {
    left_ -= 1 + static_cast<std::int64_t>(bytes / 64);
    return left_ >= 0 ? Status() : invalid_argument("the template takes too many steps: shorten the conversation");
  }

 private:
  std::int64_t left_;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;

  // The argument of that place or name; null if it is not given.
  const Value* find(std::size_t place, std::string_view name) const;
  // Fails when there are more places, or other names, than these.
  Status allow(const char* callee, std::size_t places, std::initializer_list<std::string_view> names = {}) const;
};

bool is_filter(std::string_view name);
bool is_test(std::string_view name);
bool is_method(const Value& object, std::string_view name);

Result<Value> apply_filter(const std::string& name, const Value& input, const Arguments& arguments, Budget& budget);
Result<bool> apply_test(const std::string& name, const Value& input, const std::vector<Value>& arguments);
Result<Value> call_method(const Value& object, const std::string& name, const Arguments& arguments, Budget& budget);

// x.name and x[name] without the methods; undefined where there is none.
Result<Value> get_item(const Value& object, const Value& key);
// Items of a list, keys of a dict, characters of a text; nothing of an undefined value; an error for others.
Result<std::vector<Value>> iterate(const Value& value, Budget& budget);
Result<bool> contains(const Value& container, const Value& item);
Status undefined_error(const Value& value);  // what to say when `value`, which is undefined, is used

}  // namespace sluice::jinja
