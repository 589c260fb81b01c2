// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/engine.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <thread>

#include "serve/rate_meter.h"
#include "serve/scheduler.h"

namespace sluice {
namespace {

SteadyTime steady_now() { return std::chrono::steady_clock::now(); }

// Runs what may throw (the model is built on a library that does) and turns that into a Status.
Status guarded(const char* doing, const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return internal_error(std::string(doing) + " failed: " + error.what());
  } catch (...) {
    return internal_error(std::string(doing) + " failed for an unknown reason");
  }
}

}  // namespace

class Engine::Impl {
 public:
  Impl(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log)
      : model_(std::move(model)),
        slots_(slots),
        options_(options),
        log_(log),
        context_length_(static_cast<int>(std::min<std::int64_t>(model_->info().context_length, options.context.kv_tokens))),
        scheduler_(options.max_running, options.reserved_for_live, options.prefill_chunk),
        rate_(steady_now()),
        thread_([this] { run(); }) {}
  ~Impl() { stop(); }

  Result<ResponseHandle> submit(Request request);
  int context_length() const { return context_length_; }
  GeneratorStats stats() const;
  void cancel_all();
  void stop() SLUICE_EXCLUDES(mu_, stop_mu_);

 private:
  // What one step made of one sequence; told to the caller after the books are right.
  struct Outcome {
    std::shared_ptr<ResponseStream> stream;
    bool starts = false, has_token = false, ends = false;
    StartInfo start;
    SampledToken token;
    FinishReason reason = FinishReason::kStop;
    Status error;
    Timings timings;
  };

  Status check_room() const SLUICE_REQUIRES(mu_);
  Result<PinnedVersion> pin(const AdapterChoice& choice);

  // The engine's thread.
  void run();
  bool take_requests();  // waits while there is nothing to do; false: stop
  void drop_cancelled();
  void admit();
  Status open(Sequence& sequence);
  void step();
  Outcome apply(Sequence& sequence, const StepItem& item, StepResult& result, SteadyTime now);
  void end_now(std::vector<std::unique_ptr<Sequence>> sequences, FinishReason reason, const Status& error);
  void close(Sequence& sequence);
  void update_stats();

  // Const after construction.
  const std::shared_ptr<const Model> model_;
  AdapterSlots& slots_;
  const EngineOptions options_;
  const Log& log_;
  const int context_length_;

  // The engine thread's own.
  Scheduler scheduler_;
  std::unique_ptr<ModelContext> context_;
  std::vector<Outcome> outcomes_;
  std::int64_t prompt_tokens_ = 0, cached_tokens_ = 0, generated_tokens_ = 0, step_tokens_ = 0;

  mutable Mutex mu_;
  CondVar work_;
  std::vector<std::unique_ptr<Sequence>> inbox_ SLUICE_GUARDED_BY(mu_);
  std::size_t waiting_ SLUICE_GUARDED_BY(mu_) = 0;  // inbox and scheduler's waiting together
  std::uint64_t last_ticket_ SLUICE_GUARDED_BY(mu_) = 0;
  std::uint64_t cancel_through_ SLUICE_GUARDED_BY(mu_) = 0;  // tickets up to this one are cancelled
  bool stopping_ SLUICE_GUARDED_BY(mu_) = false;
  GeneratorStats stats_ SLUICE_GUARDED_BY(mu_);
  mutable RateMeter rate_ SLUICE_GUARDED_BY(mu_);

  Mutex stop_mu_;  // one thread joins, others wait for it
  std::thread thread_ SLUICE_GUARDED_BY(stop_mu_);  // last: it uses all of the above
};

Status Engine::Impl::check_room() const {
  if (stopping_) return unavailable("the engine is stopping");
  if (waiting_ >= options_.queue_capacity) {
    return busy("the queue is full: " + std::to_string(waiting_) + " requests wait already; try again later");
  }
  return {};
}

