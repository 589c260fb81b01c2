// SPDX-License-Identifier: GPL-3.0-or-later
// Logits of one row -> one token and its three log-probabilities (learning.md §2.1). Draw t of a sequence depends on its
// seed and t only, never on batch mates. A Sampler is scratch memory of one thread; equal input gives equal output.
#pragma once

#include <cstdint>
#include <vector>

#include "model_api/model.h"

namespace sluice {

// Uniform in [0, 1): number `index` of the sequence that `seed` names (SplitMix64's mixing function).
double counter_uniform(std::uint64_t seed, std::uint64_t index);

// The n largest log-probabilities z[i] - log_z, descending, lower id first on a tie.
std::vector<TopLogprob> top_logprobs(const float* z, int vocab, float log_z, int n);

class Sampler {
 public:
  // logits: [vocab], not changed. Penalties, bias and suppression change the distribution drawn from, then temperature,
  // top-k, top-p (of what top-k left) and min-p. `generated` counts the draws made so far; `prompt` may be null.
  // finite = false, and nothing else set, when a logit is NaN or infinite, or nothing is left to draw.
  SampledToken sample(const float* logits, int vocab, const SamplingParams& params,
                      const std::vector<TokenId>& generated, const std::vector<TokenId>* prompt);

 private:
  struct Candidate {
    float z;
    TokenId token;
  };

  const float* modified(const float* logits, int vocab, const SamplingParams& params,
                        const std::vector<TokenId>& generated, const std::vector<TokenId>* prompt);
  void count(const std::vector<TokenId>& tokens, int vocab);  // into counts_; tokens outside the vocabulary aside
  template <class Fn>
  void take_counts(const Fn& fn);  // fn(token, how often) for each that was counted; then none is
  void make_zero_of(float best);   // shifts what modified() returned
  void gather(const float* z, int vocab, float least);
  void keep_top(const float* z, int vocab, float best, const SamplingParams& params, float log_z);
  TokenId draw_kept(const SamplingParams& params, double u, float& lp_mu);
  TokenId draw_any(const float* z, int vocab, float temperature, double u);

  std::vector<float> work_;
  std::vector<int> counts_;        // by token; all 0 between draws
  std::vector<TokenId> counted_;   // those above 0
  std::vector<float> probabilities_;
  std::vector<Candidate> kept_;
};

}  // namespace sluice
