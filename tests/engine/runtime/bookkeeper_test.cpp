// SPDX-License-Identifier: GPL-3.0-or-later
// The curves of acceptance and rejection, over restarts and with bounded memory.
#include "runtime/bookkeeper.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/store/store_fixture.h"

namespace sluice {
namespace {

class BookkeeperTest : public StoreTest {
 protected:
  std::vector<double> points(SessionId session, const char* name) {
    std::vector<double> out;
    for (const MetricRow& m : store->metrics(session, name, 0, 1000)) out.push_back(m.value);
    return out;
  }
};

TEST_F(BookkeeperTest, TheFirstVerdictOfARequestMakesItsPoint) {
  const SessionId session = add_session();
  Bookkeeper books(*store);
  const RecordRow first = add_record(session), second = add_record(session);
  ASSERT_TRUE(books.catch_up().ok());
  EXPECT_TRUE(points(session, "accept").empty());
  post(label(second.id, FeedbackKind::kReject));
  post(label(first.id));
  ASSERT_TRUE(books.catch_up().ok());
  post(label(first.id, FeedbackKind::kReject, FeedbackSource::kHuman));
  ASSERT_TRUE(books.catch_up().ok());
  const auto rows = store->metrics(session, "accept", 0, 10);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].x, 2);
  EXPECT_EQ(rows[0].value, 0);
  EXPECT_EQ(rows[1].x, 1);
  EXPECT_EQ(rows[1].value, 1);
}

TEST_F(BookkeeperTest, ARestartWritesNoPointTwice) {
  const SessionId session = add_session();
  {
    Bookkeeper books(*store);
    post(label(add_record(session).id));
    ASSERT_TRUE(books.catch_up().ok());
  }
  open();
  Bookkeeper books(*store);
  ASSERT_TRUE(books.catch_up().ok());
  post(label(add_record(session).id, FeedbackKind::kReject));
  ASSERT_TRUE(books.catch_up().ok());
  EXPECT_EQ(points(session, "accept"), (std::vector<double>{1, 0}));
  EXPECT_EQ(store->metrics(session, "accept", 0, 10).back().x, 2);
}

TEST(KillChild, CatchesUp) {
  const char* folder = std::getenv("SLUICE_KILL_CHILD");
  if (folder == nullptr) GTEST_SKIP() << "run by KilledBookkeeper in a process of its own";
  StoreOptions options;
  options.folder = folder;
  const auto store = std::move(Store::open(options)).value();
  Bookkeeper books(*store);
  _exit(books.catch_up().ok() ? 0 : 1);
}

// A child writes the points and is killed on the way, at each pass of a fault point in turn until it comes through.
class KilledBookkeeper : public BookkeeperTest, public ::testing::WithParamInterface<const char*> {
 protected:
  bool killed(int pass) {
    store.reset();
    setenv("SLUICE_FAULT", (std::string(GetParam()) + ":" + std::to_string(pass)).c_str(), 1);
    setenv("SLUICE_KILL_CHILD", options().folder.c_str(), 1);
    const pid_t child = fork();
    if (child == 0) {
      execl("/proc/self/exe", "bookkeeper_test", "--gtest_filter=KillChild.CatchesUp", nullptr);
      _exit(9);
    }
    for (const char* name : {"SLUICE_FAULT", "SLUICE_KILL_CHILD"}) unsetenv(name);
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    open();
    return WIFSIGNALED(status);
  }
};

TEST_P(KilledBookkeeper, MakesEveryPointOnce) {
  const SessionId session = add_session();
  std::vector<double> verdicts;
  int pass = 0;
  do {
    ASSERT_LT(++pass, 50);
    post(label(add_record(session).id, pass % 2 ? FeedbackKind::kAccept : FeedbackKind::kReject));
    verdicts.push_back(pass % 2);
  } while (killed(pass));
  EXPECT_GT(pass, 1) << "was never killed";
  EXPECT_EQ(points(session, "accept"), verdicts);
}
INSTANTIATE_TEST_SUITE_P(Points, KilledBookkeeper,
                         ::testing::Values("store.before_commit", "metrics_inserted", "store.after_commit"));

TEST_F(BookkeeperTest, OldRequestsWithoutAVerdictAreForgotten) {
  const SessionId session = add_session();
  Bookkeeper books(*store, 2);
  std::vector<RecordRow> records;
  for (int i = 0; i < 3; ++i) records.push_back(add_record(session));
  ASSERT_TRUE(books.catch_up().ok());
  for (const RecordRow& record : records) post(label(record.id));
  ASSERT_TRUE(books.catch_up().ok());
  const auto rows = store->metrics(session, "accept", 0, 10);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].x, 2) << "numbers go on counting";
  EXPECT_EQ(rows[1].x, 3);
}

}  // namespace
}  // namespace sluice
