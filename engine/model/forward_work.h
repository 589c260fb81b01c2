// SPDX-License-Identifier: GPL-3.0-or-later
// How ForwardPass cuts its work; shared by its sources.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice {

// Fewer multiply-adds than this a task aren't worth waking another core.
inline constexpr std::int64_t kTaskWork = 16384;

// Rows of output that a core takes at least; whole cache lines of every output row.
inline constexpr std::int64_t kOutputGrain = 32;

inline std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

inline void grow(std::vector<float>& v, std::int64_t n) {
  if (v.size() < size(n)) v.resize(size(n));
}

}  // namespace sluice
