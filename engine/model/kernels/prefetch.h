// SPDX-License-Identifier: GPL-3.0-or-later
// Memory that somebody will read soon, asked for a few cache lines at a time while other work keeps the core busy: asked
// for at once it would only make the core wait. One thread at a time; allocates nothing once warm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

class alignas(64) PrefetchStream {  // lines of its own: every core has one and writes it all the time
 public:
  void clear() { ranges_.clear(), next_ = 0, at_ = end_ = nullptr, lines_ = 0; }
  // The range may be empty. Ranges are asked for in the order in which they were added.
  void add(const std::int16_t* begin, std::int64_t words) {
    if (words <= 0) return;
    const auto* first = reinterpret_cast<const char*>(begin);
    ranges_.push_back({first, first + words * static_cast<std::int64_t>(sizeof *begin)});
    lines_ += words * static_cast<std::int64_t>(sizeof *begin) / kLine + 1;
  }
  // Spreads all of it over so many calls of step().
  void spread(std::int64_t steps) { per_step_ = (lines_ + steps - 1) / std::max<std::int64_t>(steps, 1); }

  void step() {
    for (std::int64_t i = 0; i < per_step_; ++i, at_ += kLine) {
      if (at_ >= end_) {
        if (next_ == ranges_.size()) return;
        at_ = ranges_[next_].begin, end_ = ranges_[next_].end;
        ++next_;
      }
      __builtin_prefetch(at_, 0, 2);  // past the first-level cache, which the work at hand needs
    }
  }

 private:
  static constexpr std::int64_t kLine = 64;
  struct Range {
    const char* begin;
    const char* end;
  };
  std::vector<Range> ranges_;
  std::size_t next_ = 0;
  const char *at_ = nullptr, *end_ = nullptr;
  std::int64_t lines_ = 0, per_step_ = 0;
};

}  // namespace sluice
