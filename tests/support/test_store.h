// SPDX-License-Identifier: GPL-3.0-or-later
// A real Store in a folder of its own, and the shortest honest way to a decision: a version row, then a promote row by an
// operator. Header only; link sluice_store. Thread-safe as the Store is.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "store/store.h"
#include "support/temp_folder.h"

namespace sluice::testing {

class TestStore {
 public:
  TestStore() {
    Result<std::unique_ptr<Store>> opened = Store::open({folder_.path() + "/workspace"});
    if (!opened.ok()) {
      ADD_FAILURE() << opened.status().message();
      std::abort();
    }
    store_ = std::move(opened).value();
  }

  Store& operator*() { return *store_; }
  Store* operator->() { return store_.get(); }

  // A candidate "test@N".
  VersionId new_version() {
    const Result<VersionId> id = store_->reserve_version();
    EXPECT_TRUE(id.ok());
    VersionRow row;
    row.id = id.ok() ? *id : VersionId();
    row.name = "test";
    row.parent = kBaseVersion;
    row.origin = "import";
    row.content_hash = std::string(64, 'a');
    const Status added = store_->add_version(row);
    EXPECT_TRUE(added.ok()) << added.message();
    return row.id;
  }

  // An operator's promotion; of a version that served before, a roll-back.
  CommittedDecision promote(VersionId version) {
    DecisionWrite write;
    write.row.version = version;
    write.row.incumbent = store_->serving_version();
    write.row.verdict = Verdict::kPromote;
    write.row.scope = "full";
    write.row.kind = "manual";
    write.row.actor = "operator";
    write.row.reason_code = "manual";
    write.serving = version;
    Result<CommittedDecision> decision = store_->commit_decision(std::move(write));
    if (!decision.ok()) {
      ADD_FAILURE() << decision.status().message();
      std::abort();
    }
    return *decision;
  }

  // "test@N" or "base".
  static std::string name_of(VersionId version) {
    return version == kBaseVersion ? "base" : "test@" + std::to_string(version.value);
  }

 private:
  TempFolder folder_;
  std::unique_ptr<Store> store_;
};

}  // namespace sluice::testing
