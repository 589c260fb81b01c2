// SPDX-License-Identifier: GPL-3.0-or-later
// What a promotion takes while streams run, and a record's row.
#include <atomic>
#include <chrono>
#include <thread>

#include "release/registry.h"
#include "runtime/bench_impl.h"
#include "serve/adapter_slots.h"
#include "serve/engine.h"
#include "store/store.h"

namespace sluice {

// Fifty promotions of two versions in turn while a stream runs on each.
Status Bench::swap() {
  SLUICE_RETURN_IF_ERROR(need_model());
  constexpr int kSwaps = 50;
  SLUICE_ASSIGN_OR_RETURN(const auto store, Store::open({.folder = folder_.path() + "/workspace"}));
  AdapterSlots slots(system_.model->adapter_loader(), [&](VersionId v) { return store->adapter_folder(v); });
  EngineOptions engine_options;
  engine_options.context.threads = threads_;
  Engine engine(system_.model, slots, engine_options, log_);
  std::vector<double> times;
  RegistryOptions registry_options;
  registry_options.on_swap = [&](const SwapNotice& n) { times.push_back(static_cast<double>(n.microseconds)); };
  Registry registry(*store, slots, registry_options);
  SLUICE_ASSIGN_OR_RETURN(const StartReport started, registry.start());
  std::vector<VersionId> versions;
  for (std::uint64_t seed = 1; seed <= 2; ++seed) {
    SLUICE_ASSIGN_OR_RETURN(const VersionId id, store->reserve_version());
    SLUICE_RETURN_IF_ERROR(write_adapter(store->adapter_folder(id), seed));
    VersionRow row;
    row.id = id;
    row.name = "bench";
    row.parent = kBaseVersion;
    row.origin = "import";
    row.content_hash = saved_.content_hash;
    row.bytes = saved_.bytes;
    row.rank = saved_.rank;
    SLUICE_RETURN_IF_ERROR(store->add_version(row));
    versions.push_back(id);
  }
  std::vector<ResponseHandle> streams;
  for (int i = 0; i < kSwaps; ++i) {
    Request request;
    request.prompt = some_tokens(16, system_.model->info().vocab_size, i);
    request.max_tokens = 16;
    request.ignore_stop_ids = true;
    SLUICE_ASSIGN_OR_RETURN(auto handle, engine.submit(std::move(request)));
    streams.push_back(std::move(handle));
    ManualRequest promote{ManualAction::kPromote, versions[static_cast<std::size_t>(i % 2)], "bench", "swap benchmark", SessionId(), std::nullopt};
    SLUICE_ASSIGN_OR_RETURN(const DecisionRow row, registry.act(promote));
  }
  for (ResponseHandle& stream : streams) {
    for (;;) {
      const auto event = stream->next(Clock::system().steady() + std::chrono::seconds(60));
      if (!event) return deadline_exceeded("a stream stalled during a swap");
      if (event->kind != TokenEvent::Kind::kEnd) continue;
      if (event->finish != FinishReason::kLength) return internal_error("a stream failed during a swap: " + event->error.message());
      break;
    }
  }
  if (times.empty()) return internal_error("no swap was seen");
  report({.name = "swap", .batch = kSwaps, .adapters = 2, .microseconds = median(times),
          .worst_microseconds = *std::max_element(times.begin(), times.end())});
  return {};
}

Status Bench::store() {
  constexpr int kWriters = 8, kEach = 250;
  SLUICE_ASSIGN_OR_RETURN(const auto store, Store::open({.folder = folder_.path() + "/rows"}));
  std::vector<std::thread> writers;
  std::atomic<int> failed{0};
  const SteadyTime begin = Clock::system().steady();
  for (int w = 0; w < kWriters; ++w) {
    writers.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        RecordRow row;
        row.id = RecordId::make();
        row.version = kBaseVersion;
        row.adapter_name = "base";
        row.route = "chat";
        row.prompt_text = std::string(200, 'p');
        row.completion_text = std::string(300, 'c');
        row.prompt_ids.assign(60, 1);
        row.token_ids.assign(60, 2);
        row.lp_full.assign(60, -1.0f);
        row.lp_mu.assign(60, -1.0f);
        row.finish_reason = "stop";
        if (!store->add_record(std::move(row)).ok()) ++failed;
      }
    });
  }
  for (std::thread& t : writers) t.join();
  if (failed > 0) return internal_error(std::to_string(failed) + " rows were not written");
  report({.name = "store", .batch = kWriters, .rows_per_s = kWriters * kEach / seconds_since(begin)});
  return {};
}

}  // namespace sluice
