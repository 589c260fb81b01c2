// SPDX-License-Identifier: GPL-3.0-or-later
// The housekeeping thread: curves that no single part owns, and the snapshot that the programs poll.
#include <chrono>
#include <exception>

#include "runtime/runtime_impl.h"

namespace sluice {
namespace {

constexpr auto kSnapshotEvery = std::chrono::milliseconds(250);
constexpr auto kSpeedEvery = std::chrono::seconds(2);

}  // namespace

void Runtime::Impl::housekeeping_loop() {
  Bookkeeper books(*store);
  SteadyTime next_snapshot = Clock::system().steady();
  SteadyTime next_speed = next_snapshot + kSpeedEvery;
  for (;;) {
    const auto event = events.pop(next_snapshot);
    if (!event && events.closed()) break;
    while (events.try_pop()) {
    }
    Status kept;
    try {
      if (event) kept = books.catch_up();
    } catch (const std::exception& e) {
      log.error("store", std::string("curves can't be kept up: ") + e.what());
    }
    const SteadyTime now = Clock::system().steady();
    if (now >= next_speed) {
      next_speed = now + kSpeedEvery;
      const auto s = serving();
      const auto running = session();
      const GeneratorStats stats = s ? s->engine->stats() : GeneratorStats();
      if (running && kept.ok() && stats.tokens_per_s > 0) kept = books.add_speed(running->row().id, stats.tokens_per_s);
    }
    if (now >= next_snapshot) {
      publish_snapshot();
      next_snapshot = now + kSnapshotEvery;
    }
  }
  // What was committed last still gets its points; a failure here is one the store has already reported.
  if (Status last = books.catch_up(); !last.ok()) log.warning("store", last.message());
}

void Runtime::Impl::publish_snapshot() {
  auto next = std::make_shared<EngineState>();
  const auto s = serving();
  const auto running = session();
  std::uint64_t number = 0;
  {
    MutexLock lock(mu);
    number = ++snapshots_begun;
    next->phase = phase;
    next->model_error = model_error;
    next->model_path = model_path;
    next->server_url = server_url;
    next->server_error = server_error;
  }
  if (const Status health = store->health(); !health.ok()) next->store_error = health.message();
  next->data_folder = store->folder();
  next->serving = store->serving_version();
  next->serving_name = name_of(next->serving);
  if (const auto row = store->version(next->serving)) next->serving_since_us = row->state_us;
  if (s) {
    const ModelInfo& info = s->system.model->info();
    next->model_name = info.name;
    next->quantisation = info.quantisation;
    next->model_bytes = info.weight_bytes;
    next->frozen = s->registry->frozen();
    const GeneratorStats stats = s->engine->stats();
    next->tokens_per_s = stats.tokens_per_s;
    next->running = stats.running;
    next->waiting = stats.waiting;
    next->kv_used = stats.kv.tokens_used;
    next->kv_capacity = stats.kv.tokens_capacity;
  }
  std::optional<SessionRow> row;
  if (running) row = store->session(running->row().id);
  if (row && row->state != SessionState::kEnded) {  // one that ended is still coming to a stop
    next->session = std::move(row);
    next->session_through = running->finished();
    next->stream = running->stream_progress();
    next->train = running->train_progress();
    next->gate = running->gate_progress();
  }
  if (const auto out = shut_out(); out && !running) {
    next->session = store->session(out->id);
    next->session_problem = out->reason;
  }
  next->rss_bytes = resident_memory();
  next->errors = errors;
  MutexLock lock(mu);
  if (number < newest_snapshot) return;  // one begun later is there already: never show what was before a command
  newest_snapshot = number;
  state = std::move(next);
}

}  // namespace sluice
