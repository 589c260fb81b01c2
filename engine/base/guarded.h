// SPDX-License-Identifier: GPL-3.0-or-later
// Mutex, lock and condition variable with clang's thread-safety annotations (empty on GCC). libstdc++'s own types carry
// none, and `clang -Wthread-safety -Werror` over engine/ is a check of this project.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SLUICE_TSA(x) __attribute__((x))
#else
#define SLUICE_TSA(x)
#endif

#define SLUICE_CAPABILITY(x) SLUICE_TSA(capability(x))
#define SLUICE_SCOPED_CAPABILITY SLUICE_TSA(scoped_lockable)
#define SLUICE_GUARDED_BY(x) SLUICE_TSA(guarded_by(x))
#define SLUICE_REQUIRES(...) SLUICE_TSA(requires_capability(__VA_ARGS__))
#define SLUICE_EXCLUDES(...) SLUICE_TSA(locks_excluded(__VA_ARGS__))
#define SLUICE_ACQUIRE(...) SLUICE_TSA(acquire_capability(__VA_ARGS__))
#define SLUICE_RELEASE(...) SLUICE_TSA(release_capability(__VA_ARGS__))
#define SLUICE_NO_TSA SLUICE_TSA(no_thread_safety_analysis)

namespace sluice {

class SLUICE_CAPABILITY("mutex") Mutex {
 public:
  void lock() SLUICE_ACQUIRE() { mu_.lock(); }
  void unlock() SLUICE_RELEASE() { mu_.unlock(); }

 private:
  friend class CondVar;
  std::mutex mu_;
};

class SLUICE_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mu) SLUICE_ACQUIRE(mu) : mu_(mu) { mu_.lock(); }
  ~MutexLock() SLUICE_RELEASE() { mu_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mu_;
};

class CondVar {
 public:
  void notify_one() { cv_.notify_one(); }
  void notify_all() { cv_.notify_all(); }

  // The caller holds mu. Spurious wake-ups happen: wait in a loop on the condition.
  void wait(Mutex& mu) SLUICE_REQUIRES(mu) SLUICE_NO_TSA {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    cv_.wait(lock);
    lock.release();
  }
  // False when the deadline passed.
  bool wait_until(Mutex& mu, std::chrono::steady_clock::time_point deadline) SLUICE_REQUIRES(mu) SLUICE_NO_TSA {
    std::unique_lock<std::mutex> lock(mu.mu_, std::adopt_lock);
    const bool in_time = cv_.wait_until(lock, deadline) == std::cv_status::no_timeout;
    lock.release();
    return in_time;
  }

 private:
  std::condition_variable cv_;
};

}  // namespace sluice
