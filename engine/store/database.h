// SPDX-License-Identifier: GPL-3.0-or-later
// One SQLite connection with a statement cache. Internal to engine/store. A Database and its Statements belong to one thread
// at a time.
//
// Errors stick: the first failure since take_error() is kept, and every later call on the connection still runs but changes
// nothing about it. Callers run a few statements and look once; the writer looks after every item and rolls it back.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace sluice {

class Database;

// A leased, prepared statement; reset, cleared and given back to the cache when it goes. Parameters and columns from 0.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  void bind_null(int index);
  void bind_int(int index, std::int64_t value);
  void bind_double(int index, double value);  // NaN is stored as NULL
  void bind_text(int index, std::string_view value);
  void bind_blob(int index, const void* data, std::size_t size);

  // True when a row is ready. False at the end and on an error, which goes to the database.
  bool step();

  bool is_null(int column) const;
  std::int64_t get_int(int column) const;
  double get_double(int column) const;  // NULL reads as NaN
  std::string get_text(int column) const;
  std::string_view get_blob(int column) const;  // valid until the next step

 private:
  friend class Database;
  Statement(Database* db, std::string sql, sqlite3_stmt* stmt);

  void check(int rc);

  Database* db_;
  std::string sql_;
  sqlite3_stmt* stmt_;  // null when preparing failed: every call is then a no-op
};

class Database {
 public:
  enum class Mode { kWrite, kRead };

  // kCorrupt: not a database or damaged. kUnavailable: can't be opened. max_pages 0 = no limit.
  static Result<std::unique_ptr<Database>> open(const std::string& path, Mode mode, std::int64_t max_pages = 0);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  Statement prepare(std::string_view sql);
  void exec(const std::string& sql);  // any number of statements, no parameters
  std::int64_t last_rowid() const;
  std::int64_t changes() const;
  bool in_transaction() const;
  // Moves the log into the file and empties it; false where a reader is still at it after the busy time.
  bool checkpoint();

  bool failed() const { return !error_.ok(); }
  Status take_error();

 private:
  friend class Statement;
  Database(std::string path, sqlite3* handle) : path_(std::move(path)), handle_(handle) {}
  void fail(int rc);

  std::string path_;
  sqlite3* handle_;
  std::map<std::string, std::vector<sqlite3_stmt*>, std::less<>> idle_;
  Status error_;
};

}  // namespace sluice
