// SPDX-License-Identifier: GPL-3.0-or-later
// Feedback in the forms that other programs' clients send (serving.md §2.3): editors (/api/training/submit and Continue's
// data hook) and reef's reports. Thread-safe: labels go to the store.
#pragma once

#include "http/label_writer.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class CompatApi {
 public:
  CompatApi(Store& store, const LabelWriter& labels) : store_(store), labels_(labels) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply editor_submit(const HttpRequest& request) const;
  HttpReply editor_hook(const HttpRequest& request) const;
  HttpReply reef_report(const HttpRequest& request) const;

  Store& store_;
  const LabelWriter& labels_;
};

}  // namespace sluice
