// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/bench.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "model/kernels/target.h"
#include "runtime/bench_impl.h"

namespace sluice {
namespace {

constexpr int kDecodeSteps = 12;    // of a part
constexpr int kPrefillChunk = 512;  // tokens a step, the most that the engine feeds at once

// A prompt step by step, nothing drawn from it.
Status feed(ModelContext& context, SequenceHandle sequence, std::span<const TokenId> ids) {
  for (std::size_t at = 0; at < ids.size(); at += kPrefillChunk) {
    StepItem item;
    item.sequence = sequence;
    item.tokens = ids.data() + at;
    item.count = static_cast<int>(std::min<std::size_t>(kPrefillChunk, ids.size() - at));
    StepInput input;
    input.items.push_back(item);
    SLUICE_ASSIGN_OR_RETURN(const StepOutput out, context.step(input));
  }
  return {};
}

// A line of the kernel's account of this process.
double status_megabytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::atof(line.c_str() + name.size()) / 1024;
  }
  return 0;
}

}  // namespace

// Deterministic ids inside the vocabulary; what they say does not change the time they take.
std::vector<TokenId> some_tokens(int count, int vocab, int salt) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) ids[static_cast<std::size_t>(i)] = static_cast<TokenId>((1000 + 7919LL * i + 104729LL * salt) % vocab);
  return ids;
}

double anonymous_megabytes() { return status_megabytes("RssAnon:"); }

double resident_megabytes() { return status_megabytes("VmRSS:"); }

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "sluice-bench-XXXXXX").string();
  if (mkdtemp(pattern.data())) path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Bench::Bench(const BenchOptions& options, Log& log) : options_(options), log_(log) {
  threads_ = options.threads > 0 ? options.threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

Status Bench::need_model() {
  if (system_.model) return {};
  const std::string path = options_.model_path.empty() ? find_bundled_model() : options_.model_path;
  if (path.empty()) return not_found("the bundled model is not here: run packaging/fetch.sh or give --model");
  SLUICE_ASSIGN_OR_RETURN(system_, load_system(path));
  return {};
}

std::unique_ptr<ModelContext> Bench::make_context(std::int64_t kv_tokens) const {
  return system_.model->make_context({.kv_tokens = std::max<std::int64_t>(kv_tokens, 1024), .threads = threads_, .prefix_cache = false});
}

void Bench::report(BenchResult result) {
  result.threads = threads_;
  options_.on_result(result);
}

// Parts of the runs take turns, so that what slows the machine down for a while slows all of them.
Status Bench::decode() {
  SLUICE_RETURN_IF_ERROR(need_model());
  constexpr int kParts = 12;
  SLUICE_ASSIGN_OR_RETURN(const auto adapters, make_adapters(8));
  std::vector<DecodeRun> runs(6);
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[0], 1, {}, kParts));
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[1], 4, {}, kParts));
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[2], 8, {}, kParts));
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[3], 16, {}, kParts));
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[4], 1, std::span(adapters).first(1), kParts));
  SLUICE_RETURN_IF_ERROR(begin_decode(runs[5], 8, adapters, kParts));
  for (int part = 0; part < kParts; ++part) {
    for (DecodeRun& run : runs) SLUICE_RETURN_IF_ERROR(decode_part(run));
  }
  for (const DecodeRun& run : runs) {
    report({.name = "decode", .batch = static_cast<int>(run.sequences.size()), .adapters = run.adapters, .tokens = kDecodeSteps,
            .tokens_per_s = median(run.rates)});
  }
  return {};
}

Status Bench::begin_decode(DecodeRun& run, int batch, std::span<const std::shared_ptr<const Adapter>> adapters, int parts) {
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

Status Bench::decode_step(DecodeRun& run) {
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

Status Bench::decode_part(DecodeRun& run) {
  const SteadyTime begin = Clock::system().steady();
  for (int i = 0; i < kDecodeSteps; ++i) SLUICE_RETURN_IF_ERROR(decode_step(run));
  run.rates.push_back(static_cast<double>(run.sequences.size()) * kDecodeSteps / seconds_since(begin));
  return {};
}

Status Bench::prefill() {
  SLUICE_RETURN_IF_ERROR(need_model());
  constexpr std::pair<int, int> kRuns[] = {{128, 9}, {512, 5}, {2048, 1}, {4096, 1}};  // tokens, rounds
  for (const auto& [tokens, rounds] : kRuns) {
    if (tokens < system_.model->info().context_length) SLUICE_RETURN_IF_ERROR(prefill_of(tokens, rounds));
  }
  return {};
}

// Rounds after one that does not count.
Status Bench::prefill_of(int tokens, int rounds) {
  std::vector<double> rates;
  const auto context = make_context(tokens + 64);
  for (int round = 0; round <= rounds; ++round) {
    const auto ids = some_tokens(tokens, system_.model->info().vocab_size, round);
    SLUICE_ASSIGN_OR_RETURN(const OpenedSequence opened, context->open(nullptr, ids, tokens + 1));
    const SteadyTime begin = Clock::system().steady();
    SLUICE_RETURN_IF_ERROR(feed(*context, opened.handle, ids));
    if (round > 0) rates.push_back(tokens / seconds_since(begin));
    context->close(opened.handle);
  }
  report({.name = "prefill", .batch = 1, .tokens = tokens, .tokens_per_s = median(rates)});
  return {};
}

// Once loaded, and once after eight sequences of 512 tokens.
Status Bench::memory() {
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
