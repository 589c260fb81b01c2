// SPDX-License-Identifier: GPL-3.0-or-later
// Levelled log lines into a sink that the program installs. No singleton: a Log is handed to whoever writes.
// Thread-safe. Keys and prompt texts are never logged.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/guarded.h"
#include "base/result.h"

namespace sluice {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

const char* log_level_name(LogLevel level);
Result<LogLevel> parse_log_level(std::string_view text);

class Log {
 public:
  using Sink = std::function<void(LogLevel, std::string_view category, std::string_view text)>;

  Log() = default;  // drops everything until a sink is set
  explicit Log(Sink sink, LogLevel least = LogLevel::kInfo) : sink_(std::move(sink)), least_(least) {}

  void set_sink(Sink sink, LogLevel least) SLUICE_EXCLUDES(mu_);
  // The sink is called under the log's lock: it must not log.
  void write(LogLevel level, std::string_view category, std::string_view text) const SLUICE_EXCLUDES(mu_);

  void debug(std::string_view category, std::string_view text) const { write(LogLevel::kDebug, category, text); }
  void info(std::string_view category, std::string_view text) const { write(LogLevel::kInfo, category, text); }
  void warning(std::string_view category, std::string_view text) const { write(LogLevel::kWarning, category, text); }
  void error(std::string_view category, std::string_view text) const { write(LogLevel::kError, category, text); }

 private:
  mutable Mutex mu_;
  Sink sink_ SLUICE_GUARDED_BY(mu_);
  LogLevel least_ SLUICE_GUARDED_BY(mu_) = LogLevel::kInfo;
};

}  // namespace sluice
