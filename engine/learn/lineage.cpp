// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/lineage.h"

#include <algorithm>

namespace sluice {

Lineage::Lineage(const std::vector<VersionRow>& rows) {
  for (const VersionRow& row : rows) rows_.emplace(row.id, row);
}

const VersionRow* Lineage::find(VersionId version) const {
  auto it = rows_.find(version);
  return it == rows_.end() ? nullptr : &it->second;
}

std::vector<VersionId> Lineage::line(VersionId version) const {
  std::vector<VersionId> out;
  // A parent is always older, which ends the walk whatever the rows say.
  for (const VersionRow* row = find(version); row != nullptr;) {
    out.push_back(row->id);
    const VersionRow* parent = find(row->parent);
    row = parent != nullptr && parent->id < row->id ? parent : nullptr;
  }
  return out;
}

bool Lineage::descends(VersionId version, VersionId ancestor) const {
  const std::vector<VersionId> own = line(version);
  return std::find(own.begin(), own.end(), ancestor) != own.end();
}

VersionId Lineage::common_ancestor(VersionId a, VersionId b) const {
  for (VersionId version : line(a)) {
    if (descends(b, version)) return version;
  }
  return kBaseVersion;
}

std::optional<int> Lineage::age(VersionId version, VersionId head, std::int64_t head_step) const {
  const VersionRow* row = find(version);
  if (row == nullptr) return std::nullopt;
  const VersionRow* meet = find(common_ancestor(version, head));
  const std::int64_t meet_step = meet == nullptr ? 0 : meet->head_step;
  return static_cast<int>((head_step - meet_step) + (row->head_step - meet_step));
}

}  // namespace sluice