// A version asked for by number or pass is loaded here, on the caller's thread, so that the engine never loads.
Result<PinnedVersion> Engine::Impl::pin(const AdapterChoice& choice) {
  const bool by_number = choice.kind() == AdapterChoice::Kind::kVersion;
  if (!by_number && choice.kind() != AdapterChoice::Kind::kPass) return PinnedVersion();
  if (by_number && !slots_.pinnable(choice.version())) {
    const Result<AdapterSlots::Resolved> refused = slots_.resolve(choice);
    if (!refused.ok()) return refused.status();
  }
  SLUICE_RETURN_IF_ERROR(slots_.prepare(choice.version()));
  return PinnedVersion(slots_, choice.version());
}

Result<ResponseHandle> Engine::Impl::submit(Request request) {
  SLUICE_RETURN_IF_ERROR(check_request(request, model_->info(), context_length_));
  {
    MutexLock lock(mu_);
    SLUICE_RETURN_IF_ERROR(check_room());
  }
  auto sequence = std::make_unique<Sequence>();
  SLUICE_ASSIGN_OR_RETURN(sequence->pin, pin(request.adapter));
  request.max_tokens = std::min(request.max_tokens, context_length_ - static_cast<int>(request.prompt.size()));
  auto stream = std::make_shared<ResponseStream>(request.wakeup);
  sequence->request = std::move(request);
  sequence->submitted = steady_now();
  MutexLock lock(mu_);
  SLUICE_RETURN_IF_ERROR(check_room());
  sequence->stream = stream;
  sequence->ticket = ++last_ticket_;
  inbox_.push_back(std::move(sequence));
  ++waiting_;
  work_.notify_one();
  return ResponseHandle(std::move(stream));
}

GeneratorStats Engine::Impl::stats() const {
  MutexLock lock(mu_);
  GeneratorStats out = stats_;
  out.waiting = static_cast<std::int64_t>(waiting_);
  out.tokens_per_s = rate_.per_second(steady_now());
  return out;
}

void Engine::Impl::cancel_all() {
  MutexLock lock(mu_);
  cancel_through_ = last_ticket_;
  work_.notify_one();
}

void Engine::Impl::stop() {
  {
    MutexLock lock(mu_);
    stopping_ = true;
    cancel_through_ = last_ticket_;
    work_.notify_one();
  }
  MutexLock lock(stop_mu_);
  if (thread_.joinable()) thread_.join();
}

void Engine::Impl::run() {
  const Status made = guarded("Making the model's context", [this]() -> Status {
    context_ = model_->make_context(options_.context);
    return {};
  });
  if (!made.ok()) log_.error("serve", made.message());
  while (take_requests()) {
    const Status done = guarded("The engine", [&]() -> Status {
      if (!made.ok()) return made;
      drop_cancelled();
      admit();
      update_stats();
      if (!scheduler_.running().empty()) step();
      return {};
    });
    if (!done.ok()) {
      if (made.ok()) log_.error("serve", done.message());
      end_now(scheduler_.take_if([](const Sequence&) { return true; }), FinishReason::kError, done);
    }
  }
  end_now(scheduler_.take_if([](const Sequence&) { return true; }), FinishReason::kCancelled, {});
  context_.reset();
}

bool Engine::Impl::take_requests() {
  std::vector<std::unique_ptr<Sequence>> fresh;
  bool go_on = true;
  {
    MutexLock lock(mu_);
    while (inbox_.empty() && !stopping_ && scheduler_.idle()) work_.wait(mu_);
    fresh.swap(inbox_);
    go_on = !stopping_;
  }
  for (auto& sequence : fresh) scheduler_.enqueue(std::move(sequence));
  return go_on;
}

void Engine::Impl::drop_cancelled() {
  std::uint64_t through = 0;
  {
    MutexLock lock(mu_);
    through = cancel_through_;
  }
  auto gone = scheduler_.take_if([through](const Sequence& s) { return s.ticket <= through || s.stream->cancelled(); });
  if (!gone.empty()) end_now(std::move(gone), FinishReason::kCancelled, {});
}

