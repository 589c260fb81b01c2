// SPDX-License-Identifier: GPL-3.0-or-later
// What one optimiser step trains on, as packed plain vectors (learning.md §3.3), and how it is formed from labelled records
// (§2.4, §3.1, §3.2). Pure functions over values; no thread rules.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "learn/baseline.h"
#include "learn/reward.h"
#include "learn/settings.h"
#include "store/store.h"

namespace sluice {

// B samples, N = all their tokens, M = their response tokens. No padding.
struct TrainBatch {
  std::vector<std::int32_t> ids;         // [N] prompt and response of sample 0, of sample 1, ...
  std::vector<std::int32_t> pos;         // [N] restarts at 0 per sample
  std::vector<std::int64_t> seq_start;   // [B+1] into ids
  std::vector<std::int64_t> resp_index;  // [M] row of `ids` whose hidden state predicts the token
  std::vector<std::int64_t> resp_start;  // [B+1] into the M-vectors
  std::vector<std::int32_t> target;      // [M] the sampled token
  std::vector<float> lp_full;            // [M] of the sampler, at tau
  std::vector<float> mask;               // [M] 1 = trained, 0 = not; by position, never by id
  std::vector<float> advantage;          // [M] the sample's
  std::vector<float> tau;                // [B] sampling temperature
  std::vector<float> weight;             // [B] multiplies the sample's policy loss
  std::vector<std::uint8_t> from_base;   // [B] 1 = sampled without an adapter: lp_full is the reference's log-probability too
  std::vector<std::int32_t> age;         // [B] optimiser steps between its version and the head

  std::int64_t samples() const { return static_cast<std::int64_t>(tau.size()); }
  std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t response_tokens() const { return static_cast<std::int64_t>(target.size()); }
};

struct PackItem {
  const RecordRow* record = nullptr;
  double advantage = 0;
  double weight = 1;
  int age = 0;
  std::size_t visible = SIZE_MAX;  // response tokens that were shown; later ones are masked
};

// Response tokens of the record that the labels speak of: all, unless the client reported the part it showed.
std::size_t visible_tokens(const RecordRow& record, const std::vector<FeedbackRow>& feedback);

// kInvalidArgument names the record when its log-probs and ids differ in number, its prompt or answer is empty, or tau is 0.
Result<TrainBatch> pack(const std::vector<PackItem>& items);

// Steps between the version that sampled and the head; nothing = the version cannot be placed (drop as imported).
using AgeOf = std::function<std::optional<int>(VersionId)>;

// Why a record cannot be trained on ("no_event", "late", "cut", "empty_mask", "greedy", "no_logprobs", "too_old",
// "imported"), or "" when it can.
std::string drop_reason(const LabelledRecord& labelled, const std::vector<SourceReward>& rewards, std::optional<int> age,
                        const LearnSettings& settings);

struct FormedBatch {
  bool enough = false;     // batch_size usable records were there; else only `dropped` counts
  bool equal = false;      // all rewards equal and the recipe skips such batches: its records are in `dropped`
  TrainBatch tensors;
  std::vector<RecordId> records;  // serving order, as the B-vectors
  std::vector<double> rewards;    // weighted over sources
  std::vector<double> advantages;
  std::vector<double> weights;
  std::vector<RewardRow> reward_rows;  // one per record and source
  std::string baseline_json;           // sums before and after; baseline_after() reads it back exactly
  double length_bias = 0;              // nu = sum A L / sum |A| L
  std::vector<std::pair<RecordId, std::string>> dropped;
};

// Takes records in order until batch_size are usable. `baseline` is read before and moved after a batch that trains, else left.
Result<FormedBatch> form_batch(const std::vector<LabelledRecord>& labelled, const AgeOf& age_of, const LearnSettings& settings,
                               Baseline& baseline);

// The baseline after a stored batch, out of its baseline_json; kCorrupt names the batch.
Result<Baseline> baseline_after(const BatchRow& batch);

}  // namespace sluice
