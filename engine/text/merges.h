// SPDX-License-Identifier: GPL-3.0-or-later
// The merge step of byte-pair encoding on token ids. Immutable once filled; any number of threads may merge at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace sluice {

class Merges {
 public:
  void reserve(std::size_t count) { table_.reserve(count); }
  // The lower the rank, the earlier; a pair given twice keeps the later rank.
  void add(std::int32_t left, std::int32_t right, std::int32_t result, std::int32_t rank) {
    table_[key(left, right)] = {rank, result};
  }

  // Joins pairs, best rank first, leftmost among equals, until no rule applies. n log n.
  void apply(std::vector<std::int32_t>& symbols) const;

 private:
  struct Rule {
    std::int32_t rank;
    std::int32_t result;
  };
  struct Hash {
    std::size_t operator()(std::uint64_t key) const noexcept {
      return static_cast<std::size_t>((key * 0x9E3779B97F4A7C15ull) >> 20);
    }
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32) | static_cast<std::uint32_t>(right);
  }
  const Rule* find(std::int32_t left, std::int32_t right) const;

  std::unordered_map<std::uint64_t, Rule, Hash> table_;
};

}  // namespace sluice
