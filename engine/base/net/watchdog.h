// SPDX-License-Identifier: GPL-3.0-or-later
// A thread that ends a blocking call from outside: it calls `stop` when the call's deadline passes or its token is
// cancelled. The library under HttpClient has a limit for a single read only, so a server that drips would hold a caller
// for ever. begin and end come from one thread, in turn.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

#include "base/guarded.h"
#include "base/net/http_client.h"

namespace sluice {

class CallWatchdog {
 public:
  enum class Verdict { kNone, kDeadline, kCancelled };

  explicit CallWatchdog(std::function<void()> stop);
  ~CallWatchdog();
  CallWatchdog(const CallWatchdog&) = delete;
  CallWatchdog& operator=(const CallWatchdog&) = delete;

  void begin(std::chrono::steady_clock::time_point deadline, const CancelToken& cancel) SLUICE_EXCLUDES(mu_);
  // `stop` is not called any more once this returns. Says whether, and why, it was.
  Verdict end() SLUICE_EXCLUDES(mu_);

 private:
  void run() SLUICE_EXCLUDES(mu_);

  const std::function<void()> stop_;
  Mutex mu_;
  CondVar changed_;
  bool active_ SLUICE_GUARDED_BY(mu_) = false;
  bool leaving_ SLUICE_GUARDED_BY(mu_) = false;
  Verdict verdict_ SLUICE_GUARDED_BY(mu_) = Verdict::kNone;
  std::chrono::steady_clock::time_point deadline_ SLUICE_GUARDED_BY(mu_);
  CancelToken cancel_ SLUICE_GUARDED_BY(mu_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice
