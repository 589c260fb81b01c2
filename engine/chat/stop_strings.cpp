// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/stop_strings.h"

#include <algorithm>
#include <utility>

namespace sluice {

StopStrings::StopStrings(std::vector<std::string> stops) : stops_(std::move(stops)) {}

std::string StopStrings::push(std::string_view text) {
  if (match_) return {};
  held_ += text;
  const std::string* best = nullptr;
  std::size_t best_end = 0;
  for (const std::string& stop : stops_) {
    const std::size_t begin = held_.find(stop);
    if (begin == std::string::npos) continue;
    const std::size_t end = begin + stop.size();
    if (!best || end < best_end || (end == best_end && stop.size() > best->size())) {
      best = &stop;
      best_end = end;
    }
  }
  if (best) {
    match_ = *best;
    std::string out = held_.substr(0, best_end - best->size());
    held_.clear();
    return out;
  }
  const std::size_t keep = longest_begin();
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, held_.size() - keep);
  return out;
}

std::string StopStrings::flush() { return std::exchange(held_, {}); }

// Length of the longest end of held_ that some stop string begins with.
std::size_t StopStrings::longest_begin() const {
  std::size_t longest = 0;
  for (const std::string& stop : stops_) {
    for (std::size_t n = std::min(stop.size() - 1, held_.size()); n > longest; --n) {
      if (held_.compare(held_.size() - n, n, stop, 0, n) == 0) longest = n;
    }
  }
  return longest;
}

}  // namespace sluice
