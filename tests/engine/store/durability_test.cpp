// SPDX-License-Identifier: GPL-3.0-or-later
// Group commit, kill -9, locks, damaged and foreign files, a full disk.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "store/database.h"
#include "store_fixture.h"

namespace sluice {
namespace {

class DurabilityTest : public StoreTest {
 protected:
  std::string db_path() const { return options().folder + "/sluice.db"; }
};

TEST_F(DurabilityTest, ConcurrentWritersShareCommitsAndEachIsAcknowledged) {
  std::mutex mu;
  std::vector<StoreEvent> events;
  store->add_listener([&](const StoreEvent& e) {
    std::lock_guard<std::mutex> lock(mu);
    events.push_back(e);
  });
  const SessionId session = add_session();
  constexpr int kThreads = 8, kEach = 50;
  std::vector<std::thread> threads;
  std::atomic<int> refused{0};
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kEach; ++i) {
        const auto row = store->add_record(make_record(session)).value();
        EXPECT_TRUE(store->record(row.id).has_value());  // readable once acknowledged
        EXPECT_TRUE(store->add_feedback(label(row.id)).ok());
        if (!store->add_record(row).ok()) ++refused;  // one bad write in a group hurts no other
        LogRow log;
        log.text = "x";
        store->add_log(log);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(refused, kThreads * kEach);
  EXPECT_EQ(store->counts(session).records, kThreads * kEach);
  EXPECT_EQ(store->trainable(session, 1000).size(), static_cast<std::size_t>(kThreads * kEach));
  store.reset();
  std::set<std::string> announced;
  std::int64_t last = 0;
  for (const auto& e : events) {
    EXPECT_EQ(e.commit, ++last);
    if (e.kind == EventKind::kFeedback) announced.insert(e.text_id);
  }
  EXPECT_EQ(announced.size(), static_cast<std::size_t>(kThreads * kEach));
}

TEST_F(DurabilityTest, TimesNeverRunBackwards) {
  const auto a = add_record(SessionId());
  clock.now_us -= 1'000'000'000;
  const auto b = add_record(SessionId());
  EXPECT_GT(b.served_us, a.served_us);
  open();
  EXPECT_GT(add_record(SessionId()).served_us, b.served_us);
}

TEST_F(DurabilityTest, SecondOpenIsRefused) {
  const auto second = Store::open(options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.code(), Code::kConflict);
  EXPECT_NE(second.status().message().find(options().folder), std::string::npos);
  store.reset();
  EXPECT_TRUE(Store::open(options()).ok());
}

// A workspace of the first schema: its rows stay, its labels still train.
TEST_F(DurabilityTest, AnOlderWorkspaceIsBroughtUp) {
  store.reset();
  const std::string old = std::string(SLUICE_TEST_DATA) + "/workspace-schema1.sql";
  std::ifstream file(old);
  ASSERT_TRUE(file) << old;
  const std::string sql((std::istreambuf_iterator<char>(file)), {});
  std::filesystem::remove(db_path());
  std::filesystem::remove(db_path() + "-wal");
  std::filesystem::remove(db_path() + "-shm");
  {
    auto db = Database::open(db_path(), Database::Mode::kWrite).value();
    db->exec(sql);
    ASSERT_FALSE(db->failed()) << db->take_error().message();
  }
  clock.now_us = 1'700'000'010'000'000;
  open();
  const auto records = store->records({}, 0, 10);
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].completion_text, "It lets some through.");
  EXPECT_EQ(records[1].token_ids, (std::vector<std::int32_t>{4, 5}));
  EXPECT_EQ(records[0].fate, "");
  const auto rows = store->feedback_of(records[1].id);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].comment, "good");
  EXPECT_EQ(rows[0].shown_tokens, -1);
  EXPECT_EQ(store->trainable(records[1].session, 10).size(), 1u);
  EXPECT_EQ(store->add_feedback(label(records[0].id)).value().row.state, "waiting");
  EXPECT_TRUE(store->verify().empty());
}

TEST_F(DurabilityTest, NewerSchemaAndForeignFilesAreRefused) {
  store.reset();
  {
    auto db = Database::open(db_path(), Database::Mode::kWrite).value();
    db->exec("PRAGMA user_version=1000");
  }
  auto opened = Store::open(options());
  EXPECT_EQ(opened.code(), Code::kInvalidArgument);
  EXPECT_NE(opened.status().message().find("newer"), std::string::npos);
  std::filesystem::remove_all(options().folder);
  std::filesystem::create_directories(options().folder);
  {
    auto db = Database::open(db_path(), Database::Mode::kWrite).value();
    db->exec("CREATE TABLE t(x)");
  }
  EXPECT_EQ(Store::open(options()).code(), Code::kInvalidArgument);
}

