// SPDX-License-Identifier: GPL-3.0-or-later
// What an accepted command came to, in the user's language. A refusal's reason and a decision's sentence are the engine's
// own words. Pure function, GUI thread.
#pragma once

#include <QString>

#include "bridge/engine_types.h"

namespace sluice::gui {

// `state` is the engine's after the command.
QString outcomeText(const Command& command, const CommandOutcome& outcome, const EngineState& state);

}  // namespace sluice::gui
