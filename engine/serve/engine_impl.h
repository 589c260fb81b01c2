// SPDX-License-Identifier: GPL-3.0-or-later
// The inside of serve/engine.h: what callers' threads and the engine's thread share, and what is the latter's own. The
// engine's thread is in engine_loop.cpp (what runs) and engine_step.cpp (a step and what came of it).
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "serve/engine.h"
#include "serve/prefill_budget.h"
#include "serve/rate_meter.h"
#include "serve/scheduler.h"
#include "serve/step_planner.h"

namespace sluice {

// Runs what may throw (the model is built on a library that does) and turns that into a Status.
template <class Work>
Status guarded(const char* doing, const Work& work) {
  try {
    return work();
  } catch (const std::exception& error) {
    return internal_error(std::string(doing) + " failed: " + error.what());
  } catch (...) {
    return internal_error(std::string(doing) + " failed for an unknown reason");
  }
}

class Engine::Impl {
 public:
  Impl(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log);
  ~Impl() { stop(); }

  Result<ResponseHandle> submit(Request request);
  int context_length() const { return context_length_; }
  GeneratorStats stats() const;
  Status pause() SLUICE_EXCLUDES(mu_);
  Status resume() SLUICE_EXCLUDES(mu_);
  Status flush() SLUICE_EXCLUDES(mu_);
  Status sleep(bool weights) SLUICE_EXCLUDES(mu_);
  Status wake() SLUICE_EXCLUDES(mu_);
  ServeState state() const SLUICE_EXCLUDES(mu_);
  bool deterministic() const { return options_.deterministic; }
  void limit_threads(int threads) { thread_limit_.store(threads, std::memory_order_relaxed); }
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
  // Something another thread wants done between two steps.
  struct Command {
    std::function<Status()> work;
    Status result;
    bool done = false;
  };
  using Sequences = std::vector<std::unique_ptr<Sequence>>;

  SteadyTime now() const { return options_.clock->steady(); }
  Status check_open() const SLUICE_REQUIRES(mu_);
  Result<PinnedVersion> pin(const AdapterChoice& choice);
  Status on_engine(std::function<Status()> work) SLUICE_REQUIRES(control_mu_) SLUICE_EXCLUDES(mu_);
  Status set_paused(bool paused) SLUICE_EXCLUDES(mu_);

  // The engine's thread: engine_loop.cpp.
  void run();
  void make_context();
  bool take_requests();  // waits while there is nothing to do; false: stop
  void run_commands();
  void drop_gone();
  void admit();
  bool admit_one(Sequence& next);  // false: nobody more this round
  void refuse(const Sequence& waiting, const Status& error);
  Status open(Sequence& sequence, AdapterSlots::Resolved version);
  void begin(Sequence& sequence, AdapterSlots::Resolved version, int cached);
  void make_room();
  void grow(Sequence& sequence);
  void preempt(Sequence& sequence, bool keep_prefix);

  // The engine's thread: engine_step.cpp.
  bool step();  // false: nothing could run
  void fail_step(const StepPlan& plan, const Status& error);
  void apply(Sequence& sequence, const StepItem& item, StepResult& result, SteadyTime now, Outcome& outcome);
  void draw(Sequence& sequence, SampledToken token, Outcome& outcome);
  void end_now(Sequences sequences, FinishReason reason, const Status& error);
  void close(Sequence& sequence);
  void leave_context(Sequence& sequence, const char* doing, bool keep_prefix);
  void update_stats();
  double retry_after(std::size_t waiting, SteadyTime now) const SLUICE_REQUIRES(mu_);

  // Const after construction.
  const std::shared_ptr<const Model> model_;
  AdapterSlots& slots_;
  const EngineOptions options_;
  const Log& log_;
  const int context_length_;

  // The engine thread's own.
  Scheduler scheduler_;
  StepPlanner planner_;
  PrefillBudget budget_;
  std::unique_ptr<ModelContext> context_;
  Status made_;          // why there is no context although there should be one
  bool rested_ = false;  // the last round could run nothing
  StepOutput output_;
  std::vector<Outcome> outcomes_;
  std::vector<Sequence*> growing_;
  GeneratorStats counted_;  // its counters alone
  std::int64_t step_tokens_ = 0, step_ends_ = 0;

  std::atomic<int> thread_limit_;  // of those of the context

  mutable Mutex mu_;
  CondVar work_, command_done_;
  ServeState state_ SLUICE_GUARDED_BY(mu_) = ServeState::kReady;
  Sequences inbox_ SLUICE_GUARDED_BY(mu_);
  std::vector<std::shared_ptr<Command>> commands_ SLUICE_GUARDED_BY(mu_);
  std::size_t waiting_ SLUICE_GUARDED_BY(mu_) = 0;  // inbox and scheduler's waiting together
  std::uint64_t last_ticket_ SLUICE_GUARDED_BY(mu_) = 0;
  std::uint64_t cancel_through_ SLUICE_GUARDED_BY(mu_) = 0;  // tickets up to this one are cancelled
  GeneratorStats stats_ SLUICE_GUARDED_BY(mu_);
  mutable RateMeter rate_ SLUICE_GUARDED_BY(mu_);   // tokens
  mutable RateMeter ends_ SLUICE_GUARDED_BY(mu_);   // requests that came to an end

  Mutex control_mu_;  // one change of state at a time; taken before mu_
  Mutex stop_mu_;     // one thread joins, others wait for it
  std::thread thread_ SLUICE_GUARDED_BY(stop_mu_);  // last: it uses all of the above
};

}  // namespace sluice
