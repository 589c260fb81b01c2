// SPDX-License-Identifier: GPL-3.0-or-later
// What a promotion takes while streams run, loading and unloading, and a record's row.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>

#include "release/registry.h"
#include "runtime/bench_impl.h"
#include "serve/adapter_slots.h"
#include "serve/engine.h"
#include "store/store.h"

namespace sluice {

namespace {

// Store, slots, engine and registry as a runtime has them, with `count` versions of one adapter.
class ReleaseBed {
 public:
  static Result<std::unique_ptr<ReleaseBed>> make(const LoadedSystem& system, const std::string& folder, int threads, std::int64_t pool_bytes,
                                                  const Log& log) {
    SLUICE_ASSIGN_OR_RETURN(auto store, Store::open({.folder = folder}));
    std::unique_ptr<ReleaseBed> bed(new ReleaseBed(system, std::move(store), threads, pool_bytes, log));
    SLUICE_ASSIGN_OR_RETURN(const StartReport started, bed->registry.start());
    return bed;
  }

  Status add_versions(int count, const std::string& adapter, const SavedAdapter& saved) {
    for (int i = 0; i < count; ++i) {
      SLUICE_ASSIGN_OR_RETURN(const VersionId id, store->reserve_version());
      std::error_code error;
      std::filesystem::create_directories(store->adapter_folder(id), error);
      std::filesystem::copy(adapter, store->adapter_folder(id), std::filesystem::copy_options::recursive, error);
      if (error) return unavailable(adapter + " can't be copied: " + error.message());
      VersionRow row;
      row.id = id;
      row.name = "bench";
      row.parent = kBaseVersion;
      row.origin = "import";
      row.content_hash = saved.content_hash;
      row.bytes = saved.bytes;
      row.rank = saved.rank;
      SLUICE_RETURN_IF_ERROR(store->add_version(row));
      versions.push_back(id);
    }
    return {};
  }

  Result<ResponseHandle> stream(int salt) {
    Request request;
    request.prompt = some_tokens(16, vocab_, salt);
    request.max_tokens = 16;
    request.ignore_stop_ids = true;
    return engine.submit(std::move(request));
  }
  static Status drain(ResponseHandle& stream) {
    for (;;) {
      const auto event = stream->next(Clock::system().steady() + std::chrono::seconds(60));
      if (!event) return deadline_exceeded("a stream stalled during a swap");
      if (event->kind != TokenEvent::Kind::kEnd) continue;
      return event->finish == FinishReason::kLength ? Status() : internal_error("a stream failed during a swap: " + event->error.message());
    }
  }
  Status promote(VersionId version) {
    const auto done = registry.act({ManualAction::kPromote, version, "bench", "swap benchmark", SessionId(), std::nullopt});
    return done.ok() ? Status() : done.status();
  }

  const std::unique_ptr<Store> store;
  AdapterSlots slots;
  Engine engine;
  std::vector<double> swap_us;
  Registry registry;
  std::vector<VersionId> versions;

 private:
  ReleaseBed(const LoadedSystem& system, std::unique_ptr<Store> opened, int threads, std::int64_t pool_bytes, const Log& log)
      : store(std::move(opened)),
        slots(system.model->adapter_loader(), [this](VersionId v) { return store->adapter_folder(v); }, pool_bytes),
        engine(system.model, slots, engine_options(threads), log),
        registry(*store, slots, registry_options()),
        vocab_(system.model->info().vocab_size) {}
  static EngineOptions engine_options(int threads) {
    EngineOptions options;
    options.context.threads = threads;
    return options;
  }
  RegistryOptions registry_options() {
    RegistryOptions options;
    options.on_swap = [this](const SwapNotice& n) { swap_us.push_back(static_cast<double>(n.microseconds)); };
    return options;
  }

