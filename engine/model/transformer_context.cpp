// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/transformer_context.h"

#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <exception>

#include "model/kernels/vector_math.h"

namespace sluice {

TransformerContext::TransformerContext(std::shared_ptr<const TransformerWeights> weights, const ContextOptions& options)
    : weights_(std::move(weights)),
      cache_({weights_->config.layers, weights_->config.kv_heads, weights_->config.head_dim}, options.kv_tokens,
             options.prefix_cache),
      pool_(std::max(options.threads, 1)),
      pass_(weights_, cache_, pool_),
      samplers_(static_cast<std::size_t>(pool_.threads())) {}

Status TransformerContext::check_tokens(const TokenId* tokens, std::size_t count, const char* what) const {
  for (std::size_t i = 0; i < count; ++i) {
    if (tokens[i] < 0 || tokens[i] >= weights_->config.vocab) {
      return invalid_argument(std::string(what) + " " + std::to_string(tokens[i]) + " is outside the vocabulary of " +
                              std::to_string(weights_->config.vocab));
    }
  }
  return {};
}

Result<OpenedSequence> TransformerContext::open(std::shared_ptr<const Adapter> adapter, const std::vector<TokenId>& prompt,
                                                OpenOptions options) {
  Open opened;
  if (adapter != nullptr) {
    opened.adapter = std::dynamic_pointer_cast<const LoraAdapter>(adapter);
    if (opened.adapter == nullptr || !opened.adapter->fits(weights_->config)) {
      return invalid_argument("adapter version " + std::to_string(adapter->version().value) + " was not loaded for this model");
    }
  }
  SLUICE_RETURN_IF_ERROR(check_tokens(prompt.data(), prompt.size(), "prompt token"));
  const int wanted = std::max(options.reserve_tokens, static_cast<int>(prompt.size()));
  SLUICE_RETURN_IF_ERROR(check_length(wanted));
  const VersionId version = adapter == nullptr ? kBaseVersion : adapter->version();
  SLUICE_ASSIGN_OR_RETURN(const OpenedSequence result, cache_.open(version, prompt, {wanted, options.exact}));
  open_.emplace(result.handle.value, std::move(opened));
  return result;
}

Status TransformerContext::check_length(int tokens) const {
  if (tokens <= weights_->config.context) return {};
  return invalid_argument("a sequence of " + std::to_string(tokens) + " tokens is longer than the model's context of " +
                          std::to_string(weights_->config.context));
}

Status TransformerContext::reserve(SequenceHandle sequence, int tokens) {
  SLUICE_RETURN_IF_ERROR(check_length(tokens));
  return cache_.reserve(sequence, tokens);
}

void TransformerContext::close(SequenceHandle sequence, bool keep_prefix) {
  const auto found = open_.find(sequence.value);
  if (found == open_.end()) return;
  cache_.close(sequence, keep_prefix && !found->second.broken);
  open_.erase(found);
}

Status TransformerContext::check_item(const StepItem& item) const {
  const std::string name = "sequence " + std::to_string(item.sequence.value);
  const auto found = open_.find(item.sequence.value);
  if (found == open_.end()) return invalid_argument(name + " is not open");
  if (found->second.broken) return invalid_argument(name + " was in a step that failed; close it");
  if (item.count < 1 || item.tokens == nullptr) return invalid_argument(name + " feeds no tokens in this step");
  SLUICE_RETURN_IF_ERROR(check_tokens(item.tokens, static_cast<std::size_t>(item.count), "token"));
  if (item.count > cache_.room(item.sequence)) {
    return invalid_argument(name + " was opened for " + std::to_string(cache_.length(item.sequence) + cache_.room(item.sequence)) +
                            " tokens and can't take " + std::to_string(item.count) + " more");
  }
  if (item.sample && (item.sampling == nullptr || item.generated == nullptr)) {
    return invalid_argument(name + " samples without sampling settings");
  }
  if (item.score) {
    if (item.score_targets == nullptr) return invalid_argument(name + " scores without targets");
    SLUICE_RETURN_IF_ERROR(check_tokens(item.score_targets, static_cast<std::size_t>(item.count), "score target"));
    if (!(item.score_temperature > 0) || !std::isfinite(item.score_temperature)) {
      return invalid_argument(name + ": the score temperature must be above 0");
    }
  }
  return {};
}

Status TransformerContext::check(const StepInput& input) const {
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    SLUICE_RETURN_IF_ERROR(check_item(input.items[i]));
    for (std::size_t j = 0; j < i; ++j) {
      if (input.items[j].sequence == input.items[i].sequence) {
        return invalid_argument("sequence " + std::to_string(input.items[i].sequence.value) + " appears twice in a step");
      }
    }
  }
  return {};
}

