// SPDX-License-Identifier: GPL-3.0-or-later
// What stands behind Store. Internal to engine/store. Thread-safe: the writer and the pool guard themselves.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "store/columns.h"
#include "store/database.h"
#include "store/store.h"
#include "store/writer.h"

namespace sluice {

// Read-only connections, one per read in progress; a few idle ones are kept.
class ReaderPool {
 public:
  explicit ReaderPool(std::string path) : path_(std::move(path)) {}

  // Runs `read` on a connection. When that fails, the answer may be incomplete and health() says why.
  template <class F>
  auto read(F&& read) -> decltype(read(std::declval<Database&>())) {
    std::unique_ptr<Database> db = lease();
    decltype(read(*db)) out{};
    if (db == nullptr) return out;
    out = read(*db);
    give_back(std::move(db));
    return out;
  }

  Status health() const SLUICE_EXCLUDES(mu_);
  void note(const Status& status) SLUICE_EXCLUDES(mu_);

 private:
  std::unique_ptr<Database> lease() SLUICE_EXCLUDES(mu_);
  void give_back(std::unique_ptr<Database> db) SLUICE_EXCLUDES(mu_);

  const std::string path_;
  mutable Mutex mu_;
  std::vector<std::unique_ptr<Database>> idle_ SLUICE_GUARDED_BY(mu_);
  Status health_ SLUICE_GUARDED_BY(mu_);
};

class Store::Impl {
 public:
  Impl(StoreOptions options, int lock_fd, std::unique_ptr<Database> db, std::string salt, std::int64_t last_us);
  ~Impl();

  std::int64_t now() const { return clock.wall_us(); }
  Status write(Writer::Work work);

  const StoreOptions options;
  const Clock& clock;
  const std::string salt;
  ReaderPool readers;

 private:
  const int lock_fd_;
  std::unique_ptr<Writer> writer_;

  friend class Store;
};

// Parts of writes that more than one file needs; all run inside a transaction.

// Rows may go (write_redaction.cpp), their numbers never come back: readers, cursors and clients go by them. The number for
// the next row of a table whose rows may go; and, before one does, that its number is kept.
template <class Row>
std::int64_t next_number(Database& db) {
  const std::string table(Table<Row>::kName);
  return 1 + query_value(db, std::int64_t{0},
                         "SELECT max(coalesce((SELECT max(rowid) FROM " + table +
                             "), 0), coalesce((SELECT CAST(value AS INTEGER) FROM value WHERE name = 'last_" + table + "'), 0))");
}
template <class Row>
void keep_number(Database& db) {
  run(db, "INSERT INTO value VALUES (?, ?) ON CONFLICT(name) DO UPDATE SET value = excluded.value",
      "last_" + std::string(Table<Row>::kName), std::to_string(next_number<Row>(db) - 1));
}

// Records whose window passed without a label get the fate `no_event` (learning.md §2.2).
Status expire_unlabelled(Tx& tx);
// Appends to the hash chain; fills id, time and hashes of `row`.
void append_decision(Tx& tx, DecisionRow& row);

}  // namespace sluice
