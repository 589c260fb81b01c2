// SPDX-License-Identifier: GPL-3.0-or-later
// What HTTP counts and measures, and the Prometheus text of GET /metrics (serving.md §1.9). Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "base/guarded.h"
#include "http/control.h"
#include "store/store.h"

namespace sluice {

class Metrics {
 public:
  // One completion that came to an end: "stop", "length", "cancelled", "error".
  void count_request(const std::string& route, const std::string& finish_reason) SLUICE_EXCLUDES(mu_);
  void count_error(const std::string& code) SLUICE_EXCLUDES(mu_);
  void count_feedback(const std::string& source, const std::string& kind, const std::string& state) SLUICE_EXCLUDES(mu_);
  void observe_first_token(double seconds) SLUICE_EXCLUDES(mu_);
  void observe_gap(double seconds) SLUICE_EXCLUDES(mu_);
  void observe_whole(double seconds) SLUICE_EXCLUDES(mu_);

  std::int64_t requests() const SLUICE_EXCLUDES(mu_);
  double mean_request_seconds() const SLUICE_EXCLUDES(mu_);  // 0 before the first

  std::string text(const Store& store, const Control& control) const SLUICE_EXCLUDES(mu_);

 private:
  static constexpr std::array<double, 14> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                     0.25,  0.5,    1,     2.5,  5,     10,   60};
  struct Histogram {
    std::array<std::int64_t, kBounds.size() + 1> counts{};
    std::int64_t n = 0;
    double sum = 0;
    void add(double seconds);
  };
  static void write(std::string& out, const std::string& name, const Histogram& histogram);

  mutable Mutex mu_;
  std::map<std::string, std::int64_t> counters_ SLUICE_GUARDED_BY(mu_);  // name with labels
  std::int64_t requests_ SLUICE_GUARDED_BY(mu_) = 0;
  Histogram first_token_ SLUICE_GUARDED_BY(mu_);
  Histogram gap_ SLUICE_GUARDED_BY(mu_);
  Histogram whole_ SLUICE_GUARDED_BY(mu_);
};

}  // namespace sluice
