// SPDX-License-Identifier: GPL-3.0-or-later
// /health, /healthz and /v1/models (serving.md §1.2). Thread-safe: reads Control.
#pragma once

#include "http/control.h"
#include "http/route_table.h"

namespace sluice {

class ModelsApi {
 public:
  explicit ModelsApi(const Control& control) : control_(control) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply health() const;
  HttpReply healthz() const;
  HttpReply models() const;
  HttpReply model(const std::string& id) const;

  const Control& control_;
};

}  // namespace sluice
