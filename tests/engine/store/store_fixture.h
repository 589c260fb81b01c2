// SPDX-License-Identifier: GPL-3.0-or-later
// A workspace in a fresh folder, a clock that only moves when told, and rows to fill it with. One thread.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>

#include "store/store.h"

namespace sluice {

class ManualClock : public Clock {
 public:
  std::int64_t wall_us() const override { return now_us.load(); }
  SteadyTime steady() const override { return SteadyTime(std::chrono::microseconds(now_us.load())); }
  std::atomic<std::int64_t> now_us{1'700'000'000'000'000};
};

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "sluice_store_XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TempFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override { open(); }

  StoreOptions options() const {
    StoreOptions o;
    o.folder = folder.path + "/ws";
    o.clock = &clock;
    return o;
  }
  void open() {
    store.reset();
    auto opened = Store::open(options());
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    store = std::move(opened).value();
  }

  SessionId add_session() {
    SessionRow row;
    row.name = "s";
    return store->add_session(row).value();
  }
  RecordRow make_record(SessionId session, const std::string& prompt = "What is a valve?") {
    RecordRow row;
    row.id = RecordId::make();
    row.session = session;
    row.version = kBaseVersion;
    row.adapter_name = "base";
    row.stream = "user";  // a simulated one's: 120 s, and it holds
    row.holds = true;
    row.prompt_text = prompt;
    row.completion_text = "It lets some through.";
    row.prompt_ids = {1, 2, 3};
    row.token_ids = {4, 5};
    row.lp_full = {-0.5f, -1.25f};
    row.lp_mu = {-0.5f, -1.0f};
    row.finish_reason = "stop";
    return row;
  }
  RecordRow add_record(SessionId session) { return store->add_record(make_record(session)).value(); }
  FeedbackRow label(const RecordId& record, FeedbackKind kind = FeedbackKind::kAccept,
                    FeedbackSource source = FeedbackSource::kClient) {
    FeedbackRow row;
    row.record = record;
    row.kind = kind;
    row.source = source;
    return row;
  }
  std::string post(const FeedbackRow& row) { return store->add_feedback(row).value().row.state; }
  BatchId add_batch(SessionId session, std::vector<RecordId> records) {
    BatchRow batch;
    batch.session = session;
    batch.rewards.assign(records.size(), 1.0);
    batch.advantages.assign(records.size(), 0.5);
    batch.weights.assign(records.size(), 1.0);
    batch.records = std::move(records);
    return store->add_batch(batch, {}, {}).value();
  }
  VersionId add_version() {
    VersionRow row;
    row.id = store->reserve_version().value();
    row.name = "be-brief";
    row.parent = kBaseVersion;
    row.origin = "step";
    EXPECT_TRUE(store->add_version(row).ok());
    return row.id;
  }
  static DecisionWrite decide(VersionId version, Verdict verdict) {
    DecisionWrite write;
    write.row.version = version;
    write.row.verdict = verdict;
    write.row.kind = "gate";
    write.row.actor = "gate";
    return write;
  }
  static DecisionWrite promote(VersionId version) {
    DecisionWrite write = decide(version, Verdict::kPromote);
    write.row.scope = "full";
    write.serving = version;
    return write;
  }

  TempFolder folder;
  ManualClock clock;
  std::unique_ptr<Store> store;
};

}  // namespace sluice
