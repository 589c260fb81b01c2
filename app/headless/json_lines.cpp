// SPDX-License-Identifier: GPL-3.0-or-later
#include "headless/json_lines.h"

#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

namespace sluice::headless {

std::string json_string(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void JsonObject::key(const char* name) {
  if (!body_.empty()) body_ += ",";
  body_ += json_string(name) + ":";
}

JsonObject& JsonObject::add(const char* name, const std::string& value) { return add_raw(name, json_string(value)); }
JsonObject& JsonObject::add(const char* name, double value) {
  return add_raw(name, std::isfinite(value) ? nlohmann::json(value).dump() : "null");
}
JsonObject& JsonObject::add(const char* name, std::int64_t value) { return add_raw(name, std::to_string(value)); }
JsonObject& JsonObject::add(const char* name, bool value) { return add_raw(name, value ? "true" : "false"); }
JsonObject& JsonObject::add_raw(const char* name, const std::string& json) {
  key(name);
  body_ += json;
  return *this;
}

JsonLines::~JsonLines() {
  if (file_ && file_ != stdout) std::fclose(file_);
}

Status JsonLines::open(const std::string& path) {
  file_ = path == "-" ? stdout : std::fopen(path.c_str(), "w");
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
