// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's thread: one step of the model, and what came of it.
#include <algorithm>
#include <iterator>

#include "serve/engine_impl.h"

namespace sluice {

bool Engine::Impl::step() {
  if (scheduler_.running().empty()) return false;
  const StepPlan& plan = planner_.plan(scheduler_.running(), budget_, context_->exact_rows());
  if (plan.sequences.empty()) return false;
  context_->limit_threads(thread_limit_.load(std::memory_order_relaxed));
  const SteadyTime begun = std::chrono::steady_clock::now();  // real time: how long the model takes
  const Status done = guarded("A step of the model", [&]() -> Status {
    SLUICE_RETURN_IF_ERROR(context_->step(plan.input, output_));
    if (output_.results.size() != plan.sequences.size()) return internal_error("the model answered another number of rows");
    return {};
  });
  if (!done.ok()) {
    fail_step(plan, done);
    return true;
  }
  budget_.took(plan.prefill_tokens, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
  const SteadyTime at = now();
  std::int64_t fed = 0;
  outcomes_.resize(plan.sequences.size());
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    fed += plan.input.items[i].count;
    apply(*plan.sequences[i], plan.input.items[i], output_.results[i], at, outcomes_[i]);
  }
  counted_.batch_tokens.add(fed);
  const auto ended = scheduler_.take_if([](const Sequence& s) { return s.ends; });
  for (const auto& sequence : ended) close(*sequence);
  step_ends_ += static_cast<std::int64_t>(ended.size());
  update_stats();  // before the ends are told: who was told finds the room free and the counts right
  for (Outcome& o : outcomes_) {
    if (o.starts) o.stream->start(std::move(o.start), o.timings);
    if (o.has_token) o.stream->push(std::move(o.token), o.timings);
    if (o.ends) o.stream->end(o.reason, std::move(o.error), o.timings);
    o.stream.reset();
  }
  return true;
}

void Engine::Impl::fail_step(const StepPlan& plan, const Status& error) {
  log_.error("serve", error.message());
  for (Sequence* s : plan.sequences) s->ends = s->spoilt = true;  // nothing of a failed pass may be found again
  end_now(scheduler_.take_if([](const Sequence& s) { return s.ends; }), FinishReason::kError, error);
}

void Engine::Impl::apply(Sequence& s, const StepItem& item, StepResult& result, SteadyTime at, Outcome& o) {
  o.stream = s.stream;
  o.starts = o.has_token = o.ends = false;
  o.error = Status();
  s.held += item.count;
  if (!s.prefilled()) {
    s.fed += item.count;
    std::move(result.scores.begin(), result.scores.end(), std::back_inserter(s.start.prompt_scores));
    std::move(result.tops.begin(), result.tops.end(), std::back_inserter(s.start.prompt_tops));
    if (!s.prefilled()) return;
    if (s.scores()) {
      s.scored = true;
      s.start.prompt_scores.pop_back();  // nothing follows the last prompt token
      if (!s.start.prompt_tops.empty()) s.start.prompt_tops.pop_back();
      o.starts = true;
      o.start = std::move(s.start);
      s.start = StartInfo{o.start.version, o.start.adapter, o.start.cached_tokens, {}, {}};
    }
  }
  if (item.sample && s.generated.empty()) s.first_token = at;
  o.timings = s.timings(at);
  o.reason = FinishReason::kLength;
  o.ends = !item.sample;
  if (item.sample) draw(s, std::move(result.sampled), o);
  s.ends = o.ends;
}

void Engine::Impl::draw(Sequence& s, SampledToken token, Outcome& o) {
  if (!token.finite) {
    s.spoilt = o.ends = true;
    o.reason = FinishReason::kError;
    o.error = internal_error("the model's output is not a number for this request").with(Reason::kNotFinite);
    return;
  }
  s.generated.push_back(token.token);
  ++counted_.generated_tokens;
  ++step_tokens_;
  o.has_token = true;
  const auto& stops = s.request.stop_ids;
  if (!s.request.ignore_stop_ids && std::find(stops.begin(), stops.end(), token.token) != stops.end()) {
    o.ends = true;
    o.reason = FinishReason::kStop;
  } else if (static_cast<int>(s.generated.size()) >= s.request.max_tokens) {
    o.ends = true;
  }
  o.token = std::move(token);
}

void Engine::Impl::end_now(Sequences sequences, FinishReason reason, const Status& error) {
  for (const auto& sequence : sequences) close(*sequence);
  step_ends_ += static_cast<std::int64_t>(sequences.size());
  update_stats();
  const SteadyTime at = now();
  for (const auto& sequence : sequences) sequence->stream->end(reason, error, sequence->timings(at));
}

// Gives back all the sequence holds, so that a caller who hears of the end finds it free.
void Engine::Impl::close(Sequence& sequence) {
  sequence.start.adapter.reset();
  sequence.pin = PinnedVersion();
  if (sequence.handle.valid()) leave_context(sequence, "Closing a sequence", !sequence.spoilt);
}

void Engine::Impl::leave_context(Sequence& sequence, const char* doing, bool keep_prefix) {
  const Status closed = guarded(doing, [&]() -> Status {
    context_->close(sequence.handle, keep_prefix);
    return {};
  });
  if (!closed.ok()) log_.error("serve", closed.message());
  sequence.handle = SequenceHandle();
}

void Engine::Impl::update_stats() {
  const KvUsage kv = context_ ? context_->usage() : KvUsage();
  const SteadyTime at = now();
  MutexLock lock(mu_);
  waiting_ = inbox_.size() + scheduler_.waiting();
  std::map<VersionId, std::int64_t> by_version = std::move(stats_.running_by_version);
  stats_ = counted_;
  stats_.running = static_cast<std::int64_t>(scheduler_.running().size());
  for (auto& [version, count] : by_version) count = 0;
  for (const auto& sequence : scheduler_.running()) ++by_version[sequence->start.version];
  std::erase_if(by_version, [](const auto& entry) { return entry.second == 0; });
  stats_.running_by_version = std::move(by_version);
  stats_.kv = kv;
  if (step_tokens_ > 0) rate_.add(step_tokens_, at);
  if (step_ends_ > 0) ends_.add(step_ends_, at);
  step_tokens_ = step_ends_ = 0;
}

}  // namespace sluice
