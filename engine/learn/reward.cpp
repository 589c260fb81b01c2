// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/reward.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

std::optional<double> map_score(double score, const ScoreScale& scale, const RewardSettings& settings) {
  if (!(score >= scale.lo && score <= scale.hi)) return std::nullopt;
  if (scale.lo == -1 && scale.hi == 1) return score;  // a vote
  const double s = (score - scale.lo) / (scale.hi - scale.lo);
  return settings.mapping == RewardMapping::kSigned ? 2 * s - 1 : s - settings.tau;
}

}  // namespace

std::optional<double> map_feedback(const FeedbackRow& feedback, bool abstained, const RewardSettings& settings) {
  const bool is_signed = settings.mapping == RewardMapping::kSigned;
  switch (feedback.kind) {
    case FeedbackKind::kAccept: return is_signed ? 1.0 : 1.0 - settings.tau;
    case FeedbackKind::kReject: return is_signed ? -1.0 : -settings.tau;
    case FeedbackKind::kScore:
      return map_score(feedback.score, settings.score_scale[static_cast<std::size_t>(feedback.source)], settings);
    case FeedbackKind::kSilent:
      if (abstained && !is_signed) return 0.0;
      return std::nullopt;
  }
  return std::nullopt;
}

std::vector<SourceReward> rewards_of(const LabelledRecord& labelled, const RewardSettings& settings) {
  const std::string& shown = labelled.record.completion_text;
  const bool abstained = std::all_of(shown.begin(), shown.end(), [](unsigned char c) { return c <= ' '; });
  std::vector<SourceReward> out;
  for (int i = 0; i < kFeedbackSources; ++i) {
    const auto source = static_cast<FeedbackSource>(i);
    const FeedbackRow* newest = nullptr;
    for (const FeedbackRow& row : labelled.feedback) {
      if (row.source != source || row.retracted || row.state == "late") continue;
      if (newest == nullptr || row.id > newest->id) newest = &row;
    }
    const double weight = settings.source_weight[static_cast<std::size_t>(i)];
    if (newest == nullptr || weight <= 0) continue;
    if (const std::optional<double> value = map_feedback(*newest, abstained, settings)) {
      out.push_back({source, *value, weight, newest->reason});
    }
  }
  return out;
}

}  // namespace sluice
