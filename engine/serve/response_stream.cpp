// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/response_stream.h"

#include <cassert>

namespace sluice {

Result<StartInfo> ResponseStream::wait_started(SteadyTime deadline) {
  MutexLock lock(mu_);
  while (!start_ && !ended_) {
    if (!changed_.wait_until(mu_, deadline) && !start_ && !ended_) {
      return deadline_exceeded("the request still waits for its turn");
    }
  }
  if (start_) return *start_;
  if (!end_error_.ok()) return end_error_;
  return sluice::cancelled("the request was cancelled before it began");
}

std::optional<TokenEvent> ResponseStream::next(SteadyTime deadline) {
  MutexLock lock(mu_);
  while (events_.empty() && !ended_) {
    if (!changed_.wait_until(mu_, deadline) && events_.empty()) return std::nullopt;
  }
  return take();
}

std::optional<TokenEvent> ResponseStream::try_next() {
  MutexLock lock(mu_);
  return take();
}

std::optional<TokenEvent> ResponseStream::take() {
  if (events_.empty()) return std::nullopt;
  std::optional<TokenEvent> event(std::move(events_.front()));
  events_.pop_front();
  return event;
}

AdapterChoice ResponseStream::same_version() const {
  MutexLock lock(mu_);
  assert(start_);
  return {AdapterChoice::Kind::kHeld, start_->version, start_->adapter};
}

Timings ResponseStream::timings() const {
  MutexLock lock(mu_);
  return timings_;
}

void ResponseStream::start(StartInfo info, const Timings& timings) {
  {
    MutexLock lock(mu_);
    start_ = std::move(info);
    timings_ = timings;
    changed_.notify_all();
  }
  announce();
}

void ResponseStream::push(SampledToken token, const Timings& timings) {
  {
    MutexLock lock(mu_);
    assert(start_ && !ended_);
    events_.push_back({TokenEvent::Kind::kToken, std::move(token), FinishReason::kStop, {}});
    timings_ = timings;
    changed_.notify_all();
  }
  announce();
}

bool ResponseStream::end(FinishReason reason, Status error, const Timings& timings) {
  {
    MutexLock lock(mu_);
    if (ended_) return false;
    ended_ = true;
    end_error_ = error;
    timings_ = timings;
    events_.push_back({TokenEvent::Kind::kEnd, {}, reason, std::move(error)});
    changed_.notify_all();
  }
  announce();
  return true;
}

void ResponseStream::announce() {
  if (wakeup_) wakeup_->signal();
}

}  // namespace sluice
