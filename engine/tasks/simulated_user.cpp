// SPDX-License-Identifier: GPL-3.0-or-later
#include "tasks/simulated_user.h"

namespace sluice {

UserVerdict SimulatedUser::judge(const Reply& reply) const {
  UserVerdict verdict;
  verdict.violations = check_rule_set(rules_, reply);
  verdict.accepted = verdict.violations.empty();
  for (const Violation& violation : verdict.violations) {
    verdict.reason += (verdict.reason.empty() ? "" : ",") + violation.rule;
    verdict.detail += (verdict.detail.empty() ? "" : "; ") + violation.text;
  }
  return verdict;
}

}  // namespace sluice
