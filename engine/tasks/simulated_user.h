// SPDX-License-Identifier: GPL-3.0-or-later
// A person played by stated rules: accepts a reply iff none is broken, and says which was. Immutable, any thread.
#pragma once

#include <string>
#include <vector>

#include "tasks/verifier.h"

namespace sluice {

struct UserVerdict {
  bool accepted = false;
  std::vector<Violation> violations;
  std::string reason;  // "" when accepted; else the broken rules' names joined by a comma
  std::string detail;  // the same as a sentence
};

class SimulatedUser {
 public:
  explicit SimulatedUser(RuleSet rules) : rules_(std::move(rules)) {}

  UserVerdict judge(const Reply& reply) const;
  const std::string& name() const { return rules_.name; }

 private:
  RuleSet rules_;
};

}  // namespace sluice
