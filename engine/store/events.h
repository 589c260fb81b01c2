// SPDX-License-Identifier: GPL-3.0-or-later
// What a commit announces: ids only; readers fetch the rows. Called on the writer thread after the commit, so a listener
// must be quick and must not call the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

enum class EventKind {
  kSession, kRecord, kFeedback, kBatch, kStep, kMetric, kVersion, kDecision, kEvidence, kSettings, kServing, kLog
};

struct StoreEvent {
  EventKind kind = EventKind::kLog;
  std::int64_t id = 0;      // row id or sequence number of the row
  std::string text_id;      // record id where the kind has one
  std::int64_t commit = 0;  // grows by one per announced event
};

using StoreListener = std::function<void(const StoreEvent&)>;

}  // namespace sluice
