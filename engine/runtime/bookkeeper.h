// SPDX-License-Identifier: GPL-3.0-or-later
// Turns commits into the curves that no single part owns: acceptance per live request, the gate's rejection rate, generated
// tokens per second. Used by one thread (the runtime's housekeeping thread).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace sluice {

class Bookkeeper {
 public:
  // Reads back what was already counted, so that a restart writes no point twice. Of the newest `most_open` requests those
  // without a verdict are remembered; one that comes later makes no point.
  explicit Bookkeeper(Store& store, std::size_t most_open = 65536);

  // Rows that came since the last call. Writes metric rows; cheap when there are none.
  Status catch_up();
  // A point of the tokens/s curve for a session at its present request count.
  Status add_speed(SessionId session, double tokens_per_s);

 private:
  void take_records();
  void take_feedback();
  void take_decisions();

  struct Place {
    SessionId session;
    std::int64_t number = 0;   // of the session's live requests, from 1
  };

  Store& store_;
  const std::size_t most_open_;
  std::int64_t last_record_ = 0;
  std::int64_t last_feedback_ = 0;
  std::int64_t last_decision_ = 0;
  std::int64_t written_feedback_ = 0;   // marks already turned into points before the restart
  std::int64_t written_decision_ = 0;
  std::map<SessionId, std::int64_t> requests_;
  std::unordered_map<RecordId, Place> places_;  // requests without a verdict yet
  std::deque<RecordId> order_;                  // of all requests, oldest first
  std::vector<MetricRow> unwritten_;
  std::vector<bool> verdicts_;          // rejected? of gate decisions, newest last
};

}  // namespace sluice
