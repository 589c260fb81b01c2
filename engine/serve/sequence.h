// SPDX-License-Identifier: GPL-3.0-or-later
// One request inside the engine, from submit() to its end. Owned by the scheduler, used by the engine's thread alone.
#pragma once

#include <cstdint>
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

// Whatever way it dies, its caller hears of an end.
struct Sequence {
  Sequence() = default;
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence();

  Request request;
  std::shared_ptr<ResponseStream> stream;
  PinnedVersion pin;          // until admission; from then on `start.adapter` keeps the version
  std::uint64_t ticket = 0;   // order of submission
  bool exact = false;         // its answer must be bit-equal to that of a cold run
  SteadyTime submitted, admitted, first_token;

  // From the first admission on.
  bool started = false;                 // the version is fixed
  StartInfo start;
  std::vector<TokenId> generated;
  std::vector<TokenId> score_targets;   // when score_prompt: the token after each prompt token; the last entry counts nothing
  bool scored = false;                  // when score_prompt: the scores were told

  // While it runs.
  SequenceHandle handle;
  std::vector<TokenId> replay;  // after a preemption that had drawn tokens: the prompt and those
  int fed = 0;                  // of known(), in the cache
  int held = 0;                 // positions in the cache
  int reserved = 0;             // positions promised by the cache
  bool follows = false;         // waits this round for a running sequence that will have its prefix in the cache
  bool followed = false;        // did so before
  bool ends = false;            // its last event is made and not yet told
  bool spoilt = false;          // what it computed is no number: nobody may share it

  const std::vector<TokenId>& known() const { return replay.empty() ? request.prompt : replay; }
  bool prefilled() const { return fed == static_cast<int>(known().size()); }
  bool scores() const { return request.score_prompt && !scored; }
  int most_positions() const { return static_cast<int>(request.prompt.size()) + request.max_tokens; }
  // Back to before its admission, with the tokens drawn so far kept: what it had in the cache is gone.
  void rewind();
  Timings timings(SteadyTime now) const;
};

}  // namespace sluice
