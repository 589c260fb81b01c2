// SPDX-License-Identifier: GPL-3.0-or-later
// JSON lines of one run: objects with "event" and "t" (seconds since start) first. Thread-safe.
#pragma once

#include <cstdio>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/json_object.h"
#include "base/result.h"

namespace sluice::headless {

class JsonLines {
 public:
  JsonLines() : start_(Clock::system().steady()) {}
  ~JsonLines();
  // "-" = standard output: what is printed to it from then on, for people, goes to standard error, so that it holds JSON
  // lines only. kInvalidArgument when the file can't be written.
  Status open(const std::string& path);
  void write(const char* event, const JsonObject& fields);
  double seconds() const;

 private:
  const SteadyTime start_;
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
};

}  // namespace sluice::headless
