// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/conditions.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

namespace sluice {
namespace {

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

const char* program_version() { return SLUICE_VERSION; }

std::string conditions_json(const ModelInfo& model, const RuntimeOptions& options, int half_cores) {
  const unsigned cores = std::thread::hardware_concurrency();
  const nlohmann::json json = {
      {"program", program_version()},
      {"model", model.name},
      {"quantisation", model.quantisation},
      {"model_hash", model.content_hash.substr(0, 16)},
      {"cpu", cpu_name()},
      {"cores", cores},
      {"engine_threads", options.engine_threads > 0 ? options.engine_threads : cores},
      {"trainer_threads", options.trainer_threads > 0 ? options.trainer_threads : half_cores},
  };
  return json.dump();
}

}  // namespace sluice
