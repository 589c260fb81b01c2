// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/event_hub.h"

#include <algorithm>
#include <charconv>

#include "base/ids.h"

namespace sluice {
namespace {

constexpr std::size_t kMostAtOnce = 256;

}  // namespace

EventHub::EventHub(std::size_t keep) : keep_(keep), epoch_(RecordId::make().text.substr(4)) {}

void EventHub::push(const StoreEvent& event) {
  MutexLock lock(mu_);
  events_.push_back({++newest_, event});
  if (events_.size() > keep_) events_.pop_front();
  news_.notify_all();
}

EventHub::News EventHub::wait_after(std::int64_t after, SteadyTime deadline) const {
  MutexLock lock(mu_);
  while (newest_ <= after) {
    if (!news_.wait_until(mu_, deadline) && newest_ <= after) return {};
  }
  News out;
  const std::int64_t oldest = newest_ - static_cast<std::int64_t>(events_.size()) + 1;
  out.missed = after + 1 < oldest;
  const std::int64_t from = std::max(after + 1, oldest);
  for (std::int64_t n = from; n <= newest_ && out.events.size() < kMostAtOnce; ++n) {
    out.events.push_back(events_[static_cast<std::size_t>(n - oldest)]);
  }
  return out;
}

std::int64_t EventHub::newest() const {
  MutexLock lock(mu_);
  return newest_;
}

std::string EventHub::wire_id(std::int64_t number) const { return epoch_ + "-" + std::to_string(number); }

std::optional<std::int64_t> EventHub::parse_wire_id(std::string_view id) const {
  if (id.size() <= epoch_.size() + 1 || id.substr(0, epoch_.size()) != epoch_ || id[epoch_.size()] != '-') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, failure] = std::from_chars(id.data() + epoch_.size() + 1, id.data() + id.size(), number);
  if (failure != std::errc() || end != id.data() + id.size() || number < 0 || number > newest()) return std::nullopt;
  return number;
}

const char* event_kind_name(EventKind kind) {
  switch (kind) {
    case EventKind::kSession: return "session";
    case EventKind::kRecord: return "record";
    case EventKind::kFeedback: return "feedback";
    case EventKind::kBatch: return "batch";
    case EventKind::kStep: return "step";
    case EventKind::kMetric: return "metric";
    case EventKind::kVersion: return "version";
    case EventKind::kDecision: return "decision";
    case EventKind::kEvidence: return "evidence";
    case EventKind::kSettings: return "settings";
    case EventKind::kServing: return "serving";
    case EventKind::kLog: return "log";
  }
  return "event";
}

}  // namespace sluice
