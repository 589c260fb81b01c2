// SPDX-License-Identifier: GPL-3.0-or-later
// Command-line arguments of one verb: `--name value` and `--flag`, checked against what the verb knows. A value, no thread rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace sluice::headless {

struct OptionSpec {
  std::string name;       // "--data"
  std::string value;      // "DIR", or "" for a flag
  std::string help;
  bool required = false;
};

struct VerbSpec {
  std::string name, summary;
  std::vector<OptionSpec> options;
  std::string positional;  // "decode|prefill|..." or ""
};

class Args {
 public:
  // kInvalidArgument names the argument that is unknown, missing or without its value.
  static Result<Args> parse(const VerbSpec& spec, const std::vector<std::string>& words);

  bool has(const std::string& name) const { return values_.contains(name); }
  std::string text(const std::string& name, const std::string& absent = "") const;
  // The number within [low, high], `absent` where it was not given.
  Result<std::int64_t> integer(const std::string& name, std::int64_t absent, std::int64_t low, std::int64_t high) const;
  Result<double> number(const std::string& name, double absent, double low, double high) const;
  const std::string& positional() const { return positional_; }

 private:
  std::map<std::string, std::string> values_;
  std::string positional_;
};

std::string usage(const VerbSpec& spec);

}  // namespace sluice::headless
