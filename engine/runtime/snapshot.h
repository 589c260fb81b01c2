// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's present state in one immutable value, replaced whole; poll it at 4 Hz. What must not be missed comes as
// store events instead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "store/rows.h"

namespace sluice {

enum class EnginePhase { kLoading, kReady, kModelFailed, kStopping };

// What stands still and why, for programs that say it in their own words; `note` and `doing` are the same in English.
enum class GatePhase { kIdle, kMeasuring, kPaused, kFrozen };
enum class TrainPhase { kWaiting, kTraining, kAtBound, kPaused, kBraked, kFailed, kEnded };

struct GateProgress {
  GatePhase phase = GatePhase::kIdle;
  bool measuring = false;
  VersionId candidate, incumbent, anchor;
  std::string stage;                 // "invariants", "shadow", "anchor"
  std::int64_t n = 0, cap = 0, voids = 0;
  double e = 1, f = 1, e_limit = 0, f_limit = 0;
  double lo = -1, hi = 1;            // interval of the difference, in score
  std::int64_t candidate_k = 0, incumbent_k = 0, anchor_k = 0;
  std::vector<VersionId> waiting;    // candidates in the queue
  std::vector<VersionId> held;       // of this session, newest last: a person may promote or reject them
  std::string note;                  // why it stands still, "" when it does not
};

struct TrainProgress {
  TrainPhase phase = TrainPhase::kPaused;
  std::string doing;                 // "waiting for 16 labels (5 here)", "training step 4", "paused", "ahead of the gate: waiting"
  std::int64_t head_step = 0;
  std::int64_t steps_ahead = 0;      // of the serving version
  std::int64_t labelled_waiting = 0;
  std::int64_t batch_size = 0;
  double steps_per_min = 0;
  bool asks = false;                 // at the bound, and nothing left to measure: a person decides, or TrainOn, DiscardTraining
  std::string brake;                 // "" or what stopped training, with the number
};

struct StreamProgress {
  std::int64_t requests = 0;         // live requests answered in this session
  std::int64_t max_requests = 0;     // 0 = no limit
  std::int64_t accepted = 0, rejected = 0;
  std::int64_t in_flight = 0, failed = 0;
  bool simulated = false;
  bool finished = false;
};

struct EngineState {
  EnginePhase phase = EnginePhase::kLoading;
  std::string model_error;           // kModelFailed: reason for people
  std::string model_name, model_path, quantisation;
  std::int64_t model_bytes = 0;

  std::string server_url;            // "http://127.0.0.1:8080"; "" when not listening
  std::string server_error;          // e.g. the port is in use
  std::string data_folder;

  std::optional<SessionRow> session; // the newest one of the workspace that is not ended
  bool session_through = false;      // the simulated user's stream, and its last candidate is judged: it waits to be ended
  std::string session_problem;       // why it can't go on, "" when it can: resume tries again, end ends it
  bool frozen = false;               // no promotion but a roll-back

  VersionId serving;
  std::string serving_name;          // "base" or "be-brief@3"
  std::int64_t serving_since_us = 0;

  StreamProgress stream;
  TrainProgress train;
  GateProgress gate;

  double tokens_per_s = 0;           // generated
  std::int64_t running = 0, waiting = 0;
  std::int64_t kv_used = 0, kv_capacity = 0;
  std::int64_t rss_bytes = 0;
  std::int64_t errors = 0;           // log lines of level error since start
  std::string store_error;           // "" or why writes fail
};

}  // namespace sluice
