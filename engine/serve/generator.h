// SPDX-License-Identifier: GPL-3.0-or-later
// Something that generates: the local engine, or an attached server. Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "base/result.h"
#include "serve/request.h"
#include "serve/response_stream.h"

namespace sluice {

enum class ServeState { kReady, kPaused, kAsleep, kStopping };

// How many tokens the steps so far fed: counts[i] steps of at most 2^i tokens that are not in counts[i - 1]; the last
// counts all larger ones.
struct StepSizes {
  std::array<std::int64_t, 13> counts{};
  std::int64_t steps = 0, tokens = 0;

  void add(std::int64_t fed) {
    std::size_t i = 0;
    while (i + 1 < counts.size() && fed > (std::int64_t{1} << i)) ++i;
    ++counts[i];
    ++steps;
    tokens += fed;
  }
};

struct GeneratorStats {
  ServeState state = ServeState::kReady;
  std::int64_t running = 0, waiting = 0;
  std::map<VersionId, std::int64_t> running_by_version;
  // Since start.
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  std::int64_t prefix_queries = 0, prefix_hits = 0;  // sequences that looked for a cached prefix; that found one
  std::int64_t preemptions = 0;                      // sequences that gave up their place and went on later
  std::int64_t slow_readers = 0;                     // cancelled because nobody read their answer
  StepSizes batch_tokens;
  double tokens_per_s = 0;   // generated, over the last five seconds
  double retry_after_s = 1;  // 1 to 60: when the requests that wait now will have been taken, at the rate of late
  KvUsage kv;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // kBusy: the queue is full; GeneratorStats::retry_after_s says when to come back. kInvalidArgument: prompt empty or not
  // shorter than context_length(). kUnavailable: paused, asleep or stopping. kNotFound for a pinned version that may not
  // serve is reported here or by wait_started().
  virtual Result<ResponseHandle> submit(Request request) = 0;
  virtual int context_length() const = 0;
  virtual GeneratorStats stats() const = 0;
};

}  // namespace sluice
