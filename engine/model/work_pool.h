// SPDX-License-Identifier: GPL-3.0-or-later
// Splits one step's work over a few cores. A decode step has some two hundred short parallel sections; with OpenMP each
// ends in a barrier, and on a machine with other work every barrier waits for a thread that is not running (measured:
// generation fell to a tenth). Here pieces are claimed one by one, and the caller works too: a helper that does not run
// takes nothing, so nobody waits for it.
//
// run() is called by one thread at a time; results must not depend on which thread takes which piece. limit(): any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace sluice {

class WorkPool {
 public:
  explicit WorkPool(int threads);  // the caller's included; at least 1
  ~WorkPool();
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;

  int threads() const { return static_cast<int>(helpers_.size()) + 1; }
  // From the next run on, so many of threads() may work, the caller first; others leave their cores to whoever needs them.
  void limit(int threads);

  // Calls fn(begin, end, worker) for pieces that cover [0, n), of at least `grain` items (but for the last), each once;
  // returns when all are done. worker: 0 .. threads() - 1, never in two calls at a time. An exception of fn is thrown
  // on to the caller once nobody works any more.
  template <class Fn>
  void run(std::int64_t n, std::int64_t grain, const Fn& fn) {
    run_pieces(n, piece_of(n, grain), fn);
  }
  // Items that run() gives to a piece.
  std::int64_t piece_of(std::int64_t n, std::int64_t grain) const {
    return std::max(grain, (n + threads() * kPiecesPerThread - 1) / (threads() * kPiecesPerThread));
  }
  // The same for few and long items: in pieces of one.
  template <class Fn>
  void run_finely(std::int64_t n, const Fn& fn) {
    run_pieces(n, 1, fn);
  }

  // For a piece that needs what pieces with lower numbers of the same run compute: they count `left` down. They were
  // taken before and wait for nobody, so that this ends.
  static void wait_for_zero(const std::atomic<std::int64_t>& left);

 private:
  // Pieces a thread: enough that one slow thread does not hold up the others.
  static constexpr std::int64_t kPiecesPerThread = 3;

  template <class Fn>
  void run_pieces(std::int64_t n, std::int64_t piece, const Fn& fn) {
    if (n <= 0) return;
    if (limit_.load(std::memory_order_relaxed) == 1 || n <= piece) {
      fn(std::int64_t{0}, n, 0);
      return;
    }
    share(n, piece, [](const void* f, std::int64_t begin, std::int64_t end, int worker) {
      (*static_cast<const Fn*>(f))(begin, end, worker);
    }, &fn);
  }

  using Call = void (*)(const void* fn, std::int64_t begin, std::int64_t end, int worker);
  static constexpr std::uint32_t kOpen = 1u << 31;

  void share(std::int64_t n, std::int64_t piece, Call call, const void* fn);
  void take_pieces(int worker);
  void help(int worker);

  // The job: written by run() while state_ is 0, read by those who entered.
  Call call_ = nullptr;
  const void* fn_ = nullptr;
  std::int64_t n_ = 0;
  std::int64_t piece_ = 1;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::uint32_t> state_{0};  // kOpen while helpers may enter, plus how many are inside
  std::atomic<std::uint32_t> job_{0};    // counts jobs; idle helpers sleep on it
  std::atomic<bool> stop_{false};
  std::atomic<int> limit_{1};  // helpers beyond it sleep on it
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;  // written by whoever set failed_

  std::vector<std::thread> helpers_;
};

}  // namespace sluice
