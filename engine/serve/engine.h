// SPDX-License-Identifier: GPL-3.0-or-later
// The local Generator: one thread that drains requests, plans a step over all sequences, runs it, emits tokens. A sequence
// keeps the adapter version it was admitted with. An error in a step fails the sequences in it and the thread goes on.
// Thread-safe; the calls that change the state wait for the engine's thread, one step at most.
#pragma once

#include <chrono>
#include <memory>

#include "base/log.h"
#include "serve/adapter_slots.h"
#include "serve/generator.h"

namespace sluice {

struct EngineOptions {
  ContextOptions context;
  int max_running = 64;          // sequences in a step
  int reserved_for_live = 52;    // of those, never taken by gate or background work
  int prefill_chunk = 512;       // prompt tokens per step, over all sequences, at most
  // Prompt tokens of a step are cut so that it takes about this long: half of the 150 ms that a stream should wait at most,
  // since a busy machine may make one step take twice that.
  std::chrono::milliseconds step_target{80};
  std::size_t queue_capacity = 256;
  std::chrono::seconds slow_reader{60};  // a response that nobody reads for so long is cancelled
  // Answers are bit-equal whatever was cached and whatever runs beside them (serving.md SMP-12). The gate's always are.
  bool deterministic = false;
  const Clock* clock = &Clock::system();
};

class Engine final : public Generator {
 public:
  Engine(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log);
  ~Engine() override;  // stop() + join

  // Live requests go first, then the gate's, then background work; within one, first come first served.
  Result<ResponseHandle> submit(Request request) override;
  int context_length() const override;
  GeneratorStats stats() const override;

  // No request is taken or begun until resume(); those that run go on, those that wait keep their place. kConflict while
  // asleep. Doing it twice is no error, here and below.
  Status pause();
  Status resume();
  // No later request hits anything that was cached before; what runs is not disturbed.
  Status flush();
  // Frees keys, values and scratch. Sequences that run give up their place and go on after wake(), where they were. With
  // `weights` the model's memory too; kUnavailable when it can't, and then the rest is done all the same.
  Status sleep(bool weights);
  Status wake();  // restored as at start, and ready. On an error it stays asleep.
  ServeState state() const;
  bool deterministic() const;  // as EngineOptions says

  // From the next step on, at most so many of EngineOptions::context.threads work: the others leave their cores to a trainer.
  void limit_threads(int threads);

  void cancel_all();   // every running and waiting request ends with kCancelled
  void stop();         // refuses new requests, cancels all, joins the thread; idempotent

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
