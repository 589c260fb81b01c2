// SPDX-License-Identifier: GPL-3.0-or-later
// The measurements behind run_bench, one object for all of a call: they share the loaded model and a temporary folder.
// bench.cpp has what only reads the model, bench_train.cpp the training step, bench_release.cpp swaps and the store.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "learn/step_runner.h"
#include "runtime/bench.h"
#include "runtime/load.h"

namespace sluice {

inline double seconds_since(SteadyTime begin) {
  return std::chrono::duration<double>(Clock::system().steady() - begin).count();
}

template <class T>
T median(std::vector<T> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

std::vector<TokenId> some_tokens(int count, int vocab, int salt);

// Pages of this process that no file backs, as the kernel counts them.
double anonymous_megabytes();
// All of its pages in memory.
double resident_megabytes();

// A folder of ours that goes with us.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

class Bench {
 public:
  Bench(const BenchOptions& options, Log& log);

  Status decode();
  Status prefill();
  Status memory();
  Status train();
  Status swap();  // swap_resident, load_to_visible, reload
  Status store();

 private:
  struct BatchShape {
    int samples = 0;
    int shared = 0;  // first tokens of every prompt that are the same, as a system prompt's
    int prompt = 0, response = 0;
    bool from_base = false;  // the records have the reference's log-probabilities
  };
  struct DecodeRun {
    int adapters = 0;
    std::unique_ptr<ModelContext> context;
    std::vector<OpenedSequence> sequences;
    std::vector<std::vector<TokenId>> prompts, generated, feed;
    SamplingParams greedy;
    std::vector<double> rates;
  };

  Status need_model();
  std::unique_ptr<ModelContext> make_context(std::int64_t kv_tokens) const;
  void report(BenchResult result);

  // Sequence i on adapter i, or all on the base; a few steps that do not count.
  Status begin_decode(DecodeRun& run, int batch, std::span<const std::shared_ptr<const Adapter>> adapters, int parts);
  static Status decode_step(DecodeRun& run);
  static Status decode_part(DecodeRun& run);
  Status prefill_of(int tokens, int rounds);

  // Versions of rank 16 whose B moved, as after a step; each with memory of its own.
  Result<std::vector<std::shared_ptr<const Adapter>>> make_adapters(int count);
  Status write_adapter(const std::string& folder, std::uint64_t seed);
  Status swap_resident();
  Status load_to_visible();
  Status reload();
  Status train_shape(const BatchShape& shape, int rank);
  TrainBatch training_batch(const BatchShape& shape) const;

  const BenchOptions& options_;
  Log& log_;
  int threads_ = 1;
  LoadedSystem system_;
  TemporaryFolder folder_;
  SavedAdapter saved_;
};

}  // namespace sluice
