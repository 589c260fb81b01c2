// SPDX-License-Identifier: GPL-3.0-or-later
#include "headless/args.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace sluice::headless {

Result<Args> Args::parse(const VerbSpec& spec, const std::vector<std::string>& words) {
  Args args;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (word.rfind("--", 0) != 0) {
      if (spec.positional.empty() || !args.positional_.empty()) {
        return invalid_argument("\"" + word + "\" is not expected here");
      }
      args.positional_ = word;
      continue;
    }
    std::optional<std::string> value;
    if (const std::size_t equals = word.find('='); equals != std::string::npos) {
      value = word.substr(equals + 1);
      word.resize(equals);
    }
    const auto option = std::find_if(spec.options.begin(), spec.options.end(), [&](const OptionSpec& o) { return o.name == word; });
    if (option == spec.options.end()) return invalid_argument("option " + word + " is unknown");
    if (option->value.empty()) {
      if (value) return invalid_argument(word + " takes no value");
      value = "";
    } else if (!value) {
      if (i + 1 >= words.size()) return invalid_argument(word + " needs a value: " + option->value);
      value = words[++i];
    }
    if (!args.values_.emplace(word, *value).second) return invalid_argument(word + " is given twice");
  }
  for (const OptionSpec& option : spec.options) {
    if (option.required && !args.has(option.name)) return invalid_argument(option.name + " " + option.value + " is missing");
  }
  if (!spec.positional.empty() && args.positional_.empty()) return invalid_argument("say which: " + spec.positional);
  return args;
}

std::string Args::text(const std::string& name, const std::string& absent) const {
  const auto found = values_.find(name);
  return found == values_.end() ? absent : found->second;
}

Result<std::int64_t> Args::integer(const std::string& name, std::int64_t absent, std::int64_t low, std::int64_t high) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return absent;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high) {
    return invalid_argument(name + " " + text + ": give a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

Result<double> Args::number(const std::string& name, double absent, double low, double high) const {
  const auto found = values_.find(name);
  if (found == values_.end()) return absent;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  if (found->second.empty() || *end != '\0' || !std::isfinite(value) || value < low || value > high) {
    return invalid_argument(name + " " + found->second + ": give a number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return value;
}

std::string usage(const VerbSpec& spec) {
  std::string out = "sluice-headless " + spec.name;
  if (!spec.positional.empty()) out += " " + spec.positional;
  out += "\n  " + spec.summary + "\n\n";
  for (const OptionSpec& option : spec.options) {
    std::string left = "  " + option.name + (option.value.empty() ? "" : " " + option.value);
    left.resize(std::max<std::size_t>(left.size() + 1, 26), ' ');
    out += left + option.help + (option.required ? " (needed)" : "") + "\n";
  }
  return out;
}

}  // namespace sluice::headless
