// SPDX-License-Identifier: GPL-3.0-or-later
// The line between a caller and the engine for one request. The engine pushes and never waits (there is room for every
// event the request can make); the caller pops. Dropping the caller's side cancels. Thread-safe.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/guarded.h"
#include "serve/request.h"

namespace sluice {

class ResponseStream {
 public:
  explicit ResponseStream(std::shared_ptr<Wakeup> wakeup = nullptr) : wakeup_(std::move(wakeup)) {}

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
  // The first end counts; false (and nothing happens) after it.
  bool end(FinishReason reason, Status error, const Timings& timings);

 private:
  std::optional<TokenEvent> take() SLUICE_REQUIRES(mu_);
  void announce();

  const std::shared_ptr<Wakeup> wakeup_;
  mutable Mutex mu_;
  CondVar changed_;
  std::optional<StartInfo> start_ SLUICE_GUARDED_BY(mu_);
  std::deque<TokenEvent> events_ SLUICE_GUARDED_BY(mu_);
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
