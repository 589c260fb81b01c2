// SPDX-License-Identifier: GPL-3.0-or-later
// Commit events on their way from the engine's writer thread to the GUI side. Mutex + vector; the first push after a drain
// calls the wake function once, so a flood costs one wake-up. When full it drops and remembers which kinds are stale: the
// reader then re-reads them from the store after the last row it has, so nothing is lost. Thread-safe.
#pragma once

#include <array>
#include <functional>
#include <mutex>
#include <vector>

#include "store/events.h"

namespace sluice::gui {

class Inbox {
 public:
  static constexpr std::size_t kCapacity = 65536;
  static constexpr std::size_t kKinds = static_cast<std::size_t>(EventKind::kLog) + 1;

  // `wake` is called outside the lock, on the pushing thread.
  explicit Inbox(std::function<void()> wake, std::size_t capacity = kCapacity);

  void push(const StoreEvent& event);

  struct Drained {
    std::vector<StoreEvent> events;
    std::array<bool, kKinds> touched{};  // kinds that had events, dropped ones included
    bool overflowed = false;
  };
  Drained drain();

 private:
  const std::function<void()> wake_;
  const std::size_t capacity_;
  std::mutex mutex_;
  Drained pending_;
  bool wake_posted_ = false;
};

}  // namespace sluice::gui
