// SPDX-License-Identifier: GPL-3.0-or-later
// JSON-like data that a client hands to a chat template: tools, tool calls, extra arguments. No JSON library needed; who
// has one converts. A value, no thread rules.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace sluice {

struct DataValue {
  using List = std::vector<DataValue>;
  using Dict = std::vector<std::pair<std::string, DataValue>>;  // in the client's order; of equal keys the last counts

  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Dict> v;  // monostate = null

  DataValue() = default;
  DataValue(std::nullptr_t) {}
  DataValue(bool b) : v(b) {}
  DataValue(int i) : v(static_cast<std::int64_t>(i)) {}
  DataValue(std::int64_t i) : v(i) {}
  DataValue(double d) : v(d) {}
  DataValue(const char* s) : v(std::string(s)) {}
  DataValue(std::string s) : v(std::move(s)) {}
  DataValue(List l) : v(std::move(l)) {}
  DataValue(Dict d) : v(std::move(d)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(v); }
  bool operator==(const DataValue&) const = default;
};

}  // namespace sluice
