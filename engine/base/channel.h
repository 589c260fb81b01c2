// SPDX-License-Identifier: GPL-3.0-or-later
// Bounded queue between threads; values move through it. Any number of producers and consumers.
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "base/guarded.h"

namespace sluice {

template <class T>
class Channel {
 public:
  explicit Channel(std::size_t capacity) : capacity_(capacity) {}

  // Waits for room. False (value dropped) once the channel is closed.
  bool push(T value) SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    while (queue_.size() >= capacity_ && !closed_) room_.wait(mu_);
    if (closed_) return false;
    queue_.push_back(std::move(value));
    items_.notify_one();
    return true;
  }

  // False, with `value` untouched, when full or closed.
  bool try_push(T& value) SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    if (closed_ || queue_.size() >= capacity_) return false;
    queue_.push_back(std::move(value));
    items_.notify_one();
    return true;
  }

  // Waits until the deadline. Empty on time-out, or when closed and drained.
  std::optional<T> pop(std::chrono::steady_clock::time_point deadline) SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    while (queue_.empty() && !closed_) {
      if (!items_.wait_until(mu_, deadline) && queue_.empty()) return std::nullopt;
    }
    return take();
  }

  // Waits without a limit. Empty only when closed and drained.
  std::optional<T> pop() SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    while (queue_.empty() && !closed_) items_.wait(mu_);
    return take();
  }

  std::optional<T> try_pop() SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return take();
  }

  // Wakes everyone; what is queued can still be popped.
  void close() SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    closed_ = true;
    items_.notify_all();
    room_.notify_all();
  }

  bool closed() const SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return closed_;
  }
  std::size_t size() const SLUICE_EXCLUDES(mu_) {
    MutexLock lock(mu_);
    return queue_.size();
  }

 private:
  std::optional<T> take() SLUICE_REQUIRES(mu_) {
    if (queue_.empty()) return std::nullopt;
    std::optional<T> out(std::move(queue_.front()));
    queue_.pop_front();
    room_.notify_one();
    return out;
  }

  const std::size_t capacity_;
  mutable Mutex mu_;
  CondVar items_;
  CondVar room_;
  std::deque<T> queue_ SLUICE_GUARDED_BY(mu_);
  bool closed_ SLUICE_GUARDED_BY(mu_) = false;
};

}  // namespace sluice
