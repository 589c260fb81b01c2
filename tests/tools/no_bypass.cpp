// SPDX-License-Identifier: GPL-3.0-or-later
// Ways round the gate, none of which may compile. no_bypass_test.py compiles this file once for each `#elif`, expects the
// error named there, and once without any, which must succeed.
#include "base/passes.h"
#include "model_api/adapter.h"
#include "serve/request.h"

namespace sluice {

void good(AdapterHost& host, const CommittedDecision& decision, const VersionPass& pass) {
  (void)host.publish(decision);
  (void)AdapterChoice::with(pass);
}

#if CASE == 0
#elif CASE == 1  // error: cannot convert|could not convert|no known conversion|no matching function
void publish_a_bare_version(AdapterHost& host) { (void)host.publish(VersionId(7)); }
#elif CASE == 2  // error: private
CommittedDecision forge() { return CommittedDecision(DecisionId(1), VersionId(7), VersionId(0)); }
#elif CASE == 3  // error: private
void publish_a_forged_decision(AdapterHost& host) { (void)host.publish({DecisionId(1), VersionId(7), VersionId(0)}); }
#elif CASE == 4  // error: no matching function|use of deleted|private
CommittedDecision forge_by_default() { return CommittedDecision(); }
#elif CASE == 5  // error: private
VersionPass forge_a_pass() { return VersionPass(VersionId(7)); }
#elif CASE == 6  // error: cannot convert|could not convert|no known conversion|no matching function
AdapterChoice choose_without_a_pass() { return AdapterChoice::with(VersionId(7)); }
#elif CASE == 7  // error: private
AdapterChoice choose_by_kind() { return AdapterChoice(AdapterChoice::Kind::kPass, VersionId(7), nullptr); }
#elif CASE == 8  // error: private
void point_a_choice_elsewhere(AdapterChoice& choice) { choice.version_ = VersionId(7); }
#endif

}  // namespace sluice
