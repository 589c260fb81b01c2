// SPDX-License-Identifier: GPL-3.0-or-later
// A step of a line search: a candidate that went too far is tried again half way between the version in service and itself.
// Gain saturates along the way and harm does not (be-brief, seed 1: of 128 prompts 113 accepted and 15 topics lost, at half
// strength 114 and 8), so half the way keeps most of what was learnt where going back would lose it.
#include "learn/trainer_core.h"

namespace sluice {

Status TrainerCore::backtrack(VersionId candidate) {
  refresh_lineage();
  const VersionRow* row = lineage_.find(candidate);
  const VersionId serving = store_.serving_version();
  if (row == nullptr || candidate == serving || !lineage_.descends(head_.version, candidate) ||
      !lineage_.descends(candidate, serving)) {
    return Status::ok_status();  // a decision moved the head meanwhile
  }
  return backtrack_from(*row);
}

Status TrainerCore::backtrack_from(const VersionRow& candidate) {
  const VersionId serving = store_.serving_version();
  SLUICE_ASSIGN_OR_RETURN(const CheckpointNotes notes, runner_.load(store_.adapter_folder(candidate.id)));
  SLUICE_RETURN_IF_ERROR(runner_.shrink(serving == kBaseVersion ? "" : store_.adapter_folder(serving), kBacktrackShare));
  SLUICE_ASSIGN_OR_RETURN(const VersionId version, store_.reserve_version());
  VersionRow row;
  row.id = version;
  row.parent = serving;
  row.head_step = candidate.head_step;
  row.step = candidate.step;
  row.label = kHalfStrength;
  head_step_ = checkpoint_step_ = candidate.head_step;
  last_batch_ = newest_batch();
  SLUICE_ASSIGN_OR_RETURN(baseline_, newest_baseline(""));
  CheckpointNotes written = notes_for(version, candidate.step);
  written["parent"] = std::to_string(serving.value);
  written["label"] = row.label;
  SLUICE_RETURN_IF_ERROR(write_version(row, written));
  SLUICE_RETURN_IF_ERROR(write_mark({version, last_batch_}));
  status_.head_step = head_step_;
  brakes_.reset();
  extension_ = 0;
  log_->info("train", "The head now stands at version " + std::to_string(version.value) + ", half of version " +
                          std::to_string(candidate.id.value));
  if (callbacks_.on_candidate) callbacks_.on_candidate(version);
  return Status::ok_status();
}

}  // namespace sluice
