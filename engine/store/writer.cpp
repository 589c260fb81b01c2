// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/writer.h"

#include <algorithm>
#include <exception>

#include "base/fault.h"
#include "store/columns.h"

namespace sluice {
namespace {

constexpr std::size_t kMaxWaitingLogs = 4096;

}  // namespace

Writer::Writer(std::unique_ptr<Database> db, const Clock& clock, std::int64_t last_us, Work housekeeping)
    : db_(std::move(db)), clock_(clock), last_us_(last_us), housekeeping_(std::move(housekeeping)) {
  thread_ = std::thread([this] { loop(); });
}

Writer::~Writer() {
  {
    MutexLock lock(mu_);
    stop_ = true;
    work_.notify_all();
  }
  thread_.join();
  db_->checkpoint();
}

Status Writer::run(Work work) {
  Item item;
  item.work = std::move(work);
  MutexLock lock(mu_);
  if (stop_) return unavailable("The workspace is being closed");
  queue_.push_back(&item);
  work_.notify_one();
  while (!item.done) item.ready.wait(mu_);
  return item.status;
}

void Writer::add_log(LogRow row) {
  MutexLock lock(mu_);
  if (logs_.size() >= kMaxWaitingLogs) {
    ++logs_lost_;
    return;
  }
  logs_.push_back(std::move(row));
  work_.notify_one();
}

void Writer::add_listener(StoreListener listener) {
  MutexLock lock(mu_);
  listeners_.push_back(std::move(listener));
}

bool Writer::take(std::vector<Item*>& items, std::vector<LogRow>& logs) {
  MutexLock lock(mu_);
  while (queue_.empty() && logs_.empty() && !stop_) work_.wait(mu_);
  while (!queue_.empty() && items.size() < kGroup) {
    items.push_back(queue_.front());
    queue_.pop_front();
  }
  while (!logs_.empty() && logs.size() < kGroup) {
    logs.push_back(std::move(logs_.front()));
    logs_.pop_front();
  }
  if (logs_lost_ > 0 && logs_.empty()) {
    LogRow lost;
    lost.level = "warning";
    lost.category = "store";
    lost.text = std::to_string(logs_lost_) + " log lines were dropped because the disk could not keep up";
    logs.push_back(std::move(lost));
    logs_lost_ = 0;
  }
  return !items.empty() || !logs.empty();
}

void Writer::loop() {
  while (true) {
    std::vector<Item*> items;
    std::vector<LogRow> logs;
    if (!take(items, logs)) return;  // stopped and drained
    commit_group(items, logs);
  }
}

// Times never run backwards, so that "earlier" in the database means "committed before".
std::int64_t Writer::next_time() {
  last_us_ = std::max(last_us_ + 1, clock_.wall_us());
  return last_us_;
}

Status Writer::write_item(Item& item, Tx& tx) {
  Database& db = tx.db;
  db.exec("SAVEPOINT item");
  if (db.failed()) return db.take_error();
  Status status;
  try {
    status = item.work(tx);
  } catch (const std::exception& e) {
    status = internal_error(std::string("A write failed: ") + e.what());
  }
  Status error = db.take_error();
  if (!error.ok()) status = error;  // what the database says goes before what was concluded from it
  if (!status.ok()) {
    tx.events.clear();
    if (error.code() == Code::kUnavailable || !db.in_transaction()) return status;
    db.exec("ROLLBACK TO item");
  }
  db.exec("RELEASE item");
  if (db.failed()) return db.take_error();
  return status;
}

// The status of the group: not ok when all of it was undone.
Status Writer::write_group(const std::vector<Item*>& items, const std::vector<LogRow>& logs,
                           std::vector<StoreEvent>& events) {
  Database& db = *db_;
  db.exec("BEGIN IMMEDIATE");
  if (db.failed()) return db.take_error();
  Tx first(db, next_time());
  Status kept = housekeeping_(first);
  if (db.failed()) return db.take_error();
  if (!kept.ok()) return kept;
  events = std::move(first.events);
  for (Item* item : items) {
    Tx tx(db, next_time());
    item->status = write_item(*item, tx);
    if (!db.in_transaction() || (!item->status.ok() && item->status.code() == Code::kUnavailable)) {
      return item->status.ok() ? unavailable("The database gave up the transaction") : item->status;
    }
    events.insert(events.end(), tx.events.begin(), tx.events.end());
    log_to_empty_ |= tx.forgets;
  }
  for (LogRow log : logs) {
    if (log.time_us == 0) log.time_us = last_us_;
    events.push_back({EventKind::kLog, insert(db, log), {}, 0});
  }
  if (db.failed()) return db.take_error();
  fault_point("store.before_commit");
  db.exec("COMMIT");
  if (db.failed()) return db.take_error();
  fault_point("store.after_commit");
  if (log_to_empty_ && db.checkpoint()) log_to_empty_ = false;  // else with the next commit, or at the end
  return Status();
}

void Writer::commit_group(const std::vector<Item*>& items, const std::vector<LogRow>& logs) {
  std::vector<StoreEvent> events;
  Status group = write_group(items, logs, events);
  if (!group.ok()) {
    events.clear();
    if (db_->in_transaction()) db_->exec("ROLLBACK");
    (void)db_->take_error();
  }
  std::vector<StoreListener> listeners;
  {
    MutexLock lock(mu_);
    for (Item* item : items) {
      if (!group.ok()) item->status = group;
      item->done = true;
      item->ready.notify_one();
    }
    if (!events.empty()) listeners = listeners_;
  }
  for (StoreEvent& event : events) {
    event.commit = ++announced_;
    for (const StoreListener& listener : listeners) listener(event);
  }
}

}  // namespace sluice
