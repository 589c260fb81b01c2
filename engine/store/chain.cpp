// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/chain.h"

#include <bit>
#include <cmath>
#include <string_view>

#include "base/sha256.h"
#include "store/columns.h"
#include "store/store.h"

namespace sluice {
namespace {

std::string canonical(std::int64_t v) { return std::to_string(v); }
std::string canonical(std::uint64_t v) { return std::to_string(v); }
std::string canonical(bool v) { return v ? "1" : "0"; }
std::string canonical(const std::string& v) { return v; }
template <class Tag>
std::string canonical(const Id<Tag>& v) {
  return v.valid() ? std::to_string(v.value) : "none";
}
std::string canonical(Verdict v) { return verdict_name(v); }
// The bits, not a decimal text. The database keeps no sign of zero and no NaN payload.
std::string canonical(double v) {
  if (std::isnan(v)) return "nan";
  return std::to_string(std::bit_cast<std::uint64_t>(v == 0 ? 0.0 : v));
}

}  // namespace

std::string chain_start() { return std::string(64, '0'); }

std::string decision_hash(const DecisionRow& row) {
  std::string text = row.prev_hash;
  Table<DecisionRow>::each(row, [&](const char* name, const auto& field) {
    if (std::string_view(name) == "hash") return;
    const std::string value = canonical(field);
    text += std::string(name) + ':' + std::to_string(value.size()) + ':' + value + ';';
  });
  return sha256(text);
}

std::vector<std::string> check_chain(const std::vector<DecisionRow>& rows) {
  std::vector<std::string> problems;
  std::string prev = chain_start();
  std::int64_t expected = 1;
  for (const DecisionRow& row : rows) {
    const std::string name = "decision " + std::to_string(row.id.value);
    if (row.id.value != expected) {
      problems.push_back("decision " + std::to_string(expected) + " is missing before " + name);
    }
    if (row.prev_hash != prev) problems.push_back(name + " does not follow the decision before it (prev_hash differs)");
    if (row.hash != decision_hash(row)) problems.push_back(name + " was changed after it was written (hash differs)");
    prev = row.hash;
    expected = row.id.value + 1;
  }
  return problems;
}

}  // namespace sluice
