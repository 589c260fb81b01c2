// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/feedback (serving.md §2.2). Thread-safe: labels go to the store.
#pragma once

#include "http/completions.h"
#include "http/metrics.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class FeedbackApi {
 public:
  FeedbackApi(Store& store, const Completions& completions, Metrics& metrics)
      : store_(store), completions_(completions), metrics_(metrics) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply post_feedback(const HttpRequest& request);
  HttpReply post_feedback_batch(const HttpRequest& request);
  HttpReply get_feedback(const HttpRequest& request) const;
  HttpReply delete_feedback(const std::string& id);

  Store& store_;
  const Completions& completions_;
  Metrics& metrics_;
};

}  // namespace sluice
