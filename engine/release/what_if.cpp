// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/what_if.h"

#include <algorithm>

#include "release/evidence.h"

namespace sluice {
namespace {

Outcome outcome_of(Verdict verdict) {
  return verdict == Verdict::kPromote ? Outcome::kPromote : verdict == Verdict::kReject ? Outcome::kReject : Outcome::kHold;
}

}  // namespace

WhatIfRow replay_under(const GateSettings& draft, const DecisionRow& row, const Evidence& evidence) {
  GateFold fold(draft, evidence);
  std::int64_t read = 0;
  Outcome outcome = fold.outcome();
  for (const PairEvidence& pair : evidence.pairs) {
    if (outcome != Outcome::kNeedsMore) break;
    fold.add(pair);
    ++read;
    outcome = fold.outcome();
  }
  // The pool ended where the stored pairs end, but only if the draft read them all.
  const bool exhausted = evidence.pool_exhausted && read == static_cast<std::int64_t>(evidence.pairs.size());
  const Decision decision = fold.judge(exhausted);
  WhatIfRow out;
  out.decision = row.id;
  out.version = row.version;
  out.was = row.verdict;
  out.would_be = decision.outcome;
  out.n_was = row.n;
  out.n_would_be = decision.n;
  out.reason_code = decision.reason_code;
  out.reason_text = decision.reason_text;
  out.differs = decision.outcome != outcome_of(row.verdict);
  return out;
}

std::vector<WhatIfRow> what_if(const Store& store, const GateSettings& draft, int limit) {
  std::vector<DecisionRow> rows;
  constexpr int kPage = 500;
  for (std::int64_t after = -1;;) {
    std::vector<DecisionRow> page = store.decisions(after, kPage);
    if (page.empty()) break;
    after = page.back().id.value;
    const bool last = static_cast<int>(page.size()) < kPage;
    std::move(page.begin(), page.end(), std::back_inserter(rows));
    if (last) break;
  }
  std::erase_if(rows, [](const DecisionRow& row) { return row.kind != "gate"; });
  if (static_cast<int>(rows.size()) > limit) rows.erase(rows.begin(), rows.end() - limit);
  std::vector<WhatIfRow> out;
  for (const DecisionRow& row : rows) {
    const Result<Evidence> evidence = load_evidence(store, row);
    if (evidence.ok()) out.push_back(replay_under(draft, row, *evidence));
  }
  return out;
}

}  // namespace sluice
