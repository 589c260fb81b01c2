// SPDX-License-Identifier: GPL-3.0-or-later
// Which prompts a candidate is measured on and how that becomes evidence (gate.md §2): the split by hash, the seeded
// order, seeds shared by the arms, evidence rows. Any thread; all but load_* are pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "release/gate.h"
#include "store/rows.h"
#include "store/store.h"
#include "tasks/stream.h"

namespace sluice {

// First 8 bytes (big-endian) of SHA-256(salt ‖ group key) mod 100.
int split_bucket(std::string_view salt, std::string_view group_key);
// Buckets 0-9 are held out: never trained on.
Split split_of(std::string_view salt, std::string_view group_key, int held_out_percent = 10);

// Sampling seed of a prompt: shared by all arms, candidates and attempts, so that an anchor's answer can be kept.
// Below 2^63.
std::uint64_t prompt_seed(std::uint64_t seed, std::string_view prompt_id);

// At most one prompt of each group (one D per group), in seeded order.
std::vector<std::size_t> plan_pairs(const std::vector<TaskPrompt>& pool, std::uint64_t seed);

// Digest of the ids and texts of a pool, for the decision row.
std::string eval_set_hash(const std::vector<TaskPrompt>& pool);

// A stored pair as the fold reads it. Whether the answers were equal is not in the row: see load_pairs.
PairEvidence pair_of(const EvidenceRow& row);
// The pairs of one attempt in order, those with index <= `last_index`. Texts are compared only where the scores tie so
// often that the fold may ask (gate.md §4, no_change).
std::vector<PairEvidence> load_pairs(const Store& store, VersionId candidate, std::int64_t attempt,
                                     std::int64_t last_index);
// Evidence behind a gate decision, ready for decide(). kNotFound when its pairs or probe numbers are gone.
Result<Evidence> load_evidence(const Store& store, const DecisionRow& row);

// Where a decision's pairs stand, for load_evidence.
struct EvidenceSource {
  std::int64_t attempt = 0;
  std::int64_t last_index = -1;   // of the last pair the fold saw
  std::string eval_set_hash;
};
// Fills the numbers of a verdict into its row; ids of settings, session and time, kind and actor are the caller's.
void fill_row(const Evidence& evidence, const Decision& decision, const EvidenceSource& source, DecisionRow& row);

}  // namespace sluice
