// SPDX-License-Identifier: GPL-3.0-or-later
// How the gate gets answers: a prompt goes in under a pass, an answer comes out later, many in flight at once so that they
// decode as one batch. ChatAnswers makes them through `chat` exactly as live traffic is made. Used by one thread (the gate's).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/passes.h"
#include "base/result.h"
#include "chat/completion.h"
#include "tasks/recipe.h"

namespace sluice {

struct ShadowAnswer {
  RecordId record;
  std::string text;
  std::vector<std::int32_t> prompt_ids, token_ids;
  std::vector<float> lp_full;
  bool finished = false;       // ended by itself, not cut by the budget
  double us_per_token = 0;     // 0 = unknown
};

// One answer on its way. Dropping it cancels.
class PendingAnswer {
 public:
  virtual ~PendingAnswer() = default;
  // Waits until it is whole or failed; empty when the deadline passed first. Called no more once it returned a value.
  // kCorrupt, kInternal: the version's own fault. Every other code: infrastructure.
  virtual std::optional<Result<ShadowAnswer>> wait(SteadyTime deadline) = 0;
};

class AnswerMaker {
 public:
  virtual ~AnswerMaker() = default;
  // Returns once the answer is under way. `gone` is asked now and then while it waits for that; true ends it with kCancelled.
  virtual Result<std::unique_ptr<PendingAnswer>> start(const VersionPass& pass, const TaskPrompt& prompt, std::uint64_t seed,
                                                       Purpose purpose, const std::function<bool()>& gone) = 0;
  // Log-probs of the answer's tokens under another version, at the sampling temperature; one per token.
  virtual Result<std::vector<float>> score(const VersionPass& pass, const ShadowAnswer& answer) = 0;
};

// Live conditions: the recipe's system prompt, template, sampling settings and budget.
class ChatAnswers final : public AnswerMaker {
 public:
  ChatAnswers(CompletionService& service, const Store& store, const TaskRecipe& recipe, SessionId session);

  Result<std::unique_ptr<PendingAnswer>> start(const VersionPass& pass, const TaskPrompt& prompt, std::uint64_t seed,
                                               Purpose purpose, const std::function<bool()>& gone) override;
  Result<std::vector<float>> score(const VersionPass& pass, const ShadowAnswer& answer) override;

 private:
  CompletionService& service_;
  const Store& store_;
  const TaskRecipe recipe_;
  const SessionId session_;
};

}  // namespace sluice
