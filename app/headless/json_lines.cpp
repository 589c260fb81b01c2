// SPDX-License-Identifier: GPL-3.0-or-later
#include "headless/json_lines.h"

#include <unistd.h>

#include <chrono>
#include <cmath>

namespace sluice::headless {

JsonLines::~JsonLines() {
  if (file_) std::fclose(file_);
}

Status JsonLines::open(const std::string& path) {
  if (path == "-") {
    std::fflush(stdout);
    const int out = dup(STDOUT_FILENO);
    if (out >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) file_ = fdopen(out, "w");
  } else {
    file_ = std::fopen(path.c_str(), "w");
  }
  return file_ ? Status() : invalid_argument(path + " can't be written: give another file for --json");
}

double JsonLines::seconds() const {
  return std::chrono::duration<double>(Clock::system().steady() - start_).count();
}

void JsonLines::write(const char* event, const JsonObject& fields) {
  if (!file_) return;
  JsonObject head;
  head.add("event", event).add("t", std::round(seconds() * 1000) / 1000);
  std::string line = head.text();
  const std::string rest = fields.text();
  if (rest.size() > 2) line = line.substr(0, line.size() - 1) + "," + rest.substr(1);
  const std::lock_guard lock(mutex_);
  std::fprintf(file_, "%s\n", line.c_str());
  std::fflush(file_);
}

}  // namespace sluice::headless
