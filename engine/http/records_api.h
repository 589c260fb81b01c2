// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/records: what clients asked and got (serving.md §1.2). Thread-safe: reads and writes go to the store.
#pragma once

#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class RecordsApi {
 public:
  explicit RecordsApi(Store& store) : store_(store) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply records(const HttpRequest& request) const;
  HttpReply record(const std::string& id) const;

  Store& store_;
};

}  // namespace sluice
