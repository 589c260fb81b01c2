// SPDX-License-Identifier: GPL-3.0-or-later
// What stored decisions would have been under a draft of the settings (gate.md §5). Reads the store only; any thread.
// It judges single decisions, not the history that would have followed.
#pragma once

#include <string>
#include <vector>

#include "release/gate.h"
#include "store/store.h"

namespace sluice {

struct WhatIfRow {
  DecisionId decision;
  VersionId version;
  Verdict was = Verdict::kHold;
  Outcome would_be = Outcome::kNeedsMore;  // kNeedsMore: the draft would have read beyond the stored pairs
  std::int64_t n_was = 0, n_would_be = 0;
  std::string reason_code, reason_text;    // under the draft
  bool differs = false;
};

// One decision read pair by pair under the draft, stopping where the draft would have stopped.
WhatIfRow replay_under(const GateSettings& draft, const DecisionRow& row, const Evidence& evidence);
// The last `limit` decisions of kind "gate" whose evidence is still there, ascending.
std::vector<WhatIfRow> what_if(const Store& store, const GateSettings& draft, int limit);

}  // namespace sluice