TEST_F(DurabilityTest, DamagedFilesGiveAnError) {
  store.reset();
  std::filesystem::remove_all(options().folder);
  std::filesystem::create_directories(options().folder);
  std::ofstream(db_path()) << std::string(5000, 'x');
  EXPECT_EQ(Store::open(options()).code(), Code::kCorrupt);
  std::filesystem::remove(db_path());
  open();
  for (int i = 0; i < 200; ++i) add_record(SessionId());
  store.reset();
  {
    std::fstream file(db_path(), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(100);
    file << std::string(60'000, '\xff');
  }
  auto opened = Store::open(options());
  EXPECT_EQ(opened.code(), Code::kCorrupt) << code_name(opened.code());
}

TEST_F(DurabilityTest, UnusableFolderNamesIt) {
  StoreOptions o = options();
  o.folder = "/proc/nowhere/ws";
  const auto opened = Store::open(o);
  EXPECT_EQ(opened.code(), Code::kUnavailable);
  EXPECT_NE(opened.status().message().find(o.folder), std::string::npos);
  o.folder.clear();
  EXPECT_EQ(Store::open(o).code(), Code::kInvalidArgument);
}

TEST_F(DurabilityTest, FullDiskFailsWritesAndNothingElse) {
  store.reset();
  StoreOptions o = options();
  o.max_database_bytes = 1 << 20;
  store = Store::open(o).value();
  std::vector<RecordId> kept;
  Status failure;
  for (int i = 0; i < 10'000 && failure.ok(); ++i) {
    auto row = make_record(SessionId(), std::string(2000, 'a' + i % 26));
    auto stored = store->add_record(row);
    stored.ok() ? kept.push_back(row.id) : void(failure = stored.status());
  }
  EXPECT_EQ(failure.code(), Code::kUnavailable);
  EXPECT_NE(failure.message().find("full"), std::string::npos);
  EXPECT_EQ(store->health().code(), Code::kUnavailable);
  for (const auto& id : kept) EXPECT_TRUE(store->record(id).has_value());  // still readable
  EXPECT_FALSE(store->add_record(make_record(SessionId(), std::string(20'000, 'z'))).ok());
  EXPECT_TRUE(store->verify().empty());
  open();  // room again
  EXPECT_TRUE(store->add_record(make_record(SessionId())).ok());
  EXPECT_TRUE(store->health().ok());
  EXPECT_EQ(store->counts(SessionId()).records, static_cast<std::int64_t>(kept.size()) + 1);
}

// A child writes and tells what was acknowledged; killed at a fault point, nothing of that may be missing.
class KillTest : public StoreTest, public ::testing::WithParamInterface<const char*> {};

[[noreturn]] void child_writes(const StoreOptions& options, int out) {
  auto store = Store::open(options);
  if (!store.ok()) _exit(3);
  std::mutex mu;
  const auto tell = [&](const std::string& line) {
    std::lock_guard<std::mutex> lock(mu);
    const std::string text = line + "\n";
    if (write(out, text.data(), text.size()) < 0) _exit(4);
  };
  const auto writer = [&] {
    for (int i = 0; i < 200; ++i) {
      RecordRow row;
      row.id = RecordId::make();
      row.version = kBaseVersion;
      row.token_ids = {1};
      if (!(*store)->add_record(row).ok()) _exit(5);
      tell("told record " + row.id.text);
      FeedbackRow feedback;
      feedback.record = row.id;
      auto outcome = (*store)->add_feedback(feedback);
      if (!outcome.ok()) _exit(6);
      tell("told feedback " + std::to_string(outcome->row.id.value));
      VersionRow version;
      version.id = (*store)->reserve_version().value();
      if (!(*store)->add_version(version).ok()) _exit(7);
      DecisionWrite write;
      write.row.version = version.id;
      write.row.verdict = Verdict::kPromote;
      write.row.actor = "gate";
      write.serving = version.id;
      auto decision = (*store)->commit_decision(write);
      if (!decision.ok()) _exit(8);
      tell("told decision " + std::to_string(decision->decision().value));
    }
  };
  std::thread other(writer);
  writer();
  other.join();
  _exit(0);
}

TEST(KillChild, Writes) {
  const char* folder = std::getenv("SLUICE_KILL_CHILD");
  if (folder == nullptr) GTEST_SKIP() << "run by KillTest in a process of its own";
  StoreOptions options;
  options.folder = folder;
  child_writes(options, std::atoi(std::getenv("SLUICE_KILL_CHILD_OUT")));
}

TEST_P(KillTest, NothingAcknowledgedIsLost) {
  store.reset();
  StoreOptions o = options();
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  setenv("SLUICE_FAULT", GetParam(), 1);
  setenv("SLUICE_KILL_CHILD", o.folder.c_str(), 1);
  setenv("SLUICE_KILL_CHILD_OUT", std::to_string(pipe_ends[1]).c_str(), 1);
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "store_test", "--gtest_filter=KillChild.Writes", nullptr);
    _exit(9);
  }
  for (const char* name : {"SLUICE_FAULT", "SLUICE_KILL_CHILD", "SLUICE_KILL_CHILD_OUT"}) unsetenv(name);
  close(pipe_ends[1]);
  std::map<std::string, std::vector<std::string>> told;
  FILE* in = fdopen(pipe_ends[0], "r");
  char kind[32], id[64];
  char line[128];
  while (std::fgets(line, sizeof line, in) != nullptr) {
    if (std::sscanf(line, "told %31s %63s", kind, id) == 2) told[kind].push_back(id);
  }
  std::fclose(in);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "child ended with " << WEXITSTATUS(status);
  EXPECT_EQ(WTERMSIG(status), SIGKILL);

  open();
  for (const auto& record : told["record"]) EXPECT_TRUE(store->record({record}).has_value()) << record;
  for (const auto& feedback : told["feedback"]) {
    EXPECT_EQ(store->feedback_after(std::stoll(feedback) - 1, 1).at(0).id.value, std::stoll(feedback));
  }
  for (const auto& decision : told["decision"]) {
    EXPECT_TRUE(store->decision(DecisionId(std::stoll(decision))).has_value());
  }
  EXPECT_TRUE(store->verify().empty());
  EXPECT_EQ(store->version(store->serving_version())->state, VersionState::kServing);
  EXPECT_TRUE(store->add_record(make_record(SessionId())).ok());
}

INSTANTIATE_TEST_SUITE_P(FaultPoints, KillTest,
                         ::testing::Values("store.before_commit:1", "store.before_commit:40", "store.before_commit:333",
                                           "store.after_commit:1", "store.after_commit:41", "store.after_commit:334",
                                           "store.decision_committed:1", "store.decision_committed:57"));

}  // namespace
}  // namespace sluice
