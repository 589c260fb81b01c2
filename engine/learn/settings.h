// SPDX-License-Identifier: GPL-3.0-or-later
// What a recipe may set about learning, with the defaults of the design. Plain values; runtime fills them from a recipe and
// calls check() before a trainer sees them.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "store/rows.h"

namespace sluice {

enum class Objective {
  kPpo,        // critic-free PPO-clip on fresh samples, `stale` decides for older ones
  kReinforce,  // -A lp
};

// What happens to a sample whose version is behind the head.
enum class StaleRule {
  kTruncatedWeights,  // decoupled: the gradient weighted by min(exp(lp_prox - lp_full), C)
  kClip,              // PPO-clip against the sampler, as if fresh (for comparison: it hardly learns)
};

// What KL is measured from.
enum class KlReference {
  kBase,     // the bare model
  kSampler,  // the version that gave the answer: a step stays near what was promoted, and needs no pass of the base. Drift
             // over promotions is then the gate's to hold, by its anchor
};

// Sum over tokens to one number; one denominator per optimiser step.
enum class Aggregation {
  kSeqSumConst,  // sum(l m) / (B L_max)
  kSeqMean,      // mean over sequences of the mean over their tokens
  kTokenMean,    // sum(l m) / sum(m)
};

enum class RewardMapping {
  kSigned,     // accept +1, reject -1, score s -> 2s - 1
  kThreshold,  // accept 1 - tau, reject -tau, abstained 0, score s -> s - tau
};

inline constexpr int kFeedbackSources = 5;  // values of FeedbackSource

struct ScoreScale {
  double lo = 0, hi = 1;
};

struct RewardSettings {
  RewardMapping mapping = RewardMapping::kSigned;
  double tau = 0.25;
  // Indexed by FeedbackSource: human, judge, verifier, client, persona.
  std::array<double, kFeedbackSources> source_weight = {1.0, 0.5, 1.0, 1.0, 1.0};
  // A judge with scale -1..1 votes: its value is used as it is.
  std::array<ScoreScale, kFeedbackSources> score_scale = {{{0, 1}, {0, 10}, {0, 1}, {0, 1}, {0, 1}}};
};

struct LossSettings {
  Objective objective = Objective::kPpo;
  StaleRule stale = StaleRule::kTruncatedWeights;
  Aggregation aggregation = Aggregation::kSeqSumConst;
  double clip_low = 0.2;
  double clip_high = 0.2;
  double dual_clip = 3.0;       // c; 0 = off
  double truncation_cap = 2.0;  // C
  double kl_beta = 0.01;        // weight of d^2/2 against the reference; 0 = off
  KlReference kl_reference = KlReference::kBase;
  // A stale sample whose exp(mean(lp_prox - lp_full)) leaves these bounds adds nothing to the step.
  double too_far_low = 0.5;
  double too_far_high = 2.0;
};

struct OptimiserSettings {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-12;
  double weight_decay = 0;
  int warmup_steps = 10;   // lr min(1, t / warmup); 0 = none
  double max_norm = 1.0;   // global gradient norm is clipped to this
};

struct LoraSettings {
  int rank = 16;
  double alpha = 32;
};

// Limits at which the trainer stops by itself (learning.md §5); 0 = that brake is off.
struct BrakeSettings {
  bool enabled = true;
  double mean_abs_kl = 1.5;         // nats per token
  double entropy_fraction = 0.5;    // of the mean over the first window
  double length_bias = 0.5;         // |sum A L / sum |A| L|, mean over the window
  double outside_ratio_share = 0.01;  // tokens of fresh samples with ratio outside [0.5, 2]
  int nonfinite_steps = 3;          // in a row
  double length_low = 0.1;          // mean length against the base
  double length_high = 2.0;
  int window_steps = 20;
};

struct LearnSettings {
  RewardSettings reward;
  LossSettings loss;
  OptimiserSettings optimiser;
  LoraSettings lora;
  BrakeSettings brakes;
  int batch_size = 16;
  int candidate_every = 1;          // steps
  int max_ahead = 32;               // steps of the head before the serving version
  double baseline_half_life = 256;  // samples: how fast the running mean of rewards forgets; shorter where a stream learns fast
  int max_age = 32;                 // older samples are dropped as too_old
  bool skip_equal_rewards = false;  // a batch whose rewards are all equal is not trained on
  int max_tokens = 256;             // L_max of seq_sum_const: the stream's limit
  int micro_batch_tokens = 512;     // in memory at once, prompt and answer: 1 MB each on the embedded model
  int inverted_steps = 4;           // of the deliberately bad candidate
  std::uint64_t seed = 0;           // of the LoRA initialisation
};

// kInvalidArgument names the first field outside its range and the range.
Status check(const LearnSettings& settings);

const char* objective_name(Objective objective);      // "ppo", "reinforce"
const char* aggregation_name(Aggregation aggregation);  // "seq_sum_const", "seq_mean", "token_mean"
Result<Objective> parse_objective(const std::string& name);
Result<Aggregation> parse_aggregation(const std::string& name);
Result<StaleRule> parse_stale_rule(const std::string& name);        // "truncated", "clip"
Result<KlReference> parse_kl_reference(const std::string& name);    // "base", "sampler"
Result<RewardMapping> parse_reward_mapping(const std::string& name);  // "signed", "threshold"

}  // namespace sluice
