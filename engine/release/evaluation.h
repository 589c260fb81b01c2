// SPDX-License-Identifier: GPL-3.0-or-later
// What the gate thread knows about the candidate in hand. Only the sources of Evaluator see it.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "release/evaluator.h"
#include "release/evidence.h"
#include "release/gate_json.h"

namespace sluice {

// Its files can't be used, now or later.
inline bool at_fault(const Status& status) { return status.code() == Code::kCorrupt || status.code() == Code::kNotFound; }

struct Evaluator::Evaluation {
  VersionRow version;
  EvaluationMemo memo;
  GateSettings start;                    // in force when it began
  bool anchor_applies = false;
  std::uint64_t order_seed = 0;
  std::vector<std::size_t> plan;         // pool indices in the order of this attempt
  std::size_t next = 0;                  // place in the plan of the next pair to fold
  std::vector<PairEvidence> pairs;       // those folded
  std::optional<VersionPass> candidate, incumbent, anchor;
};

// One prompt with an answer on its way from each arm. An arm that could not even start keeps why.
struct Evaluator::Flight {
  struct Arm {
    std::unique_ptr<PendingAnswer> pending;
    Status failed;
  };
  std::size_t place = 0;  // in the plan
  Arm candidate, incumbent;
  std::optional<Arm> anchor;  // none: not applicable, or its scores are known
};

}  // namespace sluice
