// SPDX-License-Identifier: GPL-3.0-or-later
// Something that generates: the local engine, or an attached server. Thread-safe.
#pragma once

#include <cstdint>
#include <map>

#include "base/result.h"
#include "serve/request.h"
#include "serve/response_stream.h"

namespace sluice {

struct GeneratorStats {
  std::int64_t running = 0, waiting = 0;
  std::map<VersionId, std::int64_t> running_by_version;
  std::int64_t prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;  // since start
  double tokens_per_s = 0;          // generated, over the last five seconds
  KvUsage kv;
};

class Generator {
 public:
  virtual ~Generator() = default;
  // kBusy: the queue is full. kInvalidArgument: prompt empty or not shorter than context_length(). kUnavailable: stopping.
  // kNotFound for a pinned version that may not serve is reported here or by wait_started().
  virtual Result<ResponseHandle> submit(Request request) = 0;
  virtual int context_length() const = 0;
  virtual GeneratorStats stats() const = 0;
};

}  // namespace sluice
