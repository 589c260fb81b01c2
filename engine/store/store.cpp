// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>

#include "store/migrations.h"
#include "store/store_impl.h"

namespace sluice {
namespace {

constexpr std::size_t kIdleReaders = 8;
constexpr std::int64_t kPageBytes = 4096;

Status make_folders(const std::string& folder) {
  if (folder.empty()) return invalid_argument("The workspace needs a folder: none was given");
  for (const char* sub : {"", "/adapters", "/exports"}) {
    std::error_code error;
    std::filesystem::create_directories(folder + sub, error);
    if (error) {
      return unavailable("Can't make the workspace folder " + folder + sub + ": " + error.message() +
                         ". Choose a folder that you may write to");
    }
  }
  return Status();
}

// The descriptor that holds the lock; the kernel lets go of it when the process ends, however it ends.
Result<int> take_lock(const std::string& folder) {
  const std::string path = folder + "/lock";
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    return unavailable("Can't open " + path + ": " + std::strerror(errno) + ". Choose a folder that you may write to");
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    ::close(fd);
    return conflict("The workspace " + folder +
                    " is in use by another running Sluice: close that one, or choose another workspace");
  }
  return fd;
}

std::string random_salt() {
  std::random_device device;
  std::string salt;
  for (int i = 0; i < 32; ++i) salt += "0123456789abcdef"[device() & 15u];
  return salt;
}

// Version 0 in service, with the decision that says so; the salt of the split.
Status fill_new_workspace(Database& db, std::int64_t now_us) {
  db.exec("BEGIN IMMEDIATE");
  run(db, "INSERT INTO value VALUES ('split_salt', ?)", random_salt());
  run(db, "INSERT INTO value VALUES ('last_version', '0')");
  VersionRow base;
  base.id = kBaseVersion;
  base.name = "base";
  base.state = VersionState::kServing;
  base.origin = "base";
  base.created_us = base.state_us = now_us;
  base.proven = true;
  insert(db, base);
  Tx tx(db, now_us);
  DecisionRow row;
  row.version = row.incumbent = row.anchor = kBaseVersion;
  row.verdict = Verdict::kPromote;
  row.scope = "full";
  row.kind = "startup";
  row.automatic = true;
  row.actor = "store";
  row.reason_code = "new_workspace";
  row.reason_text = "The base serves because the workspace is new.";
  row.stage = "manual";
  append_decision(tx, row);
  run(db, "INSERT INTO serving(version, previous, decision) VALUES (0, 0, ?)", row.id);
  if (!db.failed()) db.exec("COMMIT");
  Status error = db.take_error();
  if (!error.ok() && db.in_transaction()) db.exec("ROLLBACK");
  return error;
}

std::int64_t newest_time(Database& db) {
  std::int64_t newest = 0;
  for (const char* sql : {"SELECT max(served_us) FROM record", "SELECT time_us FROM feedback ORDER BY id DESC LIMIT 1",
                          "SELECT time_us FROM decision ORDER BY id DESC LIMIT 1",
                          "SELECT time_us FROM log ORDER BY seq DESC LIMIT 1"}) {
    newest = std::max(newest, query_value(db, std::int64_t{0}, sql));
  }
  return newest;
}

}  // namespace

Status ReaderPool::health() const {
  MutexLock lock(mu_);
  return health_;
}

void ReaderPool::note(const Status& status) {
  MutexLock lock(mu_);
  health_ = status;
}

std::unique_ptr<Database> ReaderPool::lease() {
  {
    MutexLock lock(mu_);
    if (!idle_.empty()) {
      std::unique_ptr<Database> db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
  }
  auto db = Database::open(path_, Database::Mode::kRead);
  if (db.ok()) return std::move(db).value();
  note(db.status());
  return nullptr;
}

void ReaderPool::give_back(std::unique_ptr<Database> db) {
  const Status error = db->take_error();
  MutexLock lock(mu_);
  if (!error.ok()) {
    health_ = error;
    return;  // a connection that failed is not used again
  }
  if (idle_.size() < kIdleReaders) idle_.push_back(std::move(db));
}

Store::Impl::Impl(StoreOptions opts, int lock_fd, std::unique_ptr<Database> db, std::string split_salt,
                  std::int64_t last_us)
    : options(std::move(opts)),
      clock(options.clock == nullptr ? Clock::system() : *options.clock),
      salt(std::move(split_salt)),
      readers(options.folder + "/sluice.db"),
      lock_fd_(lock_fd) {
  writer_ = std::make_unique<Writer>(std::move(db), clock, last_us, expire_unlabelled);
}

Store::Impl::~Impl() {
  writer_.reset();
  ::close(lock_fd_);
}

Status Store::Impl::write(Writer::Work work) {
  Status status = writer_->run(std::move(work));
  if (status.ok()) {
    readers.note(Status());
  } else if (status.code() == Code::kUnavailable || status.code() == Code::kCorrupt) {
    readers.note(status);
  }
  return status;
}

Result<std::unique_ptr<Store>> Store::open(const StoreOptions& options) {
  SLUICE_RETURN_IF_ERROR(make_folders(options.folder));
  SLUICE_ASSIGN_OR_RETURN(const int lock_fd, take_lock(options.folder));
  const auto give_up = [lock_fd](Status status) {
    ::close(lock_fd);
    return status;
  };
  const std::string path = options.folder + "/sluice.db";
  auto opened = Database::open(path, Database::Mode::kWrite, options.max_database_bytes / kPageBytes);
  if (!opened.ok()) return give_up(opened.status());
  std::unique_ptr<Database> db = std::move(opened).value();
  if (Status s = migrate(*db, path); !s.ok()) return give_up(s);
  const Clock& clock = options.clock == nullptr ? Clock::system() : *options.clock;
  std::string salt = query_value(*db, std::string(), "SELECT value FROM value WHERE name='split_salt'");
  if (salt.empty() && !db->failed()) {
    if (Status s = fill_new_workspace(*db, clock.wall_us()); !s.ok()) return give_up(s);
    salt = query_value(*db, std::string(), "SELECT value FROM value WHERE name='split_salt'");
  }
  const std::int64_t last_us = newest_time(*db);
  if (Status s = db->take_error(); !s.ok()) return give_up(s);
  return std::unique_ptr<Store>(
      new Store(std::make_unique<Impl>(options, lock_fd, std::move(db), std::move(salt), last_us)));
}

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() = default;

const std::string& Store::folder() const { return impl_->options.folder; }
std::string Store::adapter_folder(VersionId version) const {
  return folder() + "/adapters/" + std::to_string(version.value);
}
const std::string& Store::split_salt() const { return impl_->salt; }
void Store::add_listener(StoreListener listener) { impl_->writer_->add_listener(std::move(listener)); }
void Store::add_log(LogRow row) { impl_->writer_->add_log(std::move(row)); }
Status Store::health() const { return impl_->readers.health(); }

const char* version_state_name(VersionState state) {
  return EnumNames<VersionState>::kNames[static_cast<std::size_t>(state)];
}
const char* verdict_name(Verdict verdict) { return EnumNames<Verdict>::kNames[static_cast<std::size_t>(verdict)]; }
const char* feedback_kind_name(FeedbackKind kind) {
  return EnumNames<FeedbackKind>::kNames[static_cast<std::size_t>(kind)];
}
const char* feedback_source_name(FeedbackSource source) {
  return EnumNames<FeedbackSource>::kNames[static_cast<std::size_t>(source)];
}
const char* session_state_name(SessionState state) {
  return EnumNames<SessionState>::kNames[static_cast<std::size_t>(state)];
}

}  // namespace sluice
