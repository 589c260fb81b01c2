// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/feedback (serving.md §2.2). Thread-safe: labels go to the store.
#pragma once

#include "http/label_writer.h"
#include "http/route_table.h"
#include "store/store.h"

namespace sluice {

class FeedbackApi {
 public:
  FeedbackApi(Store& store, const LabelWriter& labels) : store_(store), labels_(labels) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply post_feedback(const HttpRequest& request);
  HttpReply post_feedback_batch(const HttpRequest& request);
  HttpReply get_feedback(const HttpRequest& request) const;
  HttpReply unmatched(const HttpRequest& request) const;  // labels by text that found no record
  HttpReply delete_feedback(const std::string& id);

  Store& store_;
  const LabelWriter& labels_;
};

}  // namespace sluice
