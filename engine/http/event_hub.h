// SPDX-License-Identifier: GPL-3.0-or-later
// The newest events of the store, numbered, for readers that come and go (GET /sluice/v1/events). Thread-safe; push() is
// quick and never waits for a reader. A reader that fell too far behind is told so.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "store/events.h"

namespace sluice {

class EventHub {
 public:
  explicit EventHub(std::size_t keep = 4096);

  struct Event {
    std::int64_t number = 0;  // from 1, without gaps
    StoreEvent event;
  };
  struct News {
    bool missed = false;      // events between `after` and these are gone
    std::vector<Event> events;
  };

  void push(const StoreEvent& event) SLUICE_EXCLUDES(mu_);
  // Events after number `after`; waits for one until the deadline. At most 256 at once.
  News wait_after(std::int64_t after, SteadyTime deadline) const SLUICE_EXCLUDES(mu_);
  std::int64_t newest() const SLUICE_EXCLUDES(mu_);

  // An event's id on the wire says of which hub it is: numbers begin anew with each start of the program.
  std::string wire_id(std::int64_t number) const;
  std::optional<std::int64_t> parse_wire_id(std::string_view id) const;  // nothing: of another hub

 private:
  const std::size_t keep_;
  const std::string epoch_;
  mutable Mutex mu_;
  mutable CondVar news_;
  std::deque<Event> events_ SLUICE_GUARDED_BY(mu_);
  std::int64_t newest_ SLUICE_GUARDED_BY(mu_) = 0;
};

const char* event_kind_name(EventKind kind);

}  // namespace sluice
