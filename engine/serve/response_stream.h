// SPDX-License-Identifier: GPL-3.0-or-later
// The line between a caller and the engine for one request. The engine pushes and never waits; the caller pops. The engine
// draws no more tokens for a response that has kBufferBytes unread, and cancels one that nobody reads for long. Dropping
// the caller's side cancels. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "serve/request.h"

namespace sluice {

class ResponseStream {
 public:
  static constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

  explicit ResponseStream(std::shared_ptr<Wakeup> wakeup = nullptr, const Clock& clock = Clock::system())
      : wakeup_(std::move(wakeup)), clock_(clock) {}

  // ---- caller's side ----
  // Waits until the sequence was admitted (its version is fixed) or failed before that. kDeadline when time ran out first.
  Result<StartInfo> wait_started(SteadyTime deadline);
  // The next event; empty when the deadline passed first. After kEnd nothing follows.
  std::optional<TokenEvent> next(SteadyTime deadline);
  std::optional<TokenEvent> try_next();  // the next event if it is there already
  // Asks for the adapter this sequence runs on, whatever serves meanwhile. Only after wait_started() succeeded.
  AdapterChoice same_version() const;
  // The engine drops the sequence within one step; an end event with kCancelled follows.
  void cancel() { cancelled_.store(true, std::memory_order_release); }
  Timings timings() const;  // so far; final once kEnd was seen

  // ---- engine's side ----
  bool cancelled() const { return cancelled_.load(std::memory_order_acquire); }
  void start(StartInfo info, const Timings& timings);
  void push(SampledToken token, const Timings& timings);
  bool full() const;  // as much as may be is unread
  // Events wait, and none was read since `moment`.
  bool unread_since(SteadyTime moment) const;
  // The first end counts; false (and nothing happens) after it.
  bool end(FinishReason reason, Status error, const Timings& timings);

 private:
  std::optional<TokenEvent> take() SLUICE_REQUIRES(mu_);
  void add(TokenEvent event) SLUICE_REQUIRES(mu_);
  bool none_left() const SLUICE_REQUIRES(mu_) { return read_ == events_.size(); }
  void announce();

  const std::shared_ptr<Wakeup> wakeup_;
  const Clock& clock_;
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<StartInfo> start_ SLUICE_GUARDED_BY(mu_);
  // Those before read_ were taken. Emptied when all were, so that a reader who keeps up costs no memory.
  std::vector<TokenEvent> events_ SLUICE_GUARDED_BY(mu_);
  std::size_t read_ SLUICE_GUARDED_BY(mu_) = 0;
  std::size_t bytes_ SLUICE_GUARDED_BY(mu_) = 0;          // unread
  SteadyTime last_read_ SLUICE_GUARDED_BY(mu_);           // or when the oldest unread event came, if that was later
  bool ended_ SLUICE_GUARDED_BY(mu_) = false;
  Status end_error_ SLUICE_GUARDED_BY(mu_);
  Timings timings_ SLUICE_GUARDED_BY(mu_);
  std::atomic<bool> cancelled_{false};
};

// The caller's handle: its destructor cancels.
class ResponseHandle {
 public:
  ResponseHandle() = default;
  explicit ResponseHandle(std::shared_ptr<ResponseStream> stream) : stream_(std::move(stream)) {}
  ResponseHandle(ResponseHandle&&) noexcept = default;
  ResponseHandle& operator=(ResponseHandle&& other) noexcept {
    if (this != &other) {
      if (stream_) stream_->cancel();
      stream_ = std::move(other.stream_);
    }
    return *this;
  }
  ~ResponseHandle() {
    if (stream_) stream_->cancel();
  }
  ResponseStream* operator->() const { return stream_.get(); }
  explicit operator bool() const { return stream_ != nullptr; }

 private:
  std::shared_ptr<ResponseStream> stream_;
};

}  // namespace sluice
