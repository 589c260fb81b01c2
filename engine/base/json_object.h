// SPDX-License-Identifier: GPL-3.0-or-later
// Writes JSON text: strings, numbers, and objects field by field; no JSON library needed. Pure functions and a value, no
// thread rules.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

// `text` in quotes; bytes that are no UTF-8 become U+FFFD.
void append_json_string(std::string& out, std::string_view text);
// The shortest text that reads back as the same number; null when it is not finite.
void append_json_number(std::string& out, double value);
void append_json_number(std::string& out, float value);

// One flat object, its fields in the order of the calls. Names must differ.
class JsonObject {
 public:
  // Begins a field; the caller appends its value, JSON already.
  std::string& key(std::string_view name);

  JsonObject& add(std::string_view name, std::string_view value) {
    append_json_string(key(name), value);
    return *this;
  }
  JsonObject& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  JsonObject& add(std::string_view name, std::floating_point auto value) {  // null when not finite
    append_json_number(key(name), value);
    return *this;
  }
  JsonObject& add(std::string_view name, std::integral auto value) { return add_raw(name, std::to_string(value)); }
  JsonObject& add(std::string_view name, bool value) { return add_raw(name, value ? "true" : "false"); }
  template <std::integral T>
  JsonObject& add(std::string_view name, std::optional<T> value) {  // null when there is none
    return value ? add(name, *value) : add_raw(name, "null");
  }
  template <class T>
  JsonObject& add(std::string_view name, const std::vector<T>& numbers) {
    std::string& out = key(name) += '[';
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i > 0) out += ',';
      if constexpr (std::integral<T>) out += std::to_string(numbers[i]);
      else append_json_number(out, numbers[i]);
    }
    out += ']';
    return *this;
  }
  JsonObject& add_raw(std::string_view name, std::string_view json) {
    key(name) += json;
    return *this;
  }

  std::string text() const { return "{" + body_ + "}"; }

 private:
  std::string body_;
};

}  // namespace sluice