Status TransformerContext::take(const StepInput& input) {
  pieces_.clear();
  for (const StepItem& item : input.items) {
    PassPiece piece;
    piece.tokens = item.tokens;
    piece.count = item.count;
    piece.first_position = cache_.length(item.sequence);
    piece.adapter = open_.at(item.sequence.value).adapter.get();
    SLUICE_RETURN_IF_ERROR(cache_.extend(item.sequence, item.tokens, item.count));
    piece.blocks = &cache_.blocks(item.sequence);
    pieces_.push_back(piece);
  }
  return {};
}

Status TransformerContext::step(const StepInput& input, StepOutput& output) {
  SLUICE_RETURN_IF_ERROR(check(input));
  output.results.resize(input.items.size());
  for (StepResult& result : output.results) {
    result.scores.clear();
    result.tops.clear();
  }
  if (input.items.empty()) return {};
  const c10::InferenceMode inference;
  if (at::get_num_threads() != 1) at::set_num_threads(1);  // the pool splits the work
  Status failed;
  try {
    failed = take(input);
    if (failed.ok()) {
      pass_.run(pieces_);
      draw(input, output);
      score(input, output);
    }
  } catch (const std::exception& e) {
    failed = internal_error(std::string("the forward pass failed: ") + e.what());
  }
  if (!failed.ok()) {
    for (const StepItem& item : input.items) open_.at(item.sequence.value).broken = true;
    return failed;
  }
  return {};
}

void TransformerContext::draw(const StepInput& input, StepOutput& output) {
  head_rows_.clear();
  drawing_.clear();
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    if (!input.items[i].sample) continue;
    head_rows_.push_back({static_cast<int>(i), input.items[i].count - 1});
    drawing_.push_back(i);
  }
  if (drawing_.empty()) return;
  const float* logits = pass_.logits(head_rows_);
  const int vocab = weights_->config.vocab;
  pool_.run(static_cast<std::int64_t>(drawing_.size()), 1, [&](std::int64_t begin, std::int64_t end, int worker) {
    Sampler& sampler = samplers_[static_cast<std::size_t>(worker)];
    for (std::int64_t d = begin; d < end; ++d) {
      const std::size_t i = drawing_[static_cast<std::size_t>(d)];
      const StepItem& item = input.items[i];
      output.results[i].sampled = sampler.sample(logits + d * vocab, vocab, *item.sampling, *item.generated, item.prompt);
    }
  });
}

void TransformerContext::score(const StepInput& input, StepOutput& output) {
  const int vocab = weights_->config.vocab;
  for (std::size_t i = 0; i < input.items.size(); ++i) {
    const StepItem& item = input.items[i];
    if (!item.score) continue;
    StepResult& result = output.results[i];
    result.scores.resize(static_cast<std::size_t>(item.count));
    if (item.score_top >= 0) result.tops.resize(static_cast<std::size_t>(item.count));
    const float inverse = 1.0f / item.score_temperature;
    // Tiles are cut per item, so a score does not depend on batch mates.
    for (int first = 0; first < item.count; first += ForwardPass::kScoreRows) {
      const int n = std::min(ForwardPass::kScoreRows, item.count - first);
      head_rows_.clear();
      for (int t = 0; t < n; ++t) head_rows_.push_back({static_cast<int>(i), first + t});
      const float* logits = pass_.score_logits(head_rows_);
      pool_.run(n, 1, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t t = begin; t < end; ++t) {
          const float* z = logits + t * vocab;
          const std::size_t at = static_cast<std::size_t>(first + t);
          const float log_z = log_sum_exp(z, vocab, inverse);
          result.scores[at] = z[item.score_targets[at]] * inverse - log_z;
          if (item.score_top < 0) continue;
          result.tops[at] = top_logprobs(z, vocab, inverse == 1.0f ? log_z : log_sum_exp(z, vocab), item.score_top);
        }
      });
    }
  }
}

}  // namespace sluice
