// SPDX-License-Identifier: GPL-3.0-or-later
// Feedback -> reward, one number per source in [-1, 1] with its reason (learning.md §2.3). Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "learn/settings.h"
#include "store/store.h"

namespace sluice {

struct SourceReward {
  FeedbackSource source = FeedbackSource::kClient;
  double value = 0;   // in [-1, 1]; 0.0 is a value, not "missing"
  double weight = 0;  // of its source, > 0
  std::string reason;
};

// Nothing = missing: a silent row without an abstention to judge, or a score outside its scale.
std::optional<double> map_feedback(const FeedbackRow& feedback, bool abstained, const RewardSettings& settings);

// One entry per source that said something (the newest row of each wins), in order of FeedbackSource. Empty = no reward.
// Sources of weight 0 are left out. An answer is an abstention when nothing but white space was shown.
std::vector<SourceReward> rewards_of(const LabelledRecord& labelled, const RewardSettings& settings);

}  // namespace sluice
