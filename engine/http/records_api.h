// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/records: what clients asked and got (serving.md §1.2). Thread-safe: reads and writes go to the store.
#pragma once

#include "http/completions.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class RecordsApi {
 public:
  RecordsApi(Store& store, const Completions& completions) : store_(store), completions_(completions) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply records(const HttpRequest& request) const;
  HttpReply record(const std::string& id) const;
  HttpReply redact(const std::string& id);
  HttpReply remove(const std::string& id);

  Store& store_;
  const Completions& completions_;
};

}  // namespace sluice
