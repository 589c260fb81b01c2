// SPDX-License-Identifier: GPL-3.0-or-later
#include "base/log.h"

namespace sluice {

const char* log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "unknown";
}

Result<LogLevel> parse_log_level(std::string_view text) {
  for (LogLevel level : {LogLevel::kDebug, LogLevel::kInfo, LogLevel::kWarning, LogLevel::kError}) {
    if (text == log_level_name(level)) return level;
  }
  return invalid_argument("log level \"" + std::string(text) + "\" is unknown: use debug, info, warning or error");
}

void Log::set_sink(Sink sink, LogLevel least) {
  MutexLock lock(mu_);
  sink_ = std::move(sink);
  least_ = least;
}

void Log::write(LogLevel level, std::string_view category, std::string_view text) const {
  MutexLock lock(mu_);
  if (sink_ && level >= least_) sink_(level, category, text);
}

}  // namespace sluice
