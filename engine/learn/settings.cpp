// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/settings.h"

#include <cmath>

#include "store/store.h"

namespace sluice {
namespace {

struct Range {
  const char* name;
  double value, lo, hi;
};

template <class E>
struct Named {
  E value;
  const char* name;
};

constexpr Named<Objective> kObjectives[] = {{Objective::kPpo, "ppo"}, {Objective::kReinforce, "reinforce"}};
constexpr Named<Aggregation> kAggregations[] = {{Aggregation::kSeqSumConst, "seq_sum_const"},
                                                {Aggregation::kSeqMean, "seq_mean"},
                                                {Aggregation::kTokenMean, "token_mean"}};
constexpr Named<StaleRule> kStaleRules[] = {{StaleRule::kTruncatedWeights, "truncated"}, {StaleRule::kClip, "clip"}};
constexpr Named<KlReference> kKlReferences[] = {{KlReference::kBase, "base"}, {KlReference::kSampler, "sampler"}};
constexpr Named<RewardMapping> kMappings[] = {{RewardMapping::kSigned, "signed"},
                                              {RewardMapping::kThreshold, "threshold"}};

template <class E, std::size_t N>
Result<E> parse_named(const Named<E> (&table)[N], const char* field, const std::string& name) {
  std::string known;
  for (const Named<E>& entry : table) {
    if (name == entry.name) return entry.value;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return invalid_argument(std::string(field) + " \"" + name + "\" is unknown: use one of " + known);
}

template <class E, std::size_t N>
const char* name_of(const Named<E> (&table)[N], E value) {
  for (const Named<E>& entry : table) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

std::string short_number(double value) {
  std::string text = std::to_string(value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text;
}

}  // namespace

Status check(const LearnSettings& s) {
  const Range ranges[] = {
      {"tau", s.reward.tau, 0, 1},
      {"clip_low", s.loss.clip_low, 0, 1},
      {"clip_high", s.loss.clip_high, 0, 10},
      {"dual_clip", s.loss.dual_clip, 0, 100},
      {"truncation_cap", s.loss.truncation_cap, 0.01, 100},
      {"kl_beta", s.loss.kl_beta, 0, 10},
      {"too_far_low", s.loss.too_far_low, 0, 1},
      {"too_far_high", s.loss.too_far_high, 1, 1e9},
      {"lr", s.optimiser.lr, 0, 1},
      {"beta1", s.optimiser.beta1, 0, 0.9999},
      {"beta2", s.optimiser.beta2, 0, 0.999999},
      {"eps", s.optimiser.eps, 1e-30, 1},
      {"weight_decay", s.optimiser.weight_decay, 0, 1},
      {"warmup_steps", double(s.optimiser.warmup_steps), 0, 100000},
      {"max_norm", s.optimiser.max_norm, 1e-9, 1e9},
      {"rank", double(s.lora.rank), 1, 512},
      {"alpha", s.lora.alpha, 1e-6, 1e6},
      {"batch_size", double(s.batch_size), 1, 1024},
      {"candidate_every", double(s.candidate_every), 1, 10000},
      {"max_ahead", double(s.max_ahead), 1, 10000},
      {"baseline_half_life", s.baseline_half_life, 1, 1e6},
      {"max_age", double(s.max_age), 0, 10000},
      {"max_tokens", double(s.max_tokens), 1, 1e7},
      {"micro_batch_tokens", double(s.micro_batch_tokens), 1, 1e7},
      {"inverted_steps", double(s.inverted_steps), 1, 1000},
  };
  for (const Range& r : ranges) {
    if (!(r.value >= r.lo && r.value <= r.hi)) {  // NaN fails too
      return invalid_argument(std::string("learning setting ") + r.name + " is " + short_number(r.value) +
                              ": it must lie between " + short_number(r.lo) + " and " + short_number(r.hi));
    }
  }
  if (s.loss.dual_clip != 0 && s.loss.dual_clip < 1) {
    return invalid_argument("learning setting dual_clip must be 0 (off) or at least 1");
  }
  if (s.max_ahead < s.candidate_every) {
    return invalid_argument("max_ahead (" + std::to_string(s.max_ahead) + ") is below candidate_every (" +
                            std::to_string(s.candidate_every) + "): the trainer would wait before its first candidate");
  }
  for (int i = 0; i < kFeedbackSources; ++i) {
    const ScoreScale& scale = s.reward.score_scale[i];
    const std::string source = feedback_source_name(static_cast<FeedbackSource>(i));
    if (!(scale.lo < scale.hi) || !std::isfinite(scale.hi - scale.lo)) {
      return invalid_argument("the score scale of source " + source + " needs a lower end below its upper end");
    }
    if (!(s.reward.source_weight[i] >= 0 && s.reward.source_weight[i] <= 1000)) {
      return invalid_argument("the weight of source " + source + " must lie between 0 and 1000");
    }
  }
  return Status::ok_status();
}

const char* objective_name(Objective objective) { return name_of(kObjectives, objective); }
const char* aggregation_name(Aggregation aggregation) { return name_of(kAggregations, aggregation); }
Result<Objective> parse_objective(const std::string& name) { return parse_named(kObjectives, "objective", name); }
Result<Aggregation> parse_aggregation(const std::string& name) { return parse_named(kAggregations, "aggregation", name); }
Result<StaleRule> parse_stale_rule(const std::string& name) { return parse_named(kStaleRules, "stale rule", name); }
Result<KlReference> parse_kl_reference(const std::string& name) { return parse_named(kKlReferences, "KL reference", name); }
Result<RewardMapping> parse_reward_mapping(const std::string& name) {
  return parse_named(kMappings, "reward mapping", name);
}

}  // namespace sluice
