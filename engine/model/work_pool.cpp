// SPDX-License-Identifier: GPL-3.0-or-later
#include "model/work_pool.h"

#include <algorithm>
#include <utility>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

// Sections of a step follow each other within microseconds: a helper looks for the next one this long before it sleeps.
constexpr int kSpins = 4000;
// A helper that was stopped in the middle of a piece needs a core to finish: after so many looks the caller gives way.
constexpr int kSpinsBeforeYield = 2000;

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

template <class Condition>
void spin_while(const Condition& waiting) {
  for (int spins = 0; waiting(); ++spins) {
    if (spins < kSpinsBeforeYield) {
      pause();
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace

void WorkPool::wait_for_zero(const std::atomic<std::int64_t>& left) {
  spin_while([&left] { return left.load(std::memory_order_acquire) != 0; });
}

WorkPool::WorkPool(int threads) {
  for (int worker = 1; worker < threads; ++worker) helpers_.emplace_back([this, worker] { help(worker); });
  limit(threads);
}

WorkPool::~WorkPool() {
  stop_.store(true);
  limit(threads());
  job_.fetch_add(1);
  job_.notify_all();
  for (std::thread& t : helpers_) t.join();
}

void WorkPool::limit(int threads) {
  const int wanted = std::clamp(threads, 1, this->threads());
  if (limit_.exchange(wanted) != wanted) limit_.notify_all();
}

void WorkPool::share(std::int64_t n, std::int64_t piece, Call call, const void* fn) {
  call_ = call;
  fn_ = fn;
  n_ = n;
  piece_ = piece;
  next_.store(0, std::memory_order_relaxed);
  state_.store(kOpen, std::memory_order_release);
  job_.fetch_add(1);
  job_.notify_all();
  take_pieces(0);
  state_.fetch_and(~kOpen, std::memory_order_acq_rel);
  spin_while([this] { return state_.load(std::memory_order_acquire) != 0; });
  if (failed_.exchange(false)) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void WorkPool::take_pieces(int worker) {
  for (;;) {
    const std::int64_t begin = next_.fetch_add(piece_, std::memory_order_relaxed);
    if (begin >= n_) return;
    try {
      call_(fn_, begin, std::min(begin + piece_, n_), worker);
    } catch (...) {
      // The caller reads failure_ after it saw everybody leave.
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }
}

void WorkPool::help(int worker) {
  std::uint32_t seen = 0;
  for (;;) {
    std::uint32_t job = job_.load();
    for (int spins = 0; job == seen && spins < kSpins; ++spins) {
      pause();
      job = job_.load(std::memory_order_relaxed);
    }
    if (job == seen) {
      job_.wait(seen);
      continue;
    }
    seen = job;
    if (stop_.load()) return;
    if (const int limit = limit_.load(); worker >= limit) {
      limit_.wait(limit);
      continue;
    }
    std::uint32_t state = state_.load(std::memory_order_acquire);
    while ((state & kOpen) != 0) {
      if (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel)) continue;
      take_pieces(worker);
      state_.fetch_sub(1, std::memory_order_release);
      break;
    }
  }
}

}  // namespace sluice
