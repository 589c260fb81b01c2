// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/scheduler.h"

#include <algorithm>

namespace sluice {
namespace {

std::int64_t micros(SteadyTime from, SteadyTime to) {
  return std::chrono::duration_cast<std::chrono::microseconds>(to - from).count();
}

}  // namespace

Sequence::~Sequence() {
  if (stream) stream->end(FinishReason::kError, internal_error("the request was dropped by an error of the engine"), {});
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

Scheduler::Scheduler(int max_running, int reserved_for_live, int prefill_chunk)
    : max_running_(std::max(1, max_running)),
      max_other_(std::max(1, max_running_ - std::max(0, reserved_for_live))),
      prefill_chunk_(std::max(1, prefill_chunk)) {}

void Scheduler::enqueue(std::unique_ptr<Sequence> sequence) {
  waiting_[static_cast<std::size_t>(sequence->request.priority)].push_back(std::move(sequence));
}

Sequence* Scheduler::next_to_admit() const {
  if (static_cast<int>(running_.size()) >= max_running_) return nullptr;
  for (const auto& queue : waiting_) {
    if (queue.empty()) continue;
    Sequence* next = queue.front().get();
    if (next->request.priority == Priority::kLive) return next;
    const auto other = std::count_if(running_.begin(), running_.end(),
                                     [](const auto& s) { return s->request.priority != Priority::kLive; });
    return other < max_other_ ? next : nullptr;
  }
  return nullptr;
}

std::unique_ptr<Sequence> Scheduler::take_next() {
  for (auto& queue : waiting_) {
    if (queue.empty()) continue;
    std::unique_ptr<Sequence> next = std::move(queue.front());
    queue.pop_front();
    return next;
  }
  return nullptr;
}

void Scheduler::admit_next() { running_.push_back(take_next()); }

std::vector<std::unique_ptr<Sequence>> Scheduler::take_if(const std::function<bool(const Sequence&)>& gone) {
  std::vector<std::unique_ptr<Sequence>> out;
  const auto sweep = [&](auto& list) {
    for (auto& sequence : list) {
      if (gone(*sequence)) out.push_back(std::move(sequence));
    }
    std::erase_if(list, [](const auto& sequence) { return sequence == nullptr; });
  };
  for (auto& queue : waiting_) sweep(queue);
  sweep(running_);
  return out;
}

std::size_t Scheduler::waiting() const {
  std::size_t n = 0;
  for (const auto& queue : waiting_) n += queue.size();
  return n;
}

const StepPlan& Scheduler::plan() {
  plan_.input.items.clear();
  plan_.sequences.clear();
  for (const auto& sequence : running_) {
    if (!sequence->prefilled()) continue;
    StepItem item;
    item.sequence = sequence->handle;
    item.tokens = &sequence->generated.back();
    item.count = 1;
    item.sample = true;
    item.sampling = &sequence->request.sampling;
    item.generated = &sequence->generated;
    item.prompt = &sequence->request.prompt;
    plan_.input.items.push_back(item);
    plan_.sequences.push_back(sequence.get());
  }
  int budget = prefill_chunk_;
  for (const Priority priority : {Priority::kLive, Priority::kGate, Priority::kBackground}) {
    for (const auto& sequence : running_) {
      if (budget > 0 && sequence->request.priority == priority && !sequence->prefilled()) add_prefill(*sequence, budget);
    }
  }
  return plan_;
}

void Scheduler::add_prefill(Sequence& sequence, int& budget) {
  const Request& request = sequence.request;
  const int left = static_cast<int>(request.prompt.size()) - sequence.fed;
  StepItem item;
  item.sequence = sequence.handle;
  item.tokens = request.prompt.data() + sequence.fed;
  item.count = std::min(left, budget);
  budget -= item.count;
  if (item.count == left && request.max_tokens > 0) {
    item.sample = true;
    item.sampling = &request.sampling;
    item.generated = &sequence.generated;
    item.prompt = &request.prompt;
  }
  if (request.score_prompt) {
    item.score = true;
    item.score_targets = sequence.score_targets.data() + sequence.fed;
    item.score_temperature = request.score_temperature;
    item.score_top = request.score_top;
  }
  plan_.input.items.push_back(item);
  plan_.sequences.push_back(&sequence);
}

}  // namespace sluice
