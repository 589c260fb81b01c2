// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "model/kernels/vector_math.h"
#include "model_api/temperature.h"

namespace sluice {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr float kMostPenalised = 1e30f;  // beyond any logit, and still a number when divided by kLeastTemperature
constexpr float kMostExact = 1000.0f;    // beyond it a float's steps, divided by a small temperature, decide the draw

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

bool all_finite(const float* x, int n) {
  std::uint32_t bad = 0;
  for (int i = 0; i < n; ++i) bad |= (std::bit_cast<std::uint32_t>(x[i]) & 0x7f800000u) == 0x7f800000u ? 1u : 0u;
  return bad == 0;
}

// A penalty as small as 1e-38 makes more of a logit than a float holds: it counts as the most there can be.
float in_range(float z) { return std::clamp(z, -kMostPenalised, kMostPenalised); }

bool changes_logits(const SamplingParams& p, std::size_t generated) {
  return p.presence_penalty != 0 || p.frequency_penalty != 0 || p.repetition_penalty != 1.0f || !p.logit_bias.empty() ||
         (generated < static_cast<std::size_t>(std::max(p.min_tokens, 0)) && !p.suppress_tokens.empty());
}

}  // namespace

double counter_uniform(std::uint64_t seed, std::uint64_t index) {
  const std::uint64_t bits = mix(mix(seed + 0x9e3779b97f4a7c15ull) + (index + 1) * 0x9e3779b97f4a7c15ull);
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::vector<TopLogprob> top_logprobs(const float* z, int vocab, float log_z, int n) {
  std::vector<TopLogprob> top;
  n = std::clamp(n, 0, vocab);
  if (n == 0) return top;
  const auto better = [](const TopLogprob& a, const TopLogprob& b) {
    return a.logprob > b.logprob || (a.logprob == b.logprob && a.token < b.token);
  };
  // Ascending ids, so an equal later one never replaces: the front of the heap is the worst kept.
  for (int i = 0; i < vocab; ++i) {
    if (static_cast<int>(top.size()) < n) {
      top.push_back({i, z[i]});
      std::push_heap(top.begin(), top.end(), better);
    } else if (z[i] > top.front().logprob) {
      std::pop_heap(top.begin(), top.end(), better);
      top.back() = {i, z[i]};
      std::push_heap(top.begin(), top.end(), better);
    }
  }
  std::sort_heap(top.begin(), top.end(), better);
  for (TopLogprob& t : top) t.logprob -= log_z;
  return top;
}

SampledToken Sampler::sample(const float* logits, int vocab, const SamplingParams& params,
                             const std::vector<TokenId>& generated, const std::vector<TokenId>* prompt) {
  SampledToken out;
  if (!all_finite(logits, vocab)) {
    out.finite = false;
    return out;
  }
  const float log_z_raw = log_sum_exp(logits, vocab);
  const float* z = changes_logits(params, generated.size()) ? modified(logits, vocab, params, generated, prompt) : logits;
  const std::int64_t best = arg_max(z, vocab);
  if (!std::isfinite(z[best])) {  // everything suppressed
    out.finite = false;
    return out;
  }
  if (z != logits && std::abs(z[best]) > kMostExact) make_zero_of(z[best]);
  const bool greedy = usable_temperature(params.temperature) <= 0;
  const float inverse = greedy ? 1.0f : 1.0f / params.temperature;
  const float log_z_full = inverse == 1.0f ? log_z_raw : log_sum_exp(logits, vocab, inverse);
  const float log_z_drawn = z == logits ? log_z_full : log_sum_exp(z, vocab, inverse);

  const bool truncates = (params.top_k > 0 && params.top_k < vocab) || params.top_p < 1.0f || params.min_p > 0.0f;
  if (greedy) {
    out.token = static_cast<TokenId>(best);
    out.lp_mu = z[out.token] - log_z_drawn;
  } else {
    const double u = counter_uniform(params.seed, generated.size());
    if (truncates) {
      keep_top(z, vocab, z[best], params, log_z_drawn);
      out.token = draw_kept(params, u, out.lp_mu);
    } else {
      out.token = draw_any(z, vocab, params.temperature, u);
      out.lp_mu = z[out.token] * inverse - log_z_drawn;
    }
  }
  out.lp_full = logits[out.token] * inverse - log_z_full;
  out.lp_raw = logits[out.token] - log_z_raw;
  if (params.top_logprobs >= 0) out.top = top_logprobs(logits, vocab, log_z_raw, params.top_logprobs);
  return out;
}

void Sampler::count(const std::vector<TokenId>& tokens, int vocab) {
  counts_.resize(static_cast<std::size_t>(vocab));
  counted_.reserve(static_cast<std::size_t>(vocab));
  for (const TokenId t : tokens) {
    if (t >= 0 && t < vocab && counts_[static_cast<std::size_t>(t)]++ == 0) counted_.push_back(t);
  }
}

template <class Fn>
void Sampler::take_counts(const Fn& fn) {
  for (const TokenId t : counted_) fn(t, std::exchange(counts_[static_cast<std::size_t>(t)], 0));
  counted_.clear();
}

const float* Sampler::modified(const float* logits, int vocab, const SamplingParams& params,
                               const std::vector<TokenId>& generated, const std::vector<TokenId>* prompt) {
  work_.assign(logits, logits + vocab);
  const auto valid = [&](TokenId t) { return t >= 0 && t < vocab; };
  if (params.repetition_penalty != 1.0f) {
    count(generated, vocab);
    if (prompt != nullptr) count(*prompt, vocab);
    take_counts([&](TokenId t, int) {
      float& z = work_[static_cast<std::size_t>(t)];
      z = in_range(z > 0 ? z / params.repetition_penalty : z * params.repetition_penalty);
    });
  }
  if (params.presence_penalty != 0 || params.frequency_penalty != 0) {
    count(generated, vocab);
    take_counts([&](TokenId t, int n) {
      float& z = work_[static_cast<std::size_t>(t)];
      z = in_range(z - (params.presence_penalty + params.frequency_penalty * static_cast<float>(n)));
    });
  }
  for (const auto& [t, bias] : params.logit_bias) {
    if (valid(t)) work_[static_cast<std::size_t>(t)] += bias;
  }
  if (generated.size() < static_cast<std::size_t>(std::max(params.min_tokens, 0))) {
    for (const TokenId t : params.suppress_tokens) {
      if (valid(t)) work_[static_cast<std::size_t>(t)] = kMinusInfinity;
    }
  }
  return work_.data();
}

// Only differences between logits count.
void Sampler::make_zero_of(float best) {
  for (float& z : work_) z -= best;
}

void Sampler::gather(const float* z, int vocab, float least) {
  kept_.clear();
  for (int i = 0; i < vocab; ++i) {
    if (z[i] >= least) kept_.push_back({z[i], i});
  }
}

// Leaves in kept_ what may be drawn, likeliest first. No full sort: only candidates within a few nats of the best are
// looked at, and the margin doubles until they decide the question.
void Sampler::keep_top(const float* z, int vocab, float best, const SamplingParams& params, float log_z) {
  const float temperature = params.temperature;
  const auto order = [](const Candidate& a, const Candidate& b) { return a.z > b.z || (a.z == b.z && a.token < b.token); };
  const std::size_t top_k =
      params.top_k > 0 && params.top_k < vocab ? static_cast<std::size_t>(params.top_k) : static_cast<std::size_t>(vocab);
  const bool top_k_on = top_k < static_cast<std::size_t>(vocab);
  std::size_t keep = 0;
  for (float margin = 8.0f;; margin *= 2) {
    const bool all = margin > 1e4f;
    gather(z, vocab, all ? kMinusInfinity : best - margin * temperature);
    if (top_k_on && kept_.size() < top_k && !all) continue;
    const bool min_p_decides = params.min_p > 0 && -std::log(params.min_p) <= margin;
    if (kept_.size() > top_k) {
      std::nth_element(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(top_k), kept_.end(), order);
      kept_.resize(top_k);
    }
    std::sort(kept_.begin(), kept_.end(), order);
    const bool complete = all || top_k_on;
    double total = 1.0;  // mass of what top-k leaves, of the whole distribution
    if (top_k_on) {
      total = 0;
      for (const Candidate& c : kept_) total += std::exp(static_cast<double>(c.z / temperature - log_z));
    }
    double mass = 0;
    keep = 0;
    while (keep < kept_.size() && mass < static_cast<double>(params.top_p) * total) {
      mass += std::exp(static_cast<double>(kept_[keep].z / temperature - log_z));
      ++keep;
    }
    const bool top_p_decides = mass >= static_cast<double>(params.top_p) * total && params.top_p < 1.0f;
    if (complete || top_p_decides || min_p_decides) break;
  }
  keep = std::max<std::size_t>(keep, 1);
  if (params.min_p > 0) {
    const float least = best + temperature * std::log(params.min_p);
    while (keep > 1 && kept_[keep - 1].z < least) --keep;
  }
  kept_.resize(keep);
}

TokenId Sampler::draw_kept(const SamplingParams& params, double u, float& lp_mu) {
  const double inverse = 1.0 / static_cast<double>(params.temperature);
  const double best = static_cast<double>(kept_.front().z);
  double total = 0;
  for (const Candidate& c : kept_) total += std::exp((static_cast<double>(c.z) - best) * inverse);
  double rest = u * total;
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const double p = std::exp((static_cast<double>(kept_[i].z) - best) * inverse);
    if (p > 0) chosen = i;
    rest -= p;
    if (rest < 0) break;
  }
  lp_mu = static_cast<float>((static_cast<double>(kept_[chosen].z) - best) * inverse - std::log(total));
  return kept_[chosen].token;
}

