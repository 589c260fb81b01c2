// SPDX-License-Identifier: GPL-3.0-or-later
// Runs POST /v1/chat/completions, /v1/completions and /v1/fim/completions: parse, resolve the model, start the exchange,
// stream or collect.
// Thread-safe: each call runs on its own HTTP thread.
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <string>

#include "base/guarded.h"
#include "chat/completion.h"
#include "http/control.h"
#include "http/http_types.h"
#include "http/metrics.h"
#include "http/openai.h"
#include "http/route_table.h"

namespace sluice {

// 503 unless completions can be served now.
std::optional<ApiError> not_ready(ServingPhase phase);

class Completions {
 public:
  // `stopping` set: waiting requests and open streams end within 200 ms. `clock` measures the silence of streams.
  Completions(Control& control, Metrics& metrics, const std::atomic<bool>& stopping, int max_exchanges,
              const Clock& clock);

  void add_routes(RouteTable& table);
  // Is the answer with this receipt still being made?
  bool is_open(const std::string& record_id) const SLUICE_EXCLUDES(mu_);
  // Until no request is being answered; false at the deadline.
  bool wait_idle(SteadyTime deadline) const SLUICE_EXCLUDES(mu_);
  void hang_up() SLUICE_EXCLUDES(mu_);  // on every client whose request is being answered
  int retry_after() const;  // seconds until a place should be free, from the drain rate

 private:
  class Job;
  friend class Job;

  HttpReply handle(const HttpRequest& request, OpenAiRoute route);
  std::optional<ApiError> start(Job& job, const HttpRequest& request);
  ApiError cut_short() const;  // why the engine ended a request that nobody took back
  HttpReply collect(Job& job, const HttpRequest& request);
  void stream(Job& job, StreamSink& sink);

  Control& control_;
  Metrics& metrics_;
  const std::atomic<bool>& stopping_;
  const int max_exchanges_;
  const Clock& clock_;

  mutable Mutex mu_;
  mutable CondVar idle_;
  std::set<Job*> running_ SLUICE_GUARDED_BY(mu_);
  std::set<std::string> open_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