void Engine::Impl::admit() {
  while (Sequence* next = scheduler_.next_to_admit()) {
    const Status opened = guarded("Opening a sequence", [&] { return open(*next); });
    if (opened.code() == Code::kBusy && !scheduler_.running().empty()) return;  // waits until one of them ends
    if (opened.ok()) {
      scheduler_.admit_next();
      if (next->request.score_prompt) continue;  // begins with its scores
      next->stream->start(next->start, next->timings(steady_now()));
      if (next->request.max_tokens > 0) continue;
      end_now(scheduler_.take_if([next](const Sequence& s) { return &s == next; }), FinishReason::kLength, {});
      continue;
    }
    std::vector<std::unique_ptr<Sequence>> failed;
    failed.push_back(scheduler_.take_next());
    const Status told = opened.code() != Code::kBusy ? opened
        : invalid_argument("the prompt and max_tokens together need " +
                           std::to_string(next->request.prompt.size() + static_cast<std::size_t>(next->request.max_tokens)) +
                           " positions, more than the KV cache can hold: ask for fewer tokens");
    end_now(std::move(failed), FinishReason::kError, told);
  }
}

// Fixes the version for the sequence's life and takes room in the KV cache.
Status Engine::Impl::open(Sequence& s) {
  SLUICE_ASSIGN_OR_RETURN(AdapterSlots::Resolved resolved, slots_.resolve(s.request.adapter));
  const std::vector<TokenId>& prompt = s.request.prompt;
  const int reserve = static_cast<int>(prompt.size()) + s.request.max_tokens;
  // A cached position yields no score, so a scored prompt is opened by its first token alone, which is never cached.
  const std::vector<TokenId> first(prompt.begin(), prompt.begin() + 1);
  const std::vector<TokenId>& known = s.request.score_prompt ? first : prompt;
  Result<OpenedSequence> opened = context_->open(resolved.adapter, known, reserve);
  if (opened.code() == Code::kBusy && scheduler_.running().empty()) {
    context_->drop_prefixes();
    opened = context_->open(resolved.adapter, known, reserve);
  }
  if (!opened.ok()) return opened.status();
  s.handle = opened->handle;
  s.fed = opened->cached_tokens;
  s.start.version = resolved.version;
  s.start.adapter = std::move(resolved.adapter);
  s.start.cached_tokens = opened->cached_tokens;
  s.pin = PinnedVersion();
  s.request.adapter = AdapterChoice();
  s.admitted = steady_now();
  if (s.request.score_prompt) {
    s.score_targets.assign(prompt.begin() + 1, prompt.end());
    s.score_targets.push_back(prompt.front());
  }
  prompt_tokens_ += static_cast<std::int64_t>(prompt.size());
  cached_tokens_ += s.fed;
  return {};
}

void Engine::Impl::step() {
  const StepPlan& plan = scheduler_.plan();
  StepOutput output;
  const Status done = guarded("A step of the model", [&]() -> Status {
    SLUICE_ASSIGN_OR_RETURN(output, context_->step(plan.input));
    if (output.results.size() != plan.sequences.size()) return internal_error("the model answered another number of rows");
    return {};
  });
  if (!done.ok()) {
    log_.error("serve", done.message());
    const std::vector<Sequence*> hit = plan.sequences;
    end_now(scheduler_.take_if([&](const Sequence& s) { return std::find(hit.begin(), hit.end(), &s) != hit.end(); }),
            FinishReason::kError, done);
    context_->drop_prefixes();  // nothing of a failed pass may be found again
    return;
  }
  const SteadyTime now = steady_now();
  bool spoilt = false;
  outcomes_.clear();
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    outcomes_.push_back(apply(*plan.sequences[i], plan.input.items[i], output.results[i], now));
    spoilt |= outcomes_.back().reason == FinishReason::kError;
  }
  const auto ended = scheduler_.take_if([&](const Sequence& s) {
    return std::any_of(outcomes_.begin(), outcomes_.end(), [&](const Outcome& o) { return o.ends && o.stream == s.stream; });
  });
  for (const auto& sequence : ended) close(*sequence);
  if (spoilt) context_->drop_prefixes();
  update_stats();  // before the ends are told: who was told finds the room free and the counts right
  for (Outcome& o : outcomes_) {
    if (o.starts) o.stream->start(std::move(o.start), o.timings);
    if (o.has_token) o.stream->push(std::move(o.token), o.timings);
    if (o.ends) o.stream->end(o.reason, std::move(o.error), o.timings);
  }
  outcomes_.clear();
}

