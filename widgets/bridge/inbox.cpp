// SPDX-License-Identifier: GPL-3.0-or-later
#include "bridge/inbox.h"

#include <utility>

namespace sluice::gui {

Inbox::Inbox(std::function<void()> wake, std::size_t capacity) : wake_(std::move(wake)), capacity_(capacity) {}

void Inbox::push(const StoreEvent& event) {
  bool wake = false;
  {
    const std::lock_guard lock(mutex_);
    pending_.touched[static_cast<std::size_t>(event.kind)] = true;
    if (pending_.events.size() < capacity_) {
      pending_.events.push_back(event);
    } else {
      pending_.overflowed = true;
    }
    wake = !std::exchange(wake_posted_, true);
  }
  if (wake) wake_();
}

Inbox::Drained Inbox::drain() {
  const std::lock_guard lock(mutex_);
  wake_posted_ = false;
  return std::exchange(pending_, Drained{});
}

}  // namespace sluice::gui
