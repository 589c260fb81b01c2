// SPDX-License-Identifier: GPL-3.0-or-later
// GET /sluice/v1/events: what the store committed, as server-sent events (serving.md §1.2). Thread-safe.
#pragma once

#include <atomic>

#include "http/control.h"
#include "http/route_table.h"

namespace sluice {

class EventsApi {
 public:
  // `stopping` set: open streams end within 200 ms.
  EventsApi(Control& control, const std::atomic<bool>& stopping) : control_(control), stopping_(stopping) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply events(const HttpRequest& request);
  void stream(std::int64_t after, bool reset, StreamSink& sink) const;

  Control& control_;
  const std::atomic<bool>& stopping_;
  std::atomic<int> open_{0};
};

}  // namespace sluice
