// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/adapters, gate and decisions (serving.md §1.2, §3.4). Thread-safe: reads and writes go to Store and Control.
#pragma once

#include "http/control.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class ReleaseApi {
 public:
  ReleaseApi(Store& store, Control& control) : store_(store), control_(control) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply adapters() const;
  HttpReply get_gate() const;
  HttpReply put_gate(const HttpRequest& request);
  HttpReply decisions(const HttpRequest& request) const;
  HttpReply post_decision(const HttpRequest& request);

  Store& store_;
  Control& control_;
};

}  // namespace sluice
