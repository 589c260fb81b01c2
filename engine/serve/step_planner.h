// SPDX-License-Identifier: GPL-3.0-or-later
// What each running sequence does in the next step: one token for every sequence that generates, and a bounded number of
// prompt tokens, so that a long prompt delays no answer by more than that. Those prompt tokens go to live requests first;
// within one priority up to half of them go to the oldest and the others to the shortest, so that a short request behind a
// long prompt begins at once and nobody waits until all shorter ones are through. Used by the engine's thread alone.
#pragma once

#include <memory>
#include <vector>

#include "serve/prefill_budget.h"
#include "serve/sequence.h"

namespace sluice {

struct StepPlan {
  StepInput input;
  std::vector<Sequence*> sequences;  // one per item, same order
  int prefill_tokens = 0;            // fed by sequences that do not generate yet
};

class StepPlanner {
 public:
  // Valid until the next call or until the sequences change. Empty when nothing can run: a sequence whose reader is far
  // behind is left out. `exact_rows`: most tokens of an exact sequence in one item.
  const StepPlan& plan(const std::vector<std::unique_ptr<Sequence>>& running, const PrefillBudget& budget, int exact_rows);

 private:
  struct Share {
    Sequence* sequence = nullptr;
    int left = 0;   // prompt tokens to feed; of an exact sequence, that one item may
    int given = 0;
  };
  void add_decode(Sequence& sequence);
  void add_prefill(Sequence& sequence, int count);
  // Gives the sequences of one priority their parts of `budget`; what is left comes back.
  int share_out(Priority priority, const std::vector<std::unique_ptr<Sequence>>& running, int budget, int exact_rows);

  StepPlan plan_;
  std::vector<Share> shares_;
};

}  // namespace sluice
