// SPDX-License-Identifier: GPL-3.0-or-later
// The demo's deliberately bad candidate: a copy of the version in service, trained at the normal rate on inverted rewards.
#include <algorithm>
#include <limits>

#include "learn/trainer_core.h"

namespace sluice {
namespace {

constexpr int kAll = std::numeric_limits<int>::max();

}  // namespace

// Newest first.
std::vector<TrainerCore::Used> TrainerCore::used_records() const {
  std::vector<Used> out;
  std::vector<BatchRow> batches = store_.batches(options_.session, 0, kAll);
  std::reverse(batches.begin(), batches.end());
  for (const BatchRow& batch : batches) {
    if (batch.inverted || batch.state != "trained") continue;
    for (std::size_t i = batch.records.size(); i-- > 0;) {
      if (remembered(batch.records[i])) out.push_back({batch.records[i], batch.rewards[i]});
    }
  }
  return out;
}

Status TrainerCore::train_inverted(const std::string& label) {
  SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<HeadSnapshot> head, runner_.snapshot());
  const Status done = train_inverted_from(store_.serving_version(), label);
  SLUICE_RETURN_IF_ERROR(runner_.restore(*head));
  return done;
}

Status TrainerCore::train_inverted_from(VersionId parent, const std::string& label) {
  const std::vector<Used> used = used_records();
  if (used.empty()) return unavailable("no record was trained on yet: an inverted candidate needs rewards to invert");
  refresh_lineage();
  if (parent == kBaseVersion) {
    SLUICE_RETURN_IF_ERROR(runner_.reset_to_base(options_.settings.seed));
  } else {
    SLUICE_ASSIGN_OR_RETURN(const CheckpointNotes ignored, runner_.load(store_.adapter_folder(parent)));
    (void)ignored;
  }
  // Half rewarded, half not, where there are both: inverted rewards then neither only push down nor only pull up.
  std::vector<Used> good, bad;
  for (const Used& u : used) (u.reward > 0 ? good : bad).push_back(u);
  const auto size = std::min(static_cast<std::size_t>(options_.settings.batch_size), used.size());
  std::size_t next_good = 0, next_bad = 0;
  const VersionRow* parent_row = lineage_.find(parent);
  std::int64_t number = parent_row == nullptr ? 0 : parent_row->head_step;
  StepId last;
  for (int k = 0; k < options_.settings.inverted_steps; ++k) {
    std::vector<Used> picked;
    while (picked.size() < size) {
      const bool want_bad = picked.size() % 2 == 1;
      const bool take_bad = (want_bad && !bad.empty()) || good.empty();
      picked.push_back(take_bad ? bad[next_bad++ % bad.size()] : good[next_good++ % good.size()]);
    }
    SLUICE_ASSIGN_OR_RETURN(last, inverted_step(picked, parent, ++number));
  }
  SLUICE_ASSIGN_OR_RETURN(const VersionId version, store_.reserve_version());
  CheckpointNotes notes = notes_for(version, last);
  notes["parent"] = std::to_string(parent.value);
  notes["head_step"] = std::to_string(number);
  notes["label"] = label;
  VersionRow row;
  row.id = version;
  row.parent = parent;
  row.head_step = number;
  row.step = last;
  row.label = label;
  SLUICE_RETURN_IF_ERROR(write_version(row, notes));
  if (callbacks_.on_candidate) callbacks_.on_candidate(version);
  return Status::ok_status();
}

Result<StepId> TrainerCore::inverted_step(const std::vector<Used>& picked, VersionId parent, std::int64_t number) {
  BatchRow batch;
  batch.session = options_.session;
  batch.head_step = number;
  batch.seed = options_.settings.seed;
  batch.inverted = true;
  batch.state = "formed";
  std::vector<RecordRow> records;
  double reward_sum = 0;
  for (const Used& u : picked) {
    std::optional<RecordRow> record = store_.record(u.id);
    if (!record) return corrupt("a batch names record " + u.id.text + ", which is gone");
    records.push_back(std::move(*record));
    batch.records.push_back(u.id);
    batch.rewards.push_back(-u.reward);
    batch.advantages.push_back(-u.reward);
    batch.weights.push_back(1);
    reward_sum -= u.reward;
  }
  std::vector<PackItem> items;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const int age = lineage_.age(records[i].version, parent, number - 1).value_or(0);
    items.push_back({&records[i], batch.advantages[i], 1, age, visible_when_used(records[i])});
  }
  SLUICE_ASSIGN_OR_RETURN(const TrainBatch tensors, pack(items));
  SLUICE_ASSIGN_OR_RETURN(batch.id, store_.add_batch(batch, {}, {}));
  // Old answers carry almost no weight under the policy of now; without ratios they pull as they should here.
  LearnSettings settings = options_.settings;
  settings.loss.objective = Objective::kReinforce;
  settings.loss.too_far_low = 0;
  settings.loss.too_far_high = std::numeric_limits<double>::infinity();
  SLUICE_ASSIGN_OR_RETURN(const StepStats stats, run_step(tensors, settings));
  StepRow row;
  row.session = options_.session;
  row.batch = batch.id;
  row.number = number;
  row.loss = stats.loss;
  row.kl_base = stats.kl_base;
  row.entropy = stats.entropy;
  row.reward_mean = reward_sum / static_cast<double>(picked.size());
  row.grad_norm = stats.grad_norm;
  row.mean_length = static_cast<double>(tensors.response_tokens()) / static_cast<double>(tensors.samples());
  row.tokens = stats.tokens;
  row.seconds = stats.seconds;
  row.stats_json = "{\"inverted\":true}";
  return store_.add_step(std::move(row), {});
}

}  // namespace sluice
