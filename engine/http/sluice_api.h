// SPDX-License-Identifier: GPL-3.0-or-later
// The routes under /sluice/v1 and the small OpenAI ones (serving.md §1.2, §2.2): feedback, records, adapters, gate,
// decisions, sessions, models, health. Thread-safe: reads and writes go to Store and Control.
#pragma once

#include "http/completions.h"
#include "http/control.h"
#include "http/http_types.h"
#include "http/metrics.h"
#include "store/store.h"

namespace sluice {

class SluiceApi {
 public:
  SluiceApi(Store& store, Control& control, Completions& completions, Metrics& metrics, int context_length)
      : store_(store), control_(control), completions_(completions), metrics_(metrics), context_length_(context_length) {}

  HttpReply health() const;
  HttpReply healthz() const;
  HttpReply models() const;
  HttpReply model(const std::string& id) const;

  HttpReply post_feedback(const HttpRequest& request);
  HttpReply post_feedback_batch(const HttpRequest& request);
  HttpReply get_feedback(const HttpRequest& request) const;
  HttpReply delete_feedback(const std::string& id);

  HttpReply records(const HttpRequest& request) const;
  HttpReply record(const std::string& id) const;
  HttpReply status() const;
  HttpReply adapters() const;

  HttpReply get_gate() const;
  HttpReply put_gate(const HttpRequest& request);
  HttpReply decisions(const HttpRequest& request) const;
  HttpReply post_decision(const HttpRequest& request);
  HttpReply sessions() const;
  HttpReply start_session(const HttpRequest& request);
  HttpReply change_session(const std::string& id, const std::string& action);

 private:
  Store& store_;
  Control& control_;
  Completions& completions_;
  Metrics& metrics_;
  const int context_length_;
};

}  // namespace sluice
