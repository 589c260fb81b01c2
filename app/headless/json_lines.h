// SPDX-License-Identifier: GPL-3.0-or-later
// JSON lines of one run: objects with "event" and "t" (seconds since start) first. Thread-safe.
#pragma once

#include <cstdint>
#include <cstdio>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace sluice::headless {

// Builds one flat JSON object. Numbers that are not finite become null.
class JsonObject {
 public:
  JsonObject& add(const char* key, const std::string& value);
  JsonObject& add(const char* key, const char* value) { return add(key, std::string(value)); }
  JsonObject& add(const char* key, double value);
  JsonObject& add(const char* key, std::int64_t value);
  JsonObject& add(const char* key, int value) { return add(key, static_cast<std::int64_t>(value)); }
  JsonObject& add(const char* key, bool value);
  JsonObject& add_raw(const char* key, const std::string& json);  // an array or object already in JSON
  std::string text() const { return "{" + body_ + "}"; }

 private:
  void key(const char* name);
  std::string body_;
};

std::string json_string(const std::string& text);

class JsonLines {
 public:
  JsonLines() : start_(Clock::system().steady()) {}
  ~JsonLines();
  // "-" = standard output. kInvalidArgument when the file can't be written.
  Status open(const std::string& path);
  void write(const char* event, const JsonObject& fields);
  double seconds() const;

 private:
  const SteadyTime start_;
  std::mutex mutex_;
  std::FILE* file_ = nullptr;
};

}  // namespace sluice::headless