// Inverse of the cumulative distribution in order of ids, in two levels so that the sum keeps pace with memory.
TokenId Sampler::draw_any(const float* z, int vocab, float temperature, double u) {
  constexpr int kBlock = 256;
  probabilities_.resize(static_cast<std::size_t>(vocab));
  const float inverse = 1.0f / temperature;
  for (int i = 0; i < vocab; ++i) probabilities_[static_cast<std::size_t>(i)] = z[i] * inverse;
  softmax(probabilities_.data(), vocab);
  const float* p = probabilities_.data();
  const auto block_sum = [&](int begin) {
    double sums[4] = {};
    const int end = std::min(begin + kBlock, vocab);
    int i = begin;
    for (; i + 4 <= end; i += 4) {
      for (int k = 0; k < 4; ++k) sums[k] += static_cast<double>(p[i + k]);
    }
    for (; i < end; ++i) sums[0] += static_cast<double>(p[i]);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  };
  double total = 0;
  for (int b = 0; b < vocab; b += kBlock) total += block_sum(b);
  double rest = u * total;
  int last = 0;  // the last block that holds any mass
  for (int b = 0; b < vocab; b += kBlock) {
    const double sum = block_sum(b);
    if (sum <= 0) continue;
    last = b;
    if (rest < sum) break;
    rest -= sum;
  }
  TokenId chosen = -1;
  for (int i = last; i < std::min(last + kBlock, vocab); ++i) {
    if (p[i] <= 0) continue;
    chosen = i;
    rest -= static_cast<double>(p[i]);
    if (rest < 0) break;
  }
  return chosen;
}

}  // namespace sluice
