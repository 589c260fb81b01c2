// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace sluice {
namespace {

// Takes `sequence` out of `list`; null when it is not there.
template <class List>
std::unique_ptr<Sequence> take_from(List& list, const Sequence& sequence) {
  const auto it = std::find_if(list.begin(), list.end(), [&](const auto& s) { return s.get() == &sequence; });
  if (it == list.end()) return nullptr;
  std::unique_ptr<Sequence> taken = std::move(*it);
  list.erase(it);
  return taken;
}

}  // namespace

Scheduler::Scheduler(int max_running, int reserved_for_live)
    : max_running_(std::max(1, max_running)), max_other_(std::max(1, max_running_ - std::max(0, reserved_for_live))) {
  running_.reserve(static_cast<std::size_t>(max_running_));
}

void Scheduler::enqueue(std::unique_ptr<Sequence> sequence) {
  auto& queue = waiting_[static_cast<std::size_t>(sequence->request.priority)];
  const auto after = std::upper_bound(queue.begin(), queue.end(), sequence->ticket,
                                      [](std::uint64_t ticket, const auto& s) { return ticket < s->ticket; });
  queue.insert(after, std::move(sequence));
}

void Scheduler::begin_round() {
  for (auto& queue : waiting_) {
    for (auto& sequence : queue) sequence->follows = false;
  }
}

Sequence* Scheduler::next_to_admit() const {
  for (const auto& queue : waiting_) {
    for (const auto& sequence : queue) {
      if (sequence->follows) continue;
      const Priority priority = sequence->request.priority;
      return has_place(priority) || victim_below(priority) != nullptr ? sequence.get() : nullptr;
    }
  }
  return nullptr;
}

bool Scheduler::has_place(Priority priority) const {
  if (static_cast<int>(running_.size()) >= max_running_) return false;
  if (priority == Priority::kLive) return true;
  return std::count_if(running_.begin(), running_.end(),
                       [](const auto& s) { return s->request.priority != Priority::kLive; }) < max_other_;
}

std::unique_ptr<Sequence> Scheduler::take_waiting(const Sequence& sequence) {
  return take_from(waiting_[static_cast<std::size_t>(sequence.request.priority)], sequence);
}

void Scheduler::admit(const Sequence& sequence) {
  running_.push_back(take_waiting(sequence));
  assert(running_.back());
}

void Scheduler::preempt(const Sequence& sequence) {
  std::unique_ptr<Sequence> taken = take_from(running_, sequence);
  assert(taken);
  enqueue(std::move(taken));
}

bool Scheduler::has_leader(const Sequence& sequence, VersionId version) const {
  const std::vector<TokenId>& mine = sequence.known();
  for (const auto& other : running_) {
    if (other->prefilled() || other->start.version != version || other->exact != sequence.exact) continue;
    if (other->request.priority > sequence.request.priority) continue;
    const std::vector<TokenId>& theirs = other->known();
    const auto agree = std::mismatch(mine.begin(), mine.end() - 1, theirs.begin(), theirs.end()).first - mine.begin();
    if (agree - other->fed >= (sequence.followed ? 1 : kWorthFollowing)) return true;
  }
  return false;
}

Sequence* Scheduler::victim() const {
  Sequence* worst = nullptr;
  for (const auto& s : running_) {
    if (!worst || std::pair(s->request.priority, s->ticket) > std::pair(worst->request.priority, worst->ticket)) worst = s.get();
  }
  return worst;
}

Sequence* Scheduler::victim_below(Priority priority) const {
  Sequence* worst = victim();
  return worst && worst->request.priority > priority ? worst : nullptr;
}

std::size_t Scheduler::waiting() const {
  std::size_t n = 0;
  for (const auto& queue : waiting_) n += queue.size();
  return n;
}

}  // namespace sluice
