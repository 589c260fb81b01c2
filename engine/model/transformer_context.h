// SPDX-License-Identifier: GPL-3.0-or-later
// ModelContext over TransformerWeights: sequences, their adapters and cache, one forward pass a step, and the draws.
// One thread at a time.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/forward_pass.h"
#include "model/kv_cache.h"
#include "model/sampler.h"
#include "model/weights.h"
#include "model/work_pool.h"
#include "model_api/model.h"

namespace sluice {

class TransformerContext final : public ModelContext {
 public:
  TransformerContext(std::shared_ptr<const TransformerWeights> weights, const ContextOptions& options);

  Result<OpenedSequence> open(std::shared_ptr<const Adapter> adapter, const std::vector<TokenId>& prompt,
                              OpenOptions options) override;
  Status reserve(SequenceHandle sequence, int tokens) override;
  using ModelContext::close;
  void close(SequenceHandle sequence, bool keep_prefix) override;
  using ModelContext::step;
  Status step(const StepInput& input, StepOutput& output) override;
  int exact_rows() const override { return kIntegerRows; }
  void flush() override { cache_.flush(); }
  KvUsage usage() const override { return cache_.usage(); }
  void limit_threads(int threads) override { pool_.limit(threads); }

 private:
  struct Open {
    std::shared_ptr<const LoraAdapter> adapter;
    bool broken = false;
  };

  Status check_tokens(const TokenId* tokens, std::size_t count, const char* what) const;
  Status check_length(int tokens) const;
  Status check(const StepInput& input) const;
  Status check_item(const StepItem& item) const;
  Status take(const StepInput& input);
  void draw(const StepInput& input, StepOutput& output);
  void score(const StepInput& input, StepOutput& output);

  const std::shared_ptr<const TransformerWeights> weights_;
  KvCache cache_;
  WorkPool pool_;
  ForwardPass pass_;
  std::unordered_map<std::int64_t, Open> open_;
  std::vector<PassPiece> pieces_;
  std::vector<ForwardPass::RowRef> head_rows_;
  std::vector<std::size_t> drawing_;  // items of head_rows_
  std::vector<Sampler> samplers_;     // one a core
};

}  // namespace sluice
