// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/database.h"

#include <sqlite3.h>

#include <cmath>
#include <limits>

namespace sluice {
namespace {

Status status_of(int rc, const std::string& path, const std::string& detail) {
  switch (rc & 0xff) {
    case SQLITE_FULL:
      return unavailable("The disk that holds " + path + " is full: free some space, then try again");
    case SQLITE_IOERR:
    case SQLITE_NOMEM:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY:
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unavailable("Can't use the database " + path + ": " + detail + ". Check the disk and the file's permissions");
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return corrupt("The database " + path + " is damaged (" + detail +
                     "): restore it from a copy, or choose another workspace");
    case SQLITE_CONSTRAINT:
      return conflict("The database refused the row: " + detail);
    default:
      return internal_error("Database " + path + ": " + detail);
  }
}

}  // namespace

Statement::Statement(Database* db, std::string sql, sqlite3_stmt* stmt) : db_(db), sql_(std::move(sql)), stmt_(stmt) {}

Statement::Statement(Statement&& other) noexcept : db_(other.db_), sql_(std::move(other.sql_)), stmt_(other.stmt_) {
  other.stmt_ = nullptr;
}

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
  db_->idle_[sql_].push_back(stmt_);
}

void Statement::check(int rc) {
  if (rc != SQLITE_OK) db_->fail(rc);
}

void Statement::bind_null(int index) {
  if (stmt_ != nullptr) check(sqlite3_bind_null(stmt_, index + 1));
}
void Statement::bind_int(int index, std::int64_t value) {
  if (stmt_ != nullptr) check(sqlite3_bind_int64(stmt_, index + 1, value));
}
void Statement::bind_double(int index, double value) {
  if (stmt_ == nullptr) return;
  check(std::isnan(value) ? sqlite3_bind_null(stmt_, index + 1) : sqlite3_bind_double(stmt_, index + 1, value));
}
void Statement::bind_text(int index, std::string_view value) {
  if (stmt_ == nullptr) return;
  check(sqlite3_bind_text64(stmt_, index + 1, value.data() == nullptr ? "" : value.data(), value.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
}
void Statement::bind_blob(int index, const void* data, std::size_t size) {
  if (stmt_ == nullptr) return;
  check(sqlite3_bind_blob64(stmt_, index + 1, size == 0 ? "" : data, size, SQLITE_TRANSIENT));
}

bool Statement::step() {
  if (stmt_ == nullptr) return false;
  const int rc = sqlite3_step(stmt_);
  if (rc == SQLITE_ROW) return true;
  if (rc != SQLITE_DONE) db_->fail(rc);
  return false;
}

bool Statement::is_null(int column) const { return sqlite3_column_type(stmt_, column) == SQLITE_NULL; }
std::int64_t Statement::get_int(int column) const { return sqlite3_column_int64(stmt_, column); }
double Statement::get_double(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN() : sqlite3_column_double(stmt_, column);
}
std::string Statement::get_text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(stmt_, column));
  if (text == nullptr) return {};
  return std::string(text, static_cast<std::size_t>(sqlite3_column_bytes(stmt_, column)));
}
std::string_view Statement::get_blob(int column) const {
  const auto* data = static_cast<const char*>(sqlite3_column_blob(stmt_, column));
  if (data == nullptr) return {};
  return {data, static_cast<std::size_t>(sqlite3_column_bytes(stmt_, column))};
}

Result<std::unique_ptr<Database>> Database::open(const std::string& path, Mode mode, std::int64_t max_pages) {
  const int flags = mode == Mode::kWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  const int rc = sqlite3_open_v2(path.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  std::unique_ptr<Database> db(new Database(path, handle));
  if (rc != SQLITE_OK) {
    return status_of(rc, path, handle == nullptr ? "out of memory" : sqlite3_errmsg(handle));
  }
  sqlite3_extended_result_codes(handle, 1);
  sqlite3_busy_timeout(handle, 5000);
  db->exec("PRAGMA trusted_schema=OFF; PRAGMA foreign_keys=ON; PRAGMA mmap_size=0;");
  if (mode == Mode::kWrite) {
    db->exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA wal_autocheckpoint=1000; PRAGMA secure_delete=ON;");
    if (max_pages > 0) db->exec("PRAGMA max_page_count=" + std::to_string(max_pages) + ";");
  } else {
    // Only the writer may checkpoint: two connections doing so at once can damage the file in this SQLite version.
    sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    db->exec("PRAGMA wal_autocheckpoint=0; PRAGMA query_only=1;");
  }
  if (Status error = db->take_error(); !error.ok()) return error;
  return db;
}

Database::~Database() {
  for (auto& [sql, statements] : idle_) {
    for (sqlite3_stmt* stmt : statements) sqlite3_finalize(stmt);
  }
  sqlite3_close_v2(handle_);
}

Statement Database::prepare(std::string_view sql) {
  if (auto it = idle_.find(sql); it != idle_.end() && !it->second.empty()) {
    sqlite3_stmt* stmt = it->second.back();
    it->second.pop_back();
    return Statement(this, std::string(sql), stmt);
  }
  sqlite3_stmt* stmt = nullptr;
  const int rc = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT, &stmt,
                                    nullptr);
  if (rc != SQLITE_OK) fail(rc);
  return Statement(this, std::string(sql), stmt);
}

void Database::exec(const std::string& sql) {
  const int rc = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (rc != SQLITE_OK) fail(rc);
}

std::int64_t Database::last_rowid() const { return sqlite3_last_insert_rowid(handle_); }
std::int64_t Database::changes() const { return sqlite3_changes64(handle_); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(handle_) == 0; }

bool Database::checkpoint() {
  return sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr) == SQLITE_OK;
}

void Database::fail(int rc) {
  if (error_.ok()) error_ = status_of(rc, path_, sqlite3_errmsg(handle_));
}

Status Database::take_error() {
  Status error = std::move(error_);
  error_ = Status();
  return error;
}

}  // namespace sluice
