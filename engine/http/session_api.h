// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/status and sessions (serving.md §1.2). Thread-safe: reads and writes go to Store and Control.
#pragma once

#include "http/control.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class SessionApi {
 public:
  SessionApi(Store& store, Control& control) : store_(store), control_(control) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply status() const;
  HttpReply sessions() const;
  HttpReply start_session(const HttpRequest& request);
  HttpReply change_session(const std::string& id, const std::string& action);

  Store& store_;
  Control& control_;
};

}  // namespace sluice
