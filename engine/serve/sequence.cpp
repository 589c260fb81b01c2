// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/sequence.h"

#include <chrono>

namespace sluice {
namespace {

std::int64_t micros(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

}  // namespace

Sequence::~Sequence() {
  if (stream) stream->end(FinishReason::kError, internal_error("the request was dropped by an error of the engine"), {});
}

void Sequence::rewind() {
  handle = SequenceHandle();
  fed = held = reserved = 0;
  if (scores()) {  // its scores are not told before all are there: it scores from the start again
    start.prompt_scores.clear();
    start.prompt_tops.clear();
  }
  if (generated.empty()) return;
  replay = request.prompt;
  replay.insert(replay.end(), generated.begin(), generated.end());
}

Timings Sequence::timings(SteadyTime now) const {
  Timings t;
  if (admitted == SteadyTime()) {
    t.queue_us = micros(submitted, now);
    return t;
  }
  t.queue_us = micros(submitted, admitted);
  t.prefill_us = micros(admitted, first_token == SteadyTime() ? now : first_token);
  if (first_token != SteadyTime()) t.decode_us = micros(first_token, now);
  return t;
}

}  // namespace sluice