Engine::Impl::Outcome Engine::Impl::apply(Sequence& s, const StepItem& item, StepResult& result, SteadyTime now) {
  Outcome o;
  o.stream = s.stream;
  if (!s.prefilled()) {
    s.fed += item.count;
    std::move(result.scores.begin(), result.scores.end(), std::back_inserter(s.start.prompt_scores));
    std::move(result.tops.begin(), result.tops.end(), std::back_inserter(s.start.prompt_tops));
    if (!s.prefilled()) return o;
    if (s.request.score_prompt) {
      s.start.prompt_scores.pop_back();  // nothing follows the last prompt token
      if (!s.start.prompt_tops.empty()) s.start.prompt_tops.pop_back();
      o.starts = true;
      o.start = std::move(s.start);
      s.start = StartInfo{o.start.version, o.start.adapter, o.start.cached_tokens, {}, {}};
    }
  }
  if (!item.sample) {
    o.ends = true;
    o.reason = FinishReason::kLength;
    o.timings = s.timings(now);
    return o;
  }
  if (s.generated.empty()) s.first_token = now;
  o.timings = s.timings(now);
  if (!result.sampled.finite) {
    o.ends = true;
    o.reason = FinishReason::kError;
    o.error = internal_error("non_finite_logits: the model's output is not a number for this request");
    return o;
  }
  s.generated.push_back(result.sampled.token);
  ++generated_tokens_;
  ++step_tokens_;
  o.has_token = true;
  const auto& stops = s.request.stop_ids;
  if (!s.request.ignore_stop_ids && std::find(stops.begin(), stops.end(), result.sampled.token) != stops.end()) {
    o.ends = true;
    o.reason = FinishReason::kStop;
  } else if (static_cast<int>(s.generated.size()) >= s.request.max_tokens) {
    o.ends = true;
    o.reason = FinishReason::kLength;
  }
  o.token = std::move(result.sampled);
  return o;
}

void Engine::Impl::end_now(std::vector<std::unique_ptr<Sequence>> sequences, FinishReason reason, const Status& error) {
  for (const auto& sequence : sequences) close(*sequence);
  update_stats();
  const SteadyTime now = steady_now();
  for (const auto& sequence : sequences) sequence->stream->end(reason, error, sequence->timings(now));
}

// Gives back all the sequence holds, so that a caller who hears of the end finds it free.
void Engine::Impl::close(Sequence& sequence) {
  sequence.start.adapter.reset();
  sequence.pin = PinnedVersion();
  if (!sequence.handle.valid()) return;
  const Status closed = guarded("Closing a sequence", [&]() -> Status {
    context_->close(sequence.handle);
    return {};
  });
  if (!closed.ok()) log_.error("serve", closed.message());
  sequence.handle = SequenceHandle();
}

void Engine::Impl::update_stats() {
  const KvUsage kv = context_ ? context_->usage() : KvUsage();
  MutexLock lock(mu_);
  waiting_ = inbox_.size() + scheduler_.waiting();
  stats_.running = static_cast<std::int64_t>(scheduler_.running().size());
  for (auto& [version, count] : stats_.running_by_version) count = 0;
  for (const auto& sequence : scheduler_.running()) ++stats_.running_by_version[sequence->start.version];
  std::erase_if(stats_.running_by_version, [](const auto& entry) { return entry.second == 0; });
  stats_.prompt_tokens = prompt_tokens_;
  stats_.cached_tokens = cached_tokens_;
  stats_.generated_tokens = generated_tokens_;
  stats_.kv = kv;
  if (step_tokens_ > 0) rate_.add(step_tokens_, steady_now());
  step_tokens_ = 0;
}

Engine::Engine(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log)
    : impl_(std::make_unique<Impl>(std::move(model), slots, options, log)) {}
Engine::~Engine() = default;

Result<ResponseHandle> Engine::submit(Request request) { return impl_->submit(std::move(request)); }
int Engine::context_length() const { return impl_->context_length(); }
GeneratorStats Engine::stats() const { return impl_->stats(); }
void Engine::cancel_all() { impl_->cancel_all(); }
void Engine::stop() { impl_->stop(); }

}  // namespace sluice
