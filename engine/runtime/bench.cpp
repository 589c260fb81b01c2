// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "learn/step_runner.h"
#include "learn_torch/step_runner.h"
#include "model/kernels/target.h"
#include "release/registry.h"
#include "runtime/load.h"
#include "serve/adapter_slots.h"
#include "serve/engine.h"
#include "store/store.h"

namespace sluice {
namespace {

double seconds_since(SteadyTime begin) { return std::chrono::duration<double>(Clock::system().steady() - begin).count(); }

template <class T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Deterministic ids inside the vocabulary; what they say does not change the time they take.
std::vector<TokenId> some_tokens(int count, int vocab, int salt) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = static_cast<TokenId>((1000 + 7919LL * i + 104729LL * salt) % vocab);
  return ids;
}

// Pages of this process that no file backs, as the kernel counts them.
double anonymous_megabytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("RssAnon:")) return std::atof(line.c_str() + 8) / 1024;
  }
  return 0;
}

// A folder of ours that goes with us.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
    if (mkdtemp(pattern.data())) path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Bench {
 public:
  Bench(const BenchOptions& options, Log& log) : options_(options), log_(log) {
    threads_ = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  }

  // Parts of the runs take turns, so that what slows the machine down for a while slows all of them.
  Status decode() {
    SLUICE_RETURN_IF_ERROR(need_model());
    constexpr int kParts = 12;
    SLUICE_ASSIGN_OR_RETURN(const auto adapters, make_adapters(8));
    std::vector<DecodeRun> runs(5);
    SLUICE_RETURN_IF_ERROR(begin_decode(runs[0], 1, {}, kParts));
    SLUICE_RETURN_IF_ERROR(begin_decode(runs[1], 4, {}, kParts));
    SLUICE_RETURN_IF_ERROR(begin_decode(runs[2], 8, {}, kParts));
    SLUICE_RETURN_IF_ERROR(begin_decode(runs[3], 1, std::span(adapters).first(1), kParts));
    SLUICE_RETURN_IF_ERROR(begin_decode(runs[4], 8, adapters, kParts));
    for (int part = 0; part < kParts; ++part) {
      for (DecodeRun& run : runs) SLUICE_RETURN_IF_ERROR(decode_part(run));
    }
    for (const DecodeRun& run : runs) {
      report({.name = "decode", .batch = static_cast<int>(run.sequences.size()), .adapters = run.adapters, .tokens = kDecodeSteps,
              .tokens_per_s = median(run.rates)});
    }
    return {};
  }

  Status prefill() {
    SLUICE_RETURN_IF_ERROR(need_model());
    constexpr int kTokens = 512, kRounds = 5;
    std::vector<double> rates;
    const auto context = make_context(kTokens + 64);
    for (int round = 0; round <= kRounds; ++round) {
      const auto ids = some_tokens(kTokens, system_.model->info().vocab_size, round);
      SLUICE_ASSIGN_OR_RETURN(const OpenedSequence opened, context->open(nullptr, ids, kTokens + 1));
      const SteadyTime begin = Clock::system().steady();
      SLUICE_RETURN_IF_ERROR(feed(*context, opened.handle, ids));
      if (round > 0) rates.push_back(kTokens / seconds_since(begin));
      context->close(opened.handle);
    }
    report({.name = "prefill", .batch = 1, .tokens = kTokens, .tokens_per_s = median(rates)});
    return {};
  }

  // Once loaded, and once after eight sequences of 512 tokens.
  Status memory() {
    SLUICE_RETURN_IF_ERROR(need_model());
    constexpr int kTokens = 512, kSequences = 8;
    const auto context = make_context(kSequences * (kTokens + 64));
    report({.name = "memory", .megabytes = anonymous_megabytes()});
    for (int i = 0; i < kSequences; ++i) {
      const auto ids = some_tokens(kTokens, system_.model->info().vocab_size, i);
      SLUICE_ASSIGN_OR_RETURN(const OpenedSequence opened, context->open(nullptr, ids, kTokens + 1));
      SLUICE_RETURN_IF_ERROR(feed(*context, opened.handle, ids));
    }
    report({.name = "memory", .batch = kSequences, .tokens = kSequences * kTokens, .megabytes = anonymous_megabytes()});
    return {};
  }

  // A step of the shipped recipes with answers of full length, before the first promotion and after; longer prompts.
  Status train() {
    SLUICE_RETURN_IF_ERROR(need_model());
    SLUICE_RETURN_IF_ERROR(train_shape({.samples = 16, .shared = 24, .prompt = 38, .response = 96, .from_base = true}, 8));
    SLUICE_RETURN_IF_ERROR(train_shape({.samples = 16, .shared = 24, .prompt = 38, .response = 96}, 8));
    return train_shape({.samples = 16, .shared = 0, .prompt = 128, .response = 64}, 16);
  }

  Status swap();
  Status store();

 private:
  Status need_model() {
    if (system_.model) return {};
    const std::string path = options_.model_path.empty() ? find_bundled_model() : options_.model_path;
    if (path.empty()) return not_found("the bundled model is not here: run packaging/fetch.sh or give --model");
    SLUICE_ASSIGN_OR_RETURN(system_, load_system(path));
    return {};
  }

  std::unique_ptr<ModelContext> make_context(std::int64_t kv_tokens) const {
    return system_.model->make_context({.kv_tokens = std::max<std::int64_t>(kv_tokens, 1024), .threads = threads_, .prefix_cache = false});
  }

  // A prompt in one step, nothing drawn from it.
  static Status feed(ModelContext& context, SequenceHandle sequence, const std::vector<TokenId>& ids) {
    StepItem item;
    item.sequence = sequence;
    item.tokens = ids.data();
    item.count = static_cast<int>(ids.size());
    StepInput input;
    input.items.push_back(item);
    SLUICE_ASSIGN_OR_RETURN(const StepOutput out, context.step(input));
    return {};
  }

  void report(BenchResult result) {
    result.threads = threads_;
    options_.on_result(result);
  }

  // Versions of rank 16 whose B moved, as after a step; each with memory of its own.
  Result<std::vector<std::shared_ptr<const Adapter>>> make_adapters(int count) {
    SLUICE_RETURN_IF_ERROR(write_adapter(folder_.path() + "/adapter", 1));
    std::vector<std::shared_ptr<const Adapter>> adapters;
    for (int i = 1; i <= count; ++i) {
      SLUICE_ASSIGN_OR_RETURN(auto adapter, system_.model->adapter_loader().load(folder_.path() + "/adapter", VersionId(i)));
      adapters.push_back(std::move(adapter));
    }
    return adapters;
  }

  Status write_adapter(const std::string& folder, std::uint64_t seed) {
    SLUICE_ASSIGN_OR_RETURN(const auto runner, make_step_runner(system_.model, {.lora = {}, .threads = threads_}));
    SLUICE_RETURN_IF_ERROR(runner->reset_to_base(seed));
    SLUICE_ASSIGN_OR_RETURN(const StepStats stats, runner->step(training_batch({.samples = 2, .shared = 0, .prompt = 16, .response = 8}), LearnSettings()));
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    SLUICE_ASSIGN_OR_RETURN(saved_, runner->save(folder, {}));
    return {};
  }

  struct BatchShape {
    int samples = 0;
    int shared = 0;  // first tokens of every prompt that are the same, as a system prompt's
    int prompt = 0, response = 0;
    bool from_base = false;  // the records have the reference's log-probabilities
  };

  Status train_shape(const BatchShape& shape, int rank) {
    SLUICE_ASSIGN_OR_RETURN(const auto runner, make_step_runner(system_.model, {.lora = {.rank = rank}, .threads = threads_}));
    LearnSettings settings;
    if (options_.micro_batch_tokens > 0) settings.micro_batch_tokens = options_.micro_batch_tokens;
    TrainBatch batch = training_batch(shape);
    SLUICE_ASSIGN_OR_RETURN(batch.lp_full, runner->log_probs(batch));
    std::vector<StepStats> steps;
    for (int round = 0; round < 3; ++round) {
      SLUICE_ASSIGN_OR_RETURN(StepStats stats, runner->step(batch, settings));
      if (round > 0) steps.push_back(std::move(stats));
    }
    const auto middle = [&steps](double StepStats::* part) {
      std::vector<double> values;
      for (const StepStats& s : steps) values.push_back(s.*part);
      return median(std::move(values));
    };
    BenchResult result{.name = "train", .batch = shape.samples, .adapters = 1, .tokens = static_cast<int>(batch.tokens()), .answer_tokens = shape.response, .from_base = shape.from_base};
    result.seconds = middle(&StepStats::seconds);
    result.tokens_per_s = static_cast<double>(batch.tokens()) / result.seconds;
    result.reference_seconds = middle(&StepStats::reference_seconds);
    result.forward_seconds = middle(&StepStats::forward_seconds);
    result.backward_seconds = middle(&StepStats::backward_seconds);
    result.update_seconds = middle(&StepStats::update_seconds);
    result.megabytes = anonymous_megabytes();
    report(result);
    return {};
  }

  TrainBatch training_batch(const BatchShape& shape) const {
    const auto [samples, shared, prompt, response, from_base] = shape;
    const int vocab = system_.model->info().vocab_size;
    const auto common = some_tokens(shared, vocab, samples);
    TrainBatch b;
    b.seq_start = {0};
    b.resp_start = {0};
    for (int s = 0; s < samples; ++s) {
      auto ids = some_tokens(prompt + response, vocab, s);
      std::copy(common.begin(), common.end(), ids.begin());
      b.ids.insert(b.ids.end(), ids.begin(), ids.end());
      for (int i = 0; i < prompt + response; ++i) b.pos.push_back(i);
      for (int i = 0; i < response; ++i) {
        b.resp_index.push_back(b.seq_start.back() + prompt - 1 + i);
        b.target.push_back(ids[static_cast<std::size_t>(prompt + i)]);
        b.lp_full.push_back(-10.0f);
        b.mask.push_back(1.0f);
        b.advantage.push_back(s % 2 ? 1.0f : -1.0f);
      }
      b.seq_start.push_back(b.seq_start.back() + prompt + response);
      b.resp_start.push_back(b.resp_start.back() + response);
      b.tau.push_back(1.0f);
      b.weight.push_back(1.0f);
      b.age.push_back(1);
      b.from_base.push_back(from_base);
    }
    return b;
  }

  static constexpr int kDecodeSteps = 12;  // of a part

  struct DecodeRun {
    int adapters = 0;
    std::unique_ptr<ModelContext> context;
    std::vector<OpenedSequence> sequences;
    std::vector<std::vector<TokenId>> prompts, generated, feed;
    SamplingParams greedy;
    std::vector<double> rates;
  };

  // Sequence i on adapter i, or all on the base; a few steps that do not count.
  Status begin_decode(DecodeRun& run, int batch, std::span<const std::shared_ptr<const Adapter>> adapters, int parts) {
    constexpr int kPrompt = 32, kWarm = 5;
    const int length = kPrompt + kWarm + kDecodeSteps * parts + 8;
    run.adapters = static_cast<int>(adapters.size());
    run.context = make_context(static_cast<std::int64_t>(batch) * (length + 64));
    run.generated.resize(static_cast<std::size_t>(batch));
    run.greedy.temperature = 0;
    for (int i = 0; i < batch; ++i) {
      run.prompts.push_back(some_tokens(kPrompt, system_.model->info().vocab_size, i));
      SLUICE_ASSIGN_OR_RETURN(const auto opened, run.context->open(adapters.empty() ? nullptr : adapters[static_cast<std::size_t>(i)],
                                                                   run.prompts.back(), length));
      run.sequences.push_back(opened);
    }
    run.feed = run.prompts;
    for (int i = 0; i < kWarm; ++i) SLUICE_RETURN_IF_ERROR(decode_step(run));
    return {};
  }

  static Status decode_step(DecodeRun& run) {
    StepInput input;
    for (std::size_t i = 0; i < run.sequences.size(); ++i) {
      StepItem item;
      item.sequence = run.sequences[i].handle;
      item.tokens = run.feed[i].data();
      item.count = static_cast<int>(run.feed[i].size());
      item.sample = true;
      item.sampling = &run.greedy;
      item.generated = &run.generated[i];
      item.prompt = &run.prompts[i];
      input.items.push_back(item);
    }
    SLUICE_ASSIGN_OR_RETURN(const StepOutput out, run.context->step(input));
    for (std::size_t i = 0; i < run.sequences.size(); ++i) {
      run.feed[i].assign(1, out.results[i].sampled.token);
      run.generated[i].push_back(out.results[i].sampled.token);
    }
    return {};
  }

  static Status decode_part(DecodeRun& run) {
    const SteadyTime begin = Clock::system().steady();
    for (int i = 0; i < kDecodeSteps; ++i) SLUICE_RETURN_IF_ERROR(decode_step(run));
    run.rates.push_back(static_cast<double>(run.sequences.size()) * kDecodeSteps / seconds_since(begin));
    return {};
  }

  const BenchOptions& options_;
  Log& log_;
  int threads_ = 1;
  LoadedSystem system_;
  TemporaryFolder folder_;
  SavedAdapter saved_;
};

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
    ManualRequest promote{ManualAction::kPromote, versions[static_cast<std::size_t>(i % 2)], "bench", "swap benchmark", SessionId()};
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

}  // namespace

Status run_bench(const std::string& what, const BenchOptions& options, Log& log) {
  if (!options.kernels.empty() && !use_kernel_target(options.kernels)) {
    std::string names;
    for (const std::string& name : kernel_targets()) names += (names.empty() ? "" : ", ") + name;
    return invalid_argument("this processor has no kernels named \"" + options.kernels + "\": " + names);
  }
  Bench bench(options, log);
  const bool all = what == "all";
  bool known = all;
  const std::vector<std::pair<std::string, Status (Bench::*)()>> parts = {{"decode", &Bench::decode},
                                                                          {"prefill", &Bench::prefill},
                                                                          {"train", &Bench::train},
                                                                          {"swap", &Bench::swap},
                                                                          {"store", &Bench::store},
                                                                          {"memory", &Bench::memory}};
  for (const auto& [name, run] : parts) {
    if (!all && what != name) continue;
    known = true;
    SLUICE_RETURN_IF_ERROR((bench.*run)());
  }
  return known ? Status() : invalid_argument("bench \"" + what + "\" is unknown: decode, prefill, train, swap, store, memory or all");
}

}  // namespace sluice
