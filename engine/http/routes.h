// SPDX-License-Identifier: GPL-3.0-or-later
// All parts of the API behind one door: is there such a route, may this client use it, who answers. Thread-safe; holds the
// parts' state. A new part is a class with add_routes(RouteTable&), a member here and a line in the constructor.
#pragma once

#include <atomic>
#include <optional>

#include "base/log.h"
#include "http/adapters_api.h"
#include "http/compat_api.h"
#include "http/completions.h"
#include "http/engine_api.h"
#include "http/events_api.h"
#include "http/feedback_api.h"
#include "http/guard.h"
#include "http/label_writer.h"
#include "http/metrics.h"
#include "http/models_api.h"
#include "http/records_api.h"
#include "http/release_api.h"
#include "http/route_table.h"
#include "http/session_api.h"
#include "http/text_api.h"

namespace sluice {

class Routes {
 public:
  Routes(const Guard& guard, Store& store, Control& control, Log& log, const std::atomic<bool>& stopping,
         int max_exchanges, const Clock& clock);

  // Before the body is read: is there such a route, may this client use it, does the body's type fit? The answer when it
  // ends here: an error, or OPTIONS.
  std::optional<HttpReply> admit(const HttpRequest& request) const;
  // With the body. Never throws.
  HttpReply handle(const HttpRequest& request);

  std::optional<Scope> scope_of(const std::string& path) const;  // nothing: no such route

  const Metrics& metrics() const { return metrics_; }
  const Completions& completions() const { return completions_; }
  Completions& completions() { return completions_; }
  void count_error(const HttpReply& reply);

 private:
  const Guard& guard_;
  Store& store_;
  Control& control_;
  Log& log_;
  Metrics metrics_;
  Completions completions_;
  ModelsApi models_;
  LabelWriter labels_;
  FeedbackApi feedback_;
  CompatApi compat_;
  RecordsApi records_;
  ReleaseApi release_;
  SessionApi sessions_;
  EventsApi events_;
  AdaptersApi adapters_;
  EngineApi engine_;
  TextApi text_;
  RouteTable table_;
};

}  // namespace sluice
