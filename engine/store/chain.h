// SPDX-License-Identifier: GPL-3.0-or-later
// The hash chain over gate decisions (gate.md §6). Internal to engine/store; pure functions.
#pragma once

#include <string>
#include <vector>

#include "store/rows.h"

namespace sluice {

// prev_hash of the first decision of a workspace.
std::string chain_start();
// SHA-256(prev_hash ‖ canonical row) as hex. The canonical row names every field but `hash` with its length, so that no
// two rows have the same text.
std::string decision_hash(const DecisionRow& row);
// `rows` in ascending id; the first is the workspace's first. One line per problem.
std::vector<std::string> check_chain(const std::vector<DecisionRow>& rows);

}  // namespace sluice
