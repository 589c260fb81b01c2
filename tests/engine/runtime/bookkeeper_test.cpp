// SPDX-License-Identifier: GPL-3.0-or-later
// The curves of acceptance and rejection, over restarts and with bounded memory.
#include "runtime/bookkeeper.h"

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
