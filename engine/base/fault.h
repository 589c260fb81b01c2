// SPDX-License-Identifier: GPL-3.0-or-later
// Places where a test may kill the process: SLUICE_FAULT=<name>:<count> raises SIGKILL at the count-th pass of the point of
// that name. Unset, a point costs one relaxed load. Thread-safe.
#pragma once

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>

namespace sluice {

class FaultPlan {
 public:
  static FaultPlan& instance() {
    static FaultPlan plan;
    return plan;
  }

  void pass(std::string_view point) {
    if (!armed_.load(std::memory_order_relaxed)) return;
    if (point == name_ && left_.fetch_sub(1) == 1) kill(getpid(), SIGKILL);
  }

 private:
  FaultPlan() {
    const char* text = std::getenv("SLUICE_FAULT");
    if (text == nullptr) return;
    const std::string plan = text;
    const auto colon = plan.rfind(':');
    if (colon == std::string::npos) return;
    name_ = plan.substr(0, colon);
    left_ = std::atol(plan.c_str() + colon + 1);
    armed_ = true;
  }

  std::string name_;  // const after construction
  std::atomic<long> left_{0};
  std::atomic<bool> armed_{false};
};

inline void fault_point(std::string_view name) { FaultPlan::instance().pass(name); }

}  // namespace sluice
