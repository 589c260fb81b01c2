// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's enumerations and short codes in the user's language. A code that is not known here is shown as it is.
// Sentences about a decision are the engine's own and never pass through here. Pure functions, GUI thread.
#pragma once

#include <QString>

#include "bridge/engine_types.h"

namespace sluice::gui {

QString versionStateText(VersionState state);
QString labelText(const std::string& label);            // of a version: "deliberately bad"
QString versionTitle(VersionId version, const std::string& label);  // "v3", "v3 – deliberately bad"
QString versionTitle(const VersionRow& version);
QString adapterText(const std::string& name);           // "base", "be-brief@3"
QString sessionStateText(SessionState state);
QString trainText(const TrainProgress& train);          // what the trainer does
QString gateNoteText(const GateProgress& gate);         // why the gate stands still; empty when it does not
QString feedbackStateText(const std::string& state);    // what becomes of a verdict
QString fateText(const std::string& fate);              // what became of a record: waiting, trained, or why not
QString dropText(const std::string& reason);            // "12 not trained: ..."
QString sourceText(FeedbackSource source);
QString ruleText(const std::string& rules);             // what a simulated user turned away: rule names, comma separated
QString endText(const std::string& finishReason);       // "ended by ..."
QString partText(const std::string& category);          // of a log line

}  // namespace sluice::gui
