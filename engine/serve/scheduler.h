// SPDX-License-Identifier: GPL-3.0-or-later
// Which sequences run and which wait. Waiting ones are taken by priority, first come first served within one; a place is
// taken from work of lower priority where none is free. A sequence that gave up its place waits where its ticket puts it.
// Used by the engine's thread alone.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <vector>

#include "serve/sequence.h"

namespace sluice {

class Scheduler {
 public:
  Scheduler(int max_running, int reserved_for_live);

  void enqueue(std::unique_ptr<Sequence> sequence);
  // Begins a round of admissions: those that followed another may be looked at again.
  void begin_round();
  // The waiting sequence whose turn it is, those that follow another aside; null when none waits or no place is free for
  // it and none can be made.
  Sequence* next_to_admit() const;
  bool has_place(Priority priority) const;
  void admit(const Sequence& sequence);                         // from waiting to running
  std::unique_ptr<Sequence> take_waiting(const Sequence& sequence);
  void preempt(const Sequence& sequence);                       // from running to waiting

  // Is there a running sequence of the same version whose prefill will soon leave at least kWorthFollowing more tokens of
  // this one's prompt in the cache than it has by now (any, for one that has waited for such a prefill already: then the rest
  // is near)? Not one of lower priority.
  static constexpr int kWorthFollowing = 32;
  bool has_leader(const Sequence& sequence, VersionId version) const;

  // The running sequence to give up its place first: lowest priority, then youngest. `below`: only lower priorities count.
  Sequence* victim() const;
  Sequence* victim_below(Priority priority) const;

  // Takes out, from waiting and running, those for which the predicate holds.
  template <class Predicate>
  std::vector<std::unique_ptr<Sequence>> take_if(const Predicate& gone) {
    std::vector<std::unique_ptr<Sequence>> out;
    for (auto& queue : waiting_) sweep(queue, gone, out);
    sweep(running_, gone, out);
    return out;
  }

  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }  // in order of admission
  std::size_t waiting() const;
  bool idle() const { return running_.empty() && waiting() == 0; }

 private:
  template <class List, class Predicate>
  static void sweep(List& list, const Predicate& gone, std::vector<std::unique_ptr<Sequence>>& out) {
    bool any = false;
    for (auto& sequence : list) {
      if (!gone(*sequence)) continue;
      out.push_back(std::move(sequence));
      any = true;
    }
    if (any) std::erase_if(list, [](const auto& sequence) { return sequence == nullptr; });
  }

  const int max_running_;
  const int max_other_;  // places for what is not live
  std::array<std::deque<std::unique_ptr<Sequence>>, 3> waiting_;  // by Priority, each by ticket
  std::vector<std::unique_ptr<Sequence>> running_;
};

}  // namespace sluice
