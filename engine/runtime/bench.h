// SPDX-License-Identifier: GPL-3.0-or-later
// What `bench` measures, on this machine, with the real code paths. Blocks; each opens what it needs.
#pragma once

#include <functional>
#include <string>

#include "base/log.h"
#include "base/result.h"

namespace sluice {

struct BenchResult {
  std::string name;            // "decode", "prefill", "train", "swap", "store", "memory"
  int batch = 0, adapters = 0, threads = 0, tokens = 0;
  double tokens_per_s = 0;     // decode, prefill, train
  double microseconds = 0;     // swap: median from publish call to visible
  double worst_microseconds = 0;
  double rows_per_s = 0;       // store
  double megabytes = 0;        // memory: anonymous pages of the process; tokens = those that the key-value cache holds
};

struct BenchOptions {
  std::string model_path;      // "" = the bundled model
  int threads = 0;             // 0 = all cores
  std::string kernels;         // instruction set to hold to, "" = the best (model/kernels/target.h)
  std::function<void(const BenchResult&)> on_result;  // as they come
};

// `what`: decode, prefill, train, swap, store, memory or all. kInvalidArgument names anything else.
Status run_bench(const std::string& what, const BenchOptions& options, Log& log);

}  // namespace sluice
