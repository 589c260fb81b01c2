// SPDX-License-Identifier: GPL-3.0-or-later
// What `bench` measures, on this machine, with the real code paths. Blocks; each opens what it needs.
#pragma once

#include <functional>
#include <string>

#include "base/log.h"
#include "base/result.h"

namespace sluice {

struct BenchResult {
  std::string name;            // "decode", "prefill", "train", "swap", "load", "reload" (both of `bench swap`), "store", "memory"
  int batch = 0, adapters = 0, threads = 0, tokens = 0;
  int answer_tokens = 0;       // train: of a sample; the rest is prompt
  bool from_base = false;      // train: sampled by the base, so the reference needs no pass
  double tokens_per_s = 0;     // decode, prefill (of 512 tokens, and of 4,096 where the model takes them), train
  double microseconds = 0;     // swap: median from publish call to visible
  double worst_microseconds = 0;
  // load: median from the promote call of a version that is only on disk, hash and decision row included, to a new sequence
  // getting it
  double milliseconds = 0, worst_milliseconds = 0;
  int cycles = 0;              // reload: loads, each with its unload
  double growth_megabytes = 0; // reload: resident memory of the process after them, less that before
  double rows_per_s = 0;       // store
  double megabytes = 0;        // memory, train: anonymous pages of the process (pages are kept, so this is the peak so far);
                               // tokens = those that the key-value cache holds, or of a training step
  double seconds = 0;          // train: a step, and its parts
  double reference_seconds = 0, forward_seconds = 0, backward_seconds = 0, update_seconds = 0;
};

struct BenchOptions {
  std::string model_path;      // "" = the bundled model
  int threads = 0;             // 0 = all cores
  int micro_batch_tokens = 0;  // train: 0 = as recipes have it
  std::string kernels;         // instruction set to hold to, "" = the best (model/kernels/target.h)
  std::function<void(const BenchResult&)> on_result;  // as they come
};

// `what`: decode, prefill, train, swap, store, memory or all. kInvalidArgument names anything else.
Status run_bench(const std::string& what, const BenchOptions& options, Log& log);

}  // namespace sluice
