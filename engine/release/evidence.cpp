// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/evidence.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/json_limits.h"
#include "base/seeds.h"
#include "base/sha256.h"
#include "release/gate_json.h"

namespace sluice {
namespace {

using nlohmann::json;

// Ties this frequent may be equal answers; below it no_change can't be the verdict (gate.cpp: 95 of 100 pairs).
constexpr double kTiesWorthALook = 0.95;

bool same_text(const Store& store, const EvidenceRow& row) {
  const auto a = store.record(row.candidate_record);
  const auto b = store.record(row.incumbent_record);
  return a && b && a->token_ids == b->token_ids;
}

}  // namespace

int split_bucket(std::string_view salt, std::string_view group_key) {
  Sha256 hash;
  hash.update(salt);
  hash.update(group_key);
  return static_cast<int>(leading_u64(hash.digest()) % 100);
}

Split split_of(std::string_view salt, std::string_view group_key, int held_out_percent) {
  return split_bucket(salt, group_key) < held_out_percent ? Split::kHeldOut : Split::kTrain;
}

std::uint64_t prompt_seed(std::uint64_t seed, std::string_view prompt_id) {
  Sha256 hash;
  hash.update("prompt " + std::to_string(seed) + " ");
  hash.update(prompt_id);
  return leading_u64(hash.digest()) >> 1;
}

std::vector<std::size_t> plan_pairs(const std::vector<TaskPrompt>& pool, std::uint64_t seed) {
  std::map<std::string, std::vector<std::size_t>> groups;
  for (std::size_t i = 0; i < pool.size(); ++i) groups[pool[i].group].push_back(i);
  std::vector<std::size_t> chosen;
  for (const auto& [key, members] : groups) {
    chosen.push_back(members[static_cast<std::size_t>(prompt_seed(seed, key) % members.size())]);
  }
  std::vector<std::size_t> out;
  for (const std::size_t i : seeded_permutation(chosen.size(), seed)) out.push_back(chosen[i]);
  return out;
}

std::string eval_set_hash(const std::vector<TaskPrompt>& pool) {
  Sha256 hash;
  for (const TaskPrompt& prompt : pool) hash.update(prompt.id + "\n" + prompt.text + "\n");
  return to_hex(hash.digest());
}

PairEvidence pair_of(const EvidenceRow& row) {
  PairEvidence pair;
  pair.candidate = row.candidate_score;
  pair.incumbent = row.incumbent_score;
  pair.anchor = row.anchor_score;
  pair.candidate_protected = row.candidate_protected;
  pair.incumbent_protected = row.incumbent_protected;
  pair.anchor_protected = row.anchor_protected;
  pair.voided = !row.void_reason.empty();
  return pair;
}

std::vector<PairEvidence> load_pairs(const Store& store, VersionId candidate, std::int64_t attempt,
                                     std::int64_t last_index) {
  std::vector<EvidenceRow> rows;
  for (EvidenceRow& row : store.evidence(candidate)) {
    if (row.attempt == attempt && row.index <= last_index) rows.push_back(std::move(row));
  }
  std::vector<PairEvidence> pairs;
  std::size_t ties = 0;
  for (const EvidenceRow& row : rows) {
    pairs.push_back(pair_of(row));
    ties += row.candidate_score == row.incumbent_score;
  }
  if (static_cast<double>(ties) >= kTiesWorthALook * static_cast<double>(rows.size())) {
    for (std::size_t i = 0; i < rows.size(); ++i) pairs[i].equal_answers = !pairs[i].voided && same_text(store, rows[i]);
  }
  return pairs;
}

Result<Evidence> load_evidence(const Store& store, const DecisionRow& row) {
  SLUICE_RETURN_IF_ERROR(check_json_limits(row.extra_json, "extra numbers of a decision"));
  const json extra = json::parse(row.extra_json, nullptr, false);
  if (!extra.is_object() || !extra.contains("attempt")) return not_found("the decision has no evidence of its own");
  Evidence e;
  e.candidate = row.version;
  e.incumbent = row.incumbent;
  e.anchor = row.anchor;
  e.metric = row.metric;
  e.protected_metric = extra.value("protected_metric", "");
  e.same_signal = row.same_signal;
  e.anchor_applies = extra.value("anchor_applies", false);
  e.pool_exhausted = extra.value("pool_exhausted", false);
  SLUICE_ASSIGN_OR_RETURN(e.probe, probe_of_decision(row.invariants_json));
  e.pairs = load_pairs(store, row.version, extra.value("attempt", std::int64_t{0}), extra.value("last_index", std::int64_t{-1}));
  if (static_cast<std::int64_t>(e.pairs.size()) != row.n + row.voids) {
    return not_found("the evidence of decision " + std::to_string(row.id.value) + " is not complete");
  }
  return e;
}

void fill_row(const Evidence& evidence, const Decision& d, const EvidenceSource& source, DecisionRow& row) {
  row.version = evidence.candidate;
  row.incumbent = evidence.incumbent;
  row.anchor = evidence.anchor;
  row.verdict = d.outcome == Outcome::kPromote ? Verdict::kPromote : d.outcome == Outcome::kReject ? Verdict::kReject : Verdict::kHold;
  row.scope = d.outcome == Outcome::kPromote ? "full" : "";
  row.forced = d.forced;
  row.reason_code = d.reason_code;
  row.reason_text = d.reason_text;
  row.stage = d.stage;
  row.metric = evidence.metric;
  row.n = d.n;
  row.voids = d.voids;
  row.wins = d.wins;
  row.losses = d.losses;
  row.ties = d.ties;
  row.mean_d = d.mean_d;
  row.lo = d.lo;
  row.hi = d.hi;
  row.log_e = d.log_e;
  row.log_f = d.log_f;
  row.log_ea = d.log_ea;
  row.log_ha = d.log_ha;
  row.candidate_k = d.candidate.k;
  row.candidate_n = d.candidate.n;
  row.incumbent_k = d.incumbent.k;
  row.incumbent_n = d.incumbent.n;
  row.anchor_k = d.anchor.k;
  row.anchor_n = d.anchor.n;
  row.same_signal = evidence.same_signal;
  row.invariants_json = invariants_to_json(evidence.probe, d);
  row.protected_json = protected_to_json(evidence.protected_metric, d);
  row.extra_json = json{{"attempt", source.attempt},
                        {"last_index", source.last_index},
                        {"eval_set_hash", source.eval_set_hash},
                        {"protected_metric", evidence.protected_metric},
                        {"anchor_applies", evidence.anchor_applies},
                        {"pool_exhausted", evidence.pool_exhausted},
                        {"equal_answers", d.equal_answers},
                        {"canary", "not applicable"}}
                       .dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace sluice
