// SPDX-License-Identifier: GPL-3.0-or-later
// What a person or program may ask of the engine, and what comes back. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "store/rows.h"

namespace sluice {

struct LoadModel { std::string path; };         // "" = bundled; refused while a session runs
struct StartServer {                            // after a busy port, or to move
  std::string host;
  int port = 8080;
  bool remember = true;                         // a person chose the port: the workspace opens on it from now on
};

struct StartSession {
  std::string recipe;                           // name or file
  std::string name;                             // "" = the recipe's name
  std::uint64_t seed = 1;
  std::int64_t max_requests = -1;               // -1 = as the recipe says; 0 = until ended
  bool live_only = false;                       // no simulated user: traffic and labels come from outside
  bool bad_candidate = true;                    // the demo's inverted candidate, where the recipe has one
  std::string gate_profile;                     // "" = the recipe's
};
struct PauseSession {};
struct ResumeSession {};
struct EndSession {};
// Where training waits for an answer at max_ahead (TrainProgress::asks; gate.md §4): as many steps again, or the head goes
// back to the version in service. Refused where it does not wait.
struct TrainOn {};
struct DiscardTraining {};

struct PutGateSettings {
  std::string settings_json;                    // whole settings
  std::optional<SettingsId> if_match;           // refused when another row came between
  std::string who, note;
};
// One of promote, reject, hold, rollback, freeze, unfreeze (gate.md §6).
struct Decide {
  std::string action;
  VersionId version;                            // not for freeze, unfreeze
  std::string actor, note;
  std::optional<DecisionId> if_match = std::nullopt;  // the newest decision that the operator knows of
};
struct ServeBaseAndFreeze { std::string actor, note; };

struct GiveLabel {
  RecordId record;
  FeedbackKind kind = FeedbackKind::kAccept;
  double score = 0;
  std::string labeller, comment;
};
struct TakeLabelBack { FeedbackId feedback; };

// One prompt put to versions (side by side, or one for the try-it box). Through `serving` it is a live request with a
// receipt that can be labelled and train; through an explicit version it is a probe and never trains.
struct Ask {
  std::string prompt;
  std::vector<VersionId> versions;              // empty = what serves now
  int max_tokens = 0;                           // 0 = the recipe's, else 128
  std::optional<std::uint64_t> seed;
};

struct ExportAdapter { VersionId version; std::string folder; };

using Command = std::variant<LoadModel, StartServer, StartSession, PauseSession, ResumeSession, EndSession, TrainOn,
                             DiscardTraining, PutGateSettings, Decide, ServeBaseAndFreeze, GiveLabel, TakeLabelBack, Ask, ExportAdapter>;

struct Answer {
  VersionId version;
  std::string adapter_name;
  std::string text;
  RecordId record;                              // invalid for a probe that kept none
  std::string finish_reason;
  double seconds = 0;
  int tokens = 0;
};

// Accepted, or refused/failed with a reason for people.
struct CommandOutcome {
  Status status;
  std::string text;                             // what happened, one sentence
  std::optional<SessionId> session;
  std::optional<DecisionId> decision;
  std::optional<SettingsId> settings;
  std::optional<FeedbackId> feedback;
  std::string feedback_state;                   // of serving.md §2.2
  std::int64_t swap_us = 0;                     // when serving changed
  std::vector<Answer> answers;                  // Ask: one per version, in order
  bool ok() const { return status.ok(); }
};

}  // namespace sluice
