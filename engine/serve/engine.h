// SPDX-License-Identifier: GPL-3.0-or-later
// The local Generator: one thread that drains requests, plans a step over all sequences, runs it, emits tokens. A sequence
// keeps the adapter version it was admitted with. An error in a step fails the sequences in it and the thread goes on.
#pragma once

#include <memory>

#include "base/log.h"
#include "serve/adapter_slots.h"
#include "serve/generator.h"

namespace sluice {

struct EngineOptions {
  ContextOptions context;
  int max_running = 16;          // sequences in a step
  int reserved_for_live = 4;     // of those, never taken by gate or background work
  int prefill_chunk = 256;       // prompt tokens per step, over all sequences
  std::size_t queue_capacity = 256;
};

class Engine final : public Generator {
 public:
  Engine(std::shared_ptr<const Model> model, AdapterSlots& slots, const EngineOptions& options, const Log& log);
  ~Engine() override;  // stop() + join

  Result<ResponseHandle> submit(Request request) override;
  int context_length() const override;
  GeneratorStats stats() const override;

  void cancel_all();   // every running and waiting request ends with kCancelled
  void stop();         // refuses new requests, cancels all, joins the thread; idempotent

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
