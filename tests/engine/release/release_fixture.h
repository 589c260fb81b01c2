// SPDX-License-Identifier: GPL-3.0-or-later
// A workspace in a temporary folder, an AdapterHost that can be told to fail, and candidates with files.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/guarded.h"
#include "base/sha256.h"
#include "release/registry.h"
#include "store/store.h"
#include "support/temp_folder.h"

namespace sluice::testing {

// Counts holds like AdapterSlots and refuses to publish what is not loaded.
class FakeHost final : public AdapterHost {
 public:
  explicit FakeHost(std::function<std::string(VersionId)> folder_of) : folder_of_(std::move(folder_of)) {}

  Status prepare(VersionId version, const std::string& content_hash) override {
    MutexLock lock(mu_);
    if (unloadable_.contains(version)) return corrupt("v" + std::to_string(version.value) + " does not bind");
    if (version != kBaseVersion) {
      SLUICE_ASSIGN_OR_RETURN(const std::string hash, sha256_file(folder_of_(version) + "/adapter_model.safetensors"));
      if (!content_hash.empty() && hash != content_hash) return corrupt("v" + std::to_string(version.value) + " is damaged");
    }
    ++holds_[version];
    return {};
  }
  void release(VersionId version) override {
    MutexLock lock(mu_);
    EXPECT_GT(holds_[version], 0) << "released more often than prepared: " << version.value;
    --holds_[version];
  }
  Result<std::int64_t> publish(const CommittedDecision& decision) override {
    MutexLock lock(mu_);
    if (fail_next_publish_) {
      fail_next_publish_ = false;
      return unavailable("no memory");
    }
    if (decision.version() != kBaseVersion && holds_[decision.version()] <= 0) return not_found("not loaded");
    serving_ = decision.version();
    published_.push_back(decision.decision());
    return 7;
  }
  VersionId serving() const override {
    MutexLock lock(mu_);
    return serving_;
  }

  void set_unloadable(VersionId version) {
    MutexLock lock(mu_);
    unloadable_.insert(version);
  }
  void fail_next_publish() {
    MutexLock lock(mu_);
    fail_next_publish_ = true;
  }
  int holds(VersionId version) const {
    MutexLock lock(mu_);
    const auto it = holds_.find(version);
    return it == holds_.end() ? 0 : it->second;
  }
  std::vector<DecisionId> published() const {
    MutexLock lock(mu_);
    return published_;
  }

 private:
  const std::function<std::string(VersionId)> folder_of_;
  mutable Mutex mu_;
  std::map<VersionId, int> holds_ SLUICE_GUARDED_BY(mu_);
  std::set<VersionId> unloadable_ SLUICE_GUARDED_BY(mu_);
  std::vector<DecisionId> published_ SLUICE_GUARDED_BY(mu_);
  VersionId serving_ SLUICE_GUARDED_BY(mu_) = kBaseVersion;
  bool fail_next_publish_ SLUICE_GUARDED_BY(mu_) = false;
};

// Store + host + registry; reopen() is a crash and a restart.
class Workspace {
 public:
  explicit Workspace(RegistryOptions options = {}) : options_(std::move(options)) {
    EXPECT_TRUE(reopen().ok());
  }

  Result<StartReport> reopen() {
    registry.reset();
    host.reset();
    store.reset();
    StoreOptions store_options;
    store_options.folder = folder.path();
    auto opened = Store::open(store_options);
    EXPECT_TRUE(opened.ok()) << opened.status().message();
    store = std::move(opened).value();
    host = std::make_unique<FakeHost>([this](VersionId version) { return store->adapter_folder(version); });
    registry = std::make_unique<Registry>(*store, *host, options_);
    return registry->start();
  }

  // A candidate with a file of its own; `content` makes its bytes.
  VersionId add_candidate(VersionId parent = kBaseVersion, std::int64_t head_step = 0, const std::string& content = "") {
    const VersionId id = store->reserve_version().value();
    const std::string path = store->adapter_folder(id);
    std::filesystem::create_directories(path);
    const std::string bytes = content.empty() ? "weights of " + std::to_string(id.value) : content;
    std::ofstream(path + "/adapter_model.safetensors", std::ios::binary) << bytes;
    VersionRow row;
    row.id = id;
    row.name = "be-brief";
    row.parent = parent;
    row.origin = "step";
    row.head_step = head_step;
    row.content_hash = sha256(bytes);
    row.bytes = static_cast<std::int64_t>(bytes.size());
    row.rank = 4;
    EXPECT_TRUE(store->add_version(row).ok());
    return id;
  }

  void damage(VersionId id) {
    std::ofstream(store->adapter_folder(id) + "/adapter_model.safetensors", std::ios::binary) << "other bytes";
  }

  void damage_if_there(VersionId id) {
    if (id != kBaseVersion && std::filesystem::exists(store->adapter_folder(id))) damage(id);
  }

  GateVerdict verdict(VersionId version, Verdict what) const {
    GateVerdict out;
    out.row.version = version;
    out.row.incumbent = registry->serving();
    out.row.anchor = registry->anchor();
    out.row.verdict = what;
    out.row.scope = what == Verdict::kPromote ? "full" : "";
    out.row.reason_code = what == Verdict::kPromote ? "better" : what == Verdict::kReject ? "not_better" : "inconclusive";
    out.row.reason_text = "a sentence";
    out.row.stage = "shadow";
    return out;
  }

  // Candidate -> evaluating -> verdict, as the gate does it.
  Result<DecisionRow> judge(VersionId version, Verdict what) {
    if (const Status begun = registry->begin_evaluation(version); !begun.ok()) return begun;
    return registry->apply(verdict(version, what));
  }
  VersionId promoted() {
    const VersionId id = add_candidate(registry->serving());
    EXPECT_TRUE(judge(id, Verdict::kPromote).ok());
    return id;
  }
  Result<DecisionRow> act(ManualAction action, VersionId version = kBaseVersion) {
    return registry->act({action, version, "operator", "because of a test", SessionId(), std::nullopt});
  }
  VersionState state(VersionId version) const { return store->version(version)->state; }

  TempFolder folder;
  RegistryOptions options_;
  std::unique_ptr<Store> store;
  std::unique_ptr<FakeHost> host;
  std::unique_ptr<Registry> registry;
};

}  // namespace sluice::testing