  const int vocab_;
};

}  // namespace

Status Bench::swap() {
  SLUICE_RETURN_IF_ERROR(need_model());
  SLUICE_RETURN_IF_ERROR(write_adapter(folder_.path() + "/adapter", 1));
  SLUICE_RETURN_IF_ERROR(swap_resident());
  SLUICE_RETURN_IF_ERROR(load_to_visible());
  return reload();
}

// Fifty promotions of two versions in turn while a stream runs on each.
Status Bench::swap_resident() {
  constexpr int kSwaps = 50;
  SLUICE_ASSIGN_OR_RETURN(const auto bed, ReleaseBed::make(system_, folder_.path() + "/swap", threads_, AdapterSlots::kPoolBytes, log_));
  SLUICE_RETURN_IF_ERROR(bed->add_versions(2, folder_.path() + "/adapter", saved_));
  bed->swap_us.clear();  // of the start
  std::vector<ResponseHandle> streams;
  for (int i = 0; i < kSwaps; ++i) {
    SLUICE_ASSIGN_OR_RETURN(auto stream, bed->stream(i));
    streams.push_back(std::move(stream));
    SLUICE_RETURN_IF_ERROR(bed->promote(bed->versions[static_cast<std::size_t>(i % 2)]));
  }
  for (ResponseHandle& stream : streams) SLUICE_RETURN_IF_ERROR(ReleaseBed::drain(stream));
  if (bed->swap_us.empty()) return internal_error("no swap was seen");
  report({.name = "swap", .batch = kSwaps, .adapters = 2, .microseconds = median(bed->swap_us),
          .worst_microseconds = *std::max_element(bed->swap_us.begin(), bed->swap_us.end())});
  return {};
}

// Fifty promotions of versions that are only on disk, one stream in flight: hash, read, decision on disk, publish, until a
// new sequence gets the version.
Status Bench::load_to_visible() {
  constexpr int kLoads = 50, kVersions = 12;  // more than stay in memory without a pool
  SLUICE_ASSIGN_OR_RETURN(const auto bed, ReleaseBed::make(system_, folder_.path() + "/load", threads_, 0, log_));
  SLUICE_RETURN_IF_ERROR(bed->add_versions(kVersions, folder_.path() + "/adapter", saved_));
  std::vector<double> times;
  for (int i = 0; i < kLoads; ++i) {
    const VersionId version = bed->versions[static_cast<std::size_t>(i % kVersions)];
    const auto resident = bed->slots.resident();
    if (std::find(resident.begin(), resident.end(), version) != resident.end()) return internal_error("a version to be loaded was in memory");
    SLUICE_ASSIGN_OR_RETURN(auto stream, bed->stream(i));
    const SteadyTime begin = Clock::system().steady();
    SLUICE_RETURN_IF_ERROR(bed->promote(version));
    SLUICE_ASSIGN_OR_RETURN(const auto seen, bed->slots.resolve(AdapterChoice::serving()));
    times.push_back(seconds_since(begin) * 1e3);
    if (seen.version != version || !seen.adapter) return internal_error("a promoted version was not visible");
    SLUICE_RETURN_IF_ERROR(ReleaseBed::drain(stream));
  }
  report({.name = "load", .batch = kLoads, .adapters = kVersions, .milliseconds = median(times),
          .worst_milliseconds = *std::max_element(times.begin(), times.end())});
  return {};
}

// What loading and unloading leaves behind, after some cycles in which the allocator finds its size.
Status Bench::reload() {
  constexpr int kWarm = 50, kCycles = 1000;
  AdapterSlots slots(system_.model->adapter_loader(), [this](VersionId) { return folder_.path() + "/adapter"; }, 0);
  double before = 0;
  for (int i = 0; i < kWarm + kCycles; ++i) {
    if (i == kWarm) before = resident_megabytes();
    const VersionId version(i + 1);
    SLUICE_RETURN_IF_ERROR(slots.prepare(version, saved_.content_hash));
    slots.release(version);
    if (slots.resident_bytes() > 0) return internal_error("an unloaded version stayed in memory");
  }
  report({.name = "reload", .adapters = 1, .cycles = kCycles, .growth_megabytes = resident_megabytes() - before});
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
