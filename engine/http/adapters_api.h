// SPDX-License-Identifier: GPL-3.0-or-later
// Adapters brought in and taken away: POST and DELETE /sluice/v1/adapters (serving.md §3.4). Thread-safe.
#pragma once

#include "http/control.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class AdaptersApi {
 public:
  AdaptersApi(Store& store, Control& control) : store_(store), control_(control) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply add(const HttpRequest& request);
  HttpReply remove(const std::string& name, const std::string& version);

  Store& store_;
  Control& control_;
};

}  // namespace sluice
