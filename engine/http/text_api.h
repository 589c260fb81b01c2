// SPDX-License-Identifier: GPL-3.0-or-later
// POST /sluice/v1/tokenize, detokenize and apply-template (serving.md §1.2): text as the model sees it. Thread-safe.
#pragma once

#include "chat/completion.h"
#include "http/route_table.h"

namespace sluice {

class TextApi {
 public:
  explicit TextApi(const CompletionService& service) : service_(service) {}
  void add_routes(RouteTable& table);

 private:
  HttpReply tokenize(const HttpRequest& request) const;
  HttpReply detokenize(const HttpRequest& request) const;
  HttpReply apply_template(const HttpRequest& request) const;

  const CompletionService& service_;
};

}  // namespace sluice
