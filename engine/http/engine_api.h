// SPDX-License-Identifier: GPL-3.0-or-later
// POST /sluice/v1/engine/{pause,resume,flush,sleep,wake} (serving.md §3.2). Thread-safe.
#pragma once

#include "http/control.h"
#include "http/route_table.h"

namespace sluice {

class EngineApi {
 public:
  explicit EngineApi(Control& control) : control_(control) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply act(const HttpRequest& request, EngineAction action);

  Control& control_;
};

}  // namespace sluice
