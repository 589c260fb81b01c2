// SPDX-License-Identifier: GPL-3.0-or-later
// The one thread that writes. Group commit: what waits (at most 64 writes) shares one transaction and one sync. Internal to
// engine/store. Thread-safe: any thread may call run() and add_log().
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/result.h"
#include "store/database.h"
#include "store/events.h"
#include "store/rows.h"

namespace sluice {

// What one write sees: the connection, the time of its commit, and where it says what it changed.
class Tx {
 public:
  Tx(Database& db, std::int64_t now_us) : db(db), now_us(now_us) {}

  void announce(EventKind kind, std::int64_t id, std::string text_id = {}) {
    events.push_back({kind, id, std::move(text_id), 0});
  }

  Database& db;
  const std::int64_t now_us;
  std::vector<StoreEvent> events;
  bool forgets = false;  // nothing of what this write removes may stay in the log, either
};

class Writer {
 public:
  using Work = std::function<Status(Tx&)>;
  static constexpr std::size_t kGroup = 64;

  // `housekeeping` runs inside every transaction, before its writes. `last_us`: no commit gets an earlier time.
  Writer(std::unique_ptr<Database> db, const Clock& clock, std::int64_t last_us, Work housekeeping);
  ~Writer();  // commits what waits, moves the log into the file

  // Blocks until the work is committed. A failed Status undoes this work alone; kUnavailable (disk) fails the whole group.
  Status run(Work work) SLUICE_EXCLUDES(mu_);
  void add_log(LogRow row) SLUICE_EXCLUDES(mu_);
  void add_listener(StoreListener listener) SLUICE_EXCLUDES(mu_);

 private:
  struct Item {
    Work work;
    Status status;
    bool done = false;
    CondVar ready;
  };

  void loop() SLUICE_EXCLUDES(mu_);
  bool take(std::vector<Item*>& items, std::vector<LogRow>& logs) SLUICE_EXCLUDES(mu_);
  void commit_group(const std::vector<Item*>& items, const std::vector<LogRow>& logs);
  Status write_group(const std::vector<Item*>& items, const std::vector<LogRow>& logs, std::vector<StoreEvent>& events);
  Status write_item(Item& item, Tx& tx);
  std::int64_t next_time();

  std::unique_ptr<Database> db_;  // writer thread, once it runs
  const Clock& clock_;
  std::int64_t last_us_;          // writer thread
  std::int64_t announced_ = 0;    // writer thread
  bool log_to_empty_ = false;     // writer thread: what was to be forgotten may still stand in the log
  const Work housekeeping_;

  Mutex mu_;
  CondVar work_;
  std::deque<Item*> queue_ SLUICE_GUARDED_BY(mu_);
  std::deque<LogRow> logs_ SLUICE_GUARDED_BY(mu_);
  std::int64_t logs_lost_ SLUICE_GUARDED_BY(mu_) = 0;
  std::vector<StoreListener> listeners_ SLUICE_GUARDED_BY(mu_);
  bool stop_ SLUICE_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace sluice
