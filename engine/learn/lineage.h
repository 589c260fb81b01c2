// SPDX-License-Identifier: GPL-3.0-or-later
// The tree of adapter versions as the trainer needs it: who descends from whom, and how many steps lie between. A value
// made from the store's rows; no thread rules.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "store/rows.h"

namespace sluice {

class Lineage {
 public:
  explicit Lineage(const std::vector<VersionRow>& rows);

  const VersionRow* find(VersionId version) const;  // null: no such version
  // Is `ancestor` the version itself or above it?
  bool descends(VersionId version, VersionId ancestor) const;
  // Nearest version above both, or either itself; the base when their lines are unknown.
  VersionId common_ancestor(VersionId a, VersionId b) const;
  // Optimiser steps between `version` and a head that stands `head_step` steps down its line, whose newest checkpoint is
  // `head`: down from the common ancestor on both sides. Nothing = an unknown version.
  std::optional<int> age(VersionId version, VersionId head, std::int64_t head_step) const;

 private:
  std::vector<VersionId> line(VersionId version) const;  // itself first, then its parents

  std::map<VersionId, VersionRow> rows_;
};

}  // namespace sluice
