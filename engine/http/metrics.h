// SPDX-License-Identifier: GPL-3.0-or-later
// What HTTP counts and measures, and the Prometheus text of GET /metrics (serving.md §1.9). Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/guarded.h"
#include "http/control.h"
#include "http/histogram.h"
#include "store/store.h"

namespace sluice {

class Metrics {
 public:
  explicit Metrics(const Store& store);  // times of answers are measured from here on

  // One completion that came to an end: "stop", "length", "tool_calls", "cancelled", "error".
  void count_request(const std::string& route, const std::string& finish_reason) SLUICE_EXCLUDES(mu_);
  void count_error(const std::string& code) SLUICE_EXCLUDES(mu_);
  void count_feedback(const std::string& source, const std::string& kind, const std::string& state) SLUICE_EXCLUDES(mu_);
  void observe_first_token(double seconds) SLUICE_EXCLUDES(mu_);
  void observe_gap(double seconds) SLUICE_EXCLUDES(mu_);
  void observe_whole(double seconds) SLUICE_EXCLUDES(mu_);

  std::int64_t requests() const SLUICE_EXCLUDES(mu_);

  // Reads the records that came since the last call: their queue, prefill and decode times are counted here.
  std::string text(const Store& store, const Control& control) SLUICE_EXCLUDES(mu_);

 private:
  void read_records(const Store& store) SLUICE_EXCLUDES(mu_);

  mutable Mutex mu_;
  std::map<std::string, std::int64_t> counters_ SLUICE_GUARDED_BY(mu_);  // name with labels
  std::int64_t requests_ SLUICE_GUARDED_BY(mu_) = 0;
  TimeHistogram first_token_ SLUICE_GUARDED_BY(mu_);
  TimeHistogram gap_ SLUICE_GUARDED_BY(mu_);
  TimeHistogram whole_ SLUICE_GUARDED_BY(mu_);
  TimeHistogram queue_ SLUICE_GUARDED_BY(mu_), prefill_ SLUICE_GUARDED_BY(mu_), decode_ SLUICE_GUARDED_BY(mu_);
  std::int64_t last_record_ SLUICE_GUARDED_BY(mu_) = 0;  // up to here they are counted, or belong to an earlier start
};

}  // namespace sluice
