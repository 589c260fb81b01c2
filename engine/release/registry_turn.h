// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of Registry that only its own sources see.
#pragma once

#include <vector>

#include "release/registry.h"

namespace sluice {

class Registry::Turn {
 public:
  explicit Turn(Registry& registry);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Registry& registry_;
};

struct Registry::Outbox {
  std::vector<DecisionRow> rows;
  std::vector<SwapNotice> swaps;
};

}  // namespace sluice
