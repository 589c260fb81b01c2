// SPDX-License-Identifier: GPL-3.0-or-later
// Gate settings and stage-1 evidence as JSON text, as rows and HTTP carry them. Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "release/gate.h"

namespace sluice {

std::string gate_settings_to_json(const GateSettings& settings);
// Fields that are absent keep their value in `base`, except that a "profile" other than the base's first loads its preset.
// Unknown fields are refused by name. The result is checked (check_gate_settings).
Result<GateSettings> gate_settings_from_json(std::string_view text, const GateSettings& base);

std::string probe_to_json(const ProbeEvidence& probe);
Result<ProbeEvidence> probe_from_json(std::string_view text);

// For DecisionRow: the checks with their limits; the protected metric's numbers.
std::string invariants_to_json(const ProbeEvidence& probe, const Decision& decision);
// Reads back the probe part of invariants_to_json.
Result<ProbeEvidence> probe_of_decision(std::string_view invariants_json);
std::string protected_to_json(const std::string& metric, const Decision& decision);

// What an evaluation must remember besides its evidence rows to go on after a restart.
struct EvaluationMemo {
  VersionId candidate, incumbent, anchor;
  std::int64_t attempt = 0;
  SettingsId settings;          // in force when it began
  std::int64_t started_us = 0;
  std::int64_t tokens = 0;      // generated so far
  ProbeEvidence probe;
};
std::string memo_to_json(const EvaluationMemo& memo);
Result<EvaluationMemo> memo_from_json(std::string_view text);

}  // namespace sluice
