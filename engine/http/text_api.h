// SPDX-License-Identifier: GPL-3.0-or-later
// POST /sluice/v1/tokenize, detokenize and apply-template (serving.md §1.2): text as the model sees it. Thread-safe.
#pragma once

#include "chat/completion.h"
#include "http/control.h"
#include "http/route_table.h"

namespace sluice {

class TextApi {
 public:
  explicit TextApi(const Control& control) : control_(control) {}
  void add_routes(RouteTable& table);

 private:
  const Control& control_;
};

}  // namespace sluice
