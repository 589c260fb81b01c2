// SPDX-License-Identifier: GPL-3.0-or-later
// The stream driver: sends a recipe's prompts through our own HTTP server like any client, lets the simulated user judge each
// reply, and posts the verdict as feedback over HTTP too. A few worker threads, one connection each. Waits while enough
// labelled records wait for the trainer, so that traffic stays near what is learnt. Thread-safe; callbacks come from worker
// threads, one at a time, and must not call stop().
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/net/http_client.h"
#include "tasks/recipe.h"
#include "tasks/simulated_user.h"

namespace sluice {

struct DriverEvent {
  std::int64_t number = 0;        // of the request, from 0, in sending order
  std::string record_id, prompt_id, prompt, completion;
  std::string adapter;            // "be-brief@3" or "base"
  std::int64_t version = 0;
  bool accepted = false;
  std::string reason, detail;     // of the simulated user
  std::string feedback_state;     // serving.md §2.2; "" when no verdict was sent
  std::string error;              // "" = the exchange and its feedback went through
};

struct DriverOptions {
  std::string base_url;           // "http://127.0.0.1:8080"
  std::string api_key;            // "" = none
  std::string model;              // name the requests ask for: the session's adapter
  std::uint64_t seed = 0;
  int concurrency = 8;
  std::int64_t max_requests = 0;  // 0 = no end
  std::int64_t already_sent = 0;  // a resumed session goes on behind these
  bool give_feedback = true;      // false: people label
  // Labelled records that wait untrained; the driver waits while this plus its own requests in flight reach max_waiting.
  std::function<std::int64_t()> waiting;
  std::int64_t max_waiting = 32;
  std::function<void(const DriverEvent&)> on_event;
  const Log* log = nullptr;
};

struct DriverCounts {
  std::int64_t sent = 0, finished = 0, accepted = 0, rejected = 0, failed = 0;
  int in_flight = 0;
  bool paused = false;
  bool waiting = false;           // held back by max_waiting
  bool done = false;              // max_requests reached and all answered, or stopped
};

class Driver {
 public:
  // kInvalidArgument: a URL that is none, no train prompts.
  static Result<std::unique_ptr<Driver>> create(TaskRecipe recipe, DriverOptions options);
  ~Driver();  // stop()
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  void start(bool paused = false);
  void pause();                   // requests in flight finish
  void resume();
  void notify();                  // a step was made: fewer labelled records wait
  void set_max_requests(std::int64_t max_requests);  // also after the end: goes on
  void stop();                    // cancels what is in flight, joins; idempotent
  // Until max_requests are answered or stop(); false when the deadline passed first.
  bool wait_done(std::chrono::steady_clock::time_point deadline);
  DriverCounts counts() const;

 private:
  struct Job;
  static constexpr const char* kChatPath = "/v1/chat/completions";

  Driver(TaskRecipe recipe, DriverOptions options);
  void work();
  bool take(Job& job);
  DriverEvent run(HttpClient& client, const Job& job);
  void send_verdict(HttpClient& client, DriverEvent& event);
  void finish(const DriverEvent& event);
  Result<HttpResponse> post(HttpClient& client, const std::string& path, const std::string& body, const HttpCall& call);
  bool pause_for(std::chrono::milliseconds time);  // false: stopping
  HttpCall call() const;
  void update_done() SLUICE_REQUIRES(mu_);

  const TaskRecipe recipe_;
  const DriverOptions options_;
  const SimulatedUser user_;
  CancelToken cancel_;

  mutable Mutex mu_;
  CondVar changed_;
  PromptStream stream_ SLUICE_GUARDED_BY(mu_);
  DriverCounts counts_ SLUICE_GUARDED_BY(mu_);
  std::int64_t max_requests_ SLUICE_GUARDED_BY(mu_);
  bool telling_ SLUICE_GUARDED_BY(mu_) = false;  // a listener runs: callbacks come one at a time
  bool stopping_ SLUICE_GUARDED_BY(mu_) = false;
  std::vector<std::thread> threads_;  // touched by start() and stop() only
};

}  // namespace sluice
