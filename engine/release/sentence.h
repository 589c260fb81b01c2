// SPDX-License-Identifier: GPL-3.0-or-later
// The one sentence a decision is explained by, made from its numbers: the same in panel, log, timeline and HTTP. Pure.
#pragma once

#include <string>

#include "release/gate.h"

namespace sluice {

// "Rejected v14: accept rate 52 of 120 against 66 of 120 for v12; at least 2 points better is excluded (F 11.3 ≥ 10)."
std::string decision_sentence(const GateSettings& settings, const Evidence& head, const Decision& decision);

std::string version_text(VersionId version);  // "v12"; "the base" for 0

}  // namespace sluice
