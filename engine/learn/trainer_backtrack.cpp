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
  const StepId step = row->step;
  SLUICE_RETURN_IF_ERROR(load_head(candidate));
  SLUICE_RETURN_IF_ERROR(runner_.shrink(serving == kBaseVersion ? "" : store_.adapter_folder(serving), kBacktrackShare));
  last_batch_ = newest_batch();
  head_.version = serving;  // what the half descends from
  SLUICE_ASSIGN_OR_RETURN(const VersionId half, store_.reserve_version());
  log_->info("train", "Version " + std::to_string(half.value) + " is half of version " + std::to_string(candidate.value) +
                          ", and the head");
  return write_candidate(half, step, kHalfStrength);
}

}  // namespace sluice
