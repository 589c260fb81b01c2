// SPDX-License-Identifier: GPL-3.0-or-later
// Looks for stop strings in text that arrives in pieces. Holds back only the longest end that could still grow into one.
// What it decides does not depend on where the pieces are cut. Used by one thread.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

class StopStrings {
 public:
  // None empty.
  explicit StopStrings(std::vector<std::string> stops);

  // The text that became certain. Of all matches the one that is complete first counts (of several that end together the
  // longest); the text ends where it begins, and nothing comes after it.
  std::string push(std::string_view text);
  // What was held back, when generation ends without a match.
  std::string flush();

  bool matched() const { return match_.has_value(); }
  const std::string& match() const { return *match_; }  // the stop string; only when matched()

 private:
  std::size_t longest_begin() const;

  const std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> match_;
};

}  // namespace sluice
