// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/response_stream.h"

#include <cassert>

namespace sluice {
namespace {

std::size_t size_of(const TokenEvent& event) { return sizeof event + event.token.top.size() * sizeof(TopLogprob); }

}  // namespace

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
  while (none_left() && !ended_) {
    if (!changed_.wait_until(mu_, deadline) && none_left()) return std::nullopt;
  }
  return take();
}

std::optional<TokenEvent> ResponseStream::try_next() {
  MutexLock lock(mu_);
  return take();
}

std::optional<TokenEvent> ResponseStream::take() {
  if (none_left()) return std::nullopt;
  std::optional<TokenEvent> event(std::move(events_[read_]));
  bytes_ -= size_of(*event);
  if (++read_ == events_.size()) {
    events_.clear();
    read_ = 0;
  }
  last_read_ = clock_.steady();
  return event;
}

void ResponseStream::add(TokenEvent event) {
  if (none_left()) last_read_ = clock_.steady();
  bytes_ += size_of(event);
  events_.push_back(std::move(event));
  changed_.notify_all();
}

bool ResponseStream::full() const {
  MutexLock lock(mu_);
  return bytes_ >= kBufferBytes;
}

bool ResponseStream::unread_since(SteadyTime moment) const {
  MutexLock lock(mu_);
  return !none_left() && last_read_ <= moment;
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
    timings_ = timings;
    add({TokenEvent::Kind::kToken, std::move(token), FinishReason::kStop, {}});
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
    add({TokenEvent::Kind::kEnd, {}, reason, std::move(error)});
  }
  announce();
  return true;
}

void ResponseStream::announce() {
  if (wakeup_) wakeup_->signal();
}

}  // namespace sluice
