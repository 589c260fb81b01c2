// SPDX-License-Identifier: GPL-3.0-or-later
// Which sequences run and what each does in the next step. Waiting requests are taken by priority, first come first served
// within one; a step is one token for every sequence that generates plus a bounded chunk of prompt tokens, so that a long
// prompt delays no answer by more than that chunk. Used by the engine's thread alone.
//
// There is no preemption: a sequence is admitted only when the KV cache has room for its prompt and all tokens it may
// generate, and waits otherwise.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "serve/adapter_slots.h"
#include "serve/request.h"
#include "serve/response_stream.h"

namespace sluice {

// Keeps a version in memory that a waiting request asked for by number or by pass.
class PinnedVersion {
 public:
  PinnedVersion() = default;
  PinnedVersion(AdapterSlots& slots, VersionId version) : slots_(&slots), version_(version) {}
  PinnedVersion(PinnedVersion&& other) noexcept : slots_(std::exchange(other.slots_, nullptr)), version_(other.version_) {}
  PinnedVersion& operator=(PinnedVersion&& other) noexcept {
    std::swap(slots_, other.slots_);
    std::swap(version_, other.version_);
    return *this;
  }
  ~PinnedVersion() {
    if (slots_) slots_->release(version_);
  }

 private:
  AdapterSlots* slots_ = nullptr;
  VersionId version_;
};

// One request from submit() to its end. Whatever way it dies, its caller hears of an end.
struct Sequence {
  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence();

  Request request;
  std::shared_ptr<ResponseStream> stream;
  PinnedVersion pin;          // until admission; from then on `start.adapter` keeps the version
  std::uint64_t ticket = 0;   // order of submission
  SteadyTime submitted, admitted, first_token;

  // From admission on.
  StartInfo start;
  SequenceHandle handle;
  int fed = 0;                          // prompt tokens in the cache
  std::vector<TokenId> score_targets;   // when score_prompt: the token after each prompt token; the last entry counts nothing
  std::vector<TokenId> generated;

  bool prefilled() const { return fed == static_cast<int>(request.prompt.size()); }
  Timings timings(SteadyTime now) const;
};

struct StepPlan {
  StepInput input;
  std::vector<Sequence*> sequences;  // one per item, same order
};

class Scheduler {
 public:
  Scheduler(int max_running, int reserved_for_live, int prefill_chunk);

  void enqueue(std::unique_ptr<Sequence> sequence);
  // The waiting sequence whose turn it is; null when none waits or no place is free for it.
  Sequence* next_to_admit() const;
  void admit_next();                                // the one next_to_admit() names now runs
  std::unique_ptr<Sequence> take_next();            // or leaves

  // Takes out, from waiting and running, those for which the predicate holds.
  std::vector<std::unique_ptr<Sequence>> take_if(const std::function<bool(const Sequence&)>& gone);

  // The next step over the running sequences. Valid until the next call of anything that changes them.
  const StepPlan& plan();

  const std::vector<std::unique_ptr<Sequence>>& running() const { return running_; }  // in order of admission
  std::size_t waiting() const;
  bool idle() const { return running_.empty() && waiting() == 0; }

 private:
  void add_prefill(Sequence& sequence, int& budget);

  const int max_running_;
  const int max_other_;  // places for what is not live
  const int prefill_chunk_;
  std::array<std::deque<std::unique_ptr<Sequence>>, 3> waiting_;  // by Priority
  std::vector<std::unique_ptr<Sequence>> running_;
  StepPlan plan_;
};

}  // namespace sluice
