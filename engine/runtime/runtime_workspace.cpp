// SPDX-License-Identifier: GPL-3.0-or-later
// What a workspace remembers from one start to the next: its model, and a port that was chosen by hand.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "runtime/load.h"
#include "runtime/runtime_impl.h"

namespace sluice {
namespace {

constexpr const char* kModel = "workspace.model";  // "<hash of the weights> <name>"
constexpr const char* kPort = "workspace.port";
constexpr int kDefaultPort = 8080;

}  // namespace

std::string Runtime::Impl::model_of_workspace() {
  const std::string path = store->value(kWorkspaceModelPath).value_or("");
  std::error_code ignored;
  if (path.empty()) return find_bundled_model();
  if (std::filesystem::exists(path, ignored)) return path;
  note(LogLevel::kWarning, "model", "The model that this workspace served last is gone from " + path + ": the bundled one is tried.");
  return find_bundled_model();
}

// Adapters fit the model they were trained on: another one would find the version in service damaged and take it out. The
// records of an open session hold its token ids.
Status Runtime::Impl::check_model_of_workspace(const ModelInfo& info) {
  const auto known = store->value(kModel);
  if (!known || known->substr(0, known->find(' ')) == info.content_hash) return {};
  const bool has_adapters = store->versions().size() > 1;
  const std::vector<SessionRow> sessions = store->sessions();
  const bool has_records = std::any_of(sessions.begin(), sessions.end(), [this](const SessionRow& row) {
    return row.state != SessionState::kEnded && store->counts(row.id).live_records > 0;
  });
  if (!has_adapters && !has_records) return {};
  const std::string path = store->value(kWorkspaceModelPath).value_or("");
  return conflict((has_adapters ? "The adapters of this workspace belong to the model " : "The open session of this workspace belongs to the model ") +
                  known->substr(known->find(' ') + 1) + (path.empty() ? "" : " (" + path + ")") + ", not to " + info.name +
                  ": choose that model, or a new workspace for this one.");
}

void Runtime::Impl::remember_model(const ModelInfo& info) {
  std::string path;
  {
    MutexLock lock(mu);
    path = model_path;
  }
  std::error_code failed;
  const std::string whole = std::filesystem::absolute(path, failed).string();
  if (!failed) path = whole;
  if (path == find_bundled_model()) path.clear();
  for (const auto& [key, value] : {std::pair{kModel, info.content_hash + " " + info.name}, std::pair{kWorkspaceModelPath, path}}) {
    if (store->value(key).value_or("") == value) continue;
    if (const Status put = store->put_value(key, value); !put.ok()) note(LogLevel::kWarning, "model", put.message());
  }
}

Address Runtime::Impl::address_of_workspace() const {
  if (options.port != kPortOfWorkspace) return {options.host, options.port};
  const int port = std::atoi(store->value(kPort).value_or("").c_str());
  return {options.host, port > 0 && port <= 65535 ? port : kDefaultPort};
}

void Runtime::Impl::remember_port(int port) {
  if (options.port != kPortOfWorkspace) return;
  if (const Status put = store->put_value(kPort, std::to_string(port)); !put.ok()) note(LogLevel::kWarning, "http", put.message());
}

}  // namespace sluice
