// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/net/watchdog.h"

#include <algorithm>

namespace sluice {
namespace {

// How late a cancelled token may be seen. The token is a plain flag, so that anyone can hold one.
constexpr std::chrono::milliseconds kPoll{50};

}  // namespace

CallWatchdog::CallWatchdog(std::function<void()> stop) : stop_(std::move(stop)), thread_([this] { run(); }) {}

CallWatchdog::~CallWatchdog() {
  {
    MutexLock lock(mu_);
    leaving_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CallWatchdog::begin(std::chrono::steady_clock::time_point deadline, const CancelToken& cancel) {
  MutexLock lock(mu_);
  active_ = true;
  verdict_ = Verdict::kNone;
  deadline_ = deadline;
  cancel_ = cancel;
  changed_.notify_all();
}

CallWatchdog::Verdict CallWatchdog::end() {
  MutexLock lock(mu_);
  active_ = false;
  return verdict_;
}

void CallWatchdog::run() {
  MutexLock lock(mu_);
  while (!leaving_) {
    if (!active_) {
      changed_.wait(mu_);
      continue;
    }
    const auto now = std::chrono::steady_clock::now();
    if (cancel_.cancelled()) {
      verdict_ = Verdict::kCancelled;
    } else if (now >= deadline_) {
      verdict_ = Verdict::kDeadline;
    }
    // Again and again: a call that is only about to open its socket does not notice a single stop. Under the lock, so
    // that it never hits the next call.
    if (verdict_ != Verdict::kNone) stop_();
    const auto next = now + kPoll;
    changed_.wait_until(mu_, verdict_ == Verdict::kNone ? std::min(next, deadline_) : next);
  }
}

}  // namespace sluice
