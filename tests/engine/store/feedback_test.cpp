// SPDX-License-Identifier: GPL-3.0-or-later
// States of feedback (serving.md §2.2) and what may train (learning.md §2.2).
#include "store_fixture.h"
#include "store/desk.h"

namespace sluice {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

class FeedbackTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    session = add_session();
  }
  std::vector<RecordId> trainable(int limit = 100) {
    std::vector<RecordId> ids;
    for (const auto& r : store->trainable(session, limit)) ids.push_back(r.record.id);
    return ids;
  }
  SessionId session;
};

TEST_F(FeedbackTest, WaitingSaysItsPlace) {
  const auto a = add_record(session), b = add_record(session);
  EXPECT_EQ(store->add_feedback(label(a.id)).value().queue_position, 1);
  const auto second = store->add_feedback(label(b.id, FeedbackKind::kReject)).value();
  EXPECT_EQ(second.queue_position, 2);
  EXPECT_EQ(second.row.state, "waiting");
  EXPECT_EQ(second.version, kBaseVersion);
  EXPECT_EQ(second.adapter_name, "base");
  const auto counts = store->counts(session);
  EXPECT_EQ(counts.waiting, 2);
  EXPECT_EQ(counts.accepted, 1);
  EXPECT_EQ(counts.rejected, 1);
}

TEST_F(FeedbackTest, UnknownRecordAndBadInput) {
  EXPECT_EQ(store->add_feedback(label({"rec_none"})).code(), Code::kNotFound);
  auto row = label(add_record(session).id, FeedbackKind::kScore);
  row.score = std::numeric_limits<double>::infinity();
  EXPECT_EQ(store->add_feedback(row).code(), Code::kInvalidArgument);
  row.choice = -1;
  EXPECT_EQ(store->add_feedback(row).code(), Code::kInvalidArgument);
}

TEST_F(FeedbackTest, KeyMakesItIdempotent) {
  auto row = label(add_record(session).id);
  row.key = "k1";
  const auto first = store->add_feedback(row).value();
  const auto again = store->add_feedback(row).value();
  EXPECT_EQ(again.row.state, "duplicate");
  EXPECT_EQ(again.row.id, first.row.id);
  row.comment = "other";
  EXPECT_EQ(store->add_feedback(row).code(), Code::kConflict);
  EXPECT_EQ(store->feedback_of(row.record).size(), 1u);
}

TEST_F(FeedbackTest, ResendWithoutKeyIsDuplicateButAChangeOfMindIsNot) {
  const auto row = label(add_record(session).id);
  const auto first = store->add_feedback(row).value();
  EXPECT_EQ(store->add_feedback(row).value().row.id, first.row.id);
  auto reject = row;
  reject.kind = FeedbackKind::kReject;
  EXPECT_EQ(post(reject), "waiting");
  EXPECT_EQ(post(row), "waiting");  // accept again: not a resend of the label that counts
  const auto rows = store->feedback_of(row.record);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].state, "replaced");
  EXPECT_EQ(rows[1].state, "replaced");
  EXPECT_EQ(rows[2].state, "waiting");
}

TEST_F(FeedbackTest, SourcesStandSideBySide) {
  const auto record = add_record(session);
  post(label(record.id, FeedbackKind::kAccept, FeedbackSource::kClient));
  post(label(record.id, FeedbackKind::kReject, FeedbackSource::kJudge));
  const auto rows = store->trainable(session, 10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].feedback.size(), 2u);
}

TEST_F(FeedbackTest, LateAfterTheWindow) {
  const auto record = add_record(session);
  clock.now_us += 121 * kSecond;
  EXPECT_EQ(post(label(record.id)), "late");
  EXPECT_EQ(store->record(record.id)->fate, "no_event");
  EXPECT_TRUE(trainable().empty());
  EXPECT_EQ(store->counts(session).dropped.at("no_event"), 1);
}

TEST_F(FeedbackTest, APersonMayLabelLater) {
  const auto record = add_record(session);
  clock.now_us += 3600 * kSecond;
  ASSERT_TRUE(store->put_value("any", "write").ok());
  EXPECT_EQ(store->record(record.id)->fate, "no_event");
  EXPECT_EQ(post(label(record.id, FeedbackKind::kReject, FeedbackSource::kHuman)), "waiting");
  EXPECT_EQ(trainable(), std::vector<RecordId>{record.id});
  clock.now_us += 86'400 * kSecond;
  EXPECT_EQ(post(label(add_record(session).id)), "waiting");
  EXPECT_EQ(post(label(record.id, FeedbackKind::kAccept, FeedbackSource::kHuman)), "late");
}

TEST_F(FeedbackTest, ConsumedOnceBatched) {
  const auto record = add_record(session);
  post(label(record.id));
  add_batch(session, {record.id});
  EXPECT_EQ(post(label(record.id, FeedbackKind::kReject)), "consumed");
  const auto rows = store->feedback_of(record.id);
  EXPECT_EQ(rows[0].state, "used");
  EXPECT_EQ(rows[1].state, "consumed");
  EXPECT_TRUE(trainable().empty());
}

TEST_F(FeedbackTest, HeldOutAndIgnored) {
  auto row = make_record(session);
  row.split = Split::kHeldOut;
  EXPECT_EQ(post(label(store->add_record(row)->id)), "held_out");
  row = make_record(session);
  row.purpose = Purpose::kGate;
  EXPECT_EQ(post(label(store->add_record(row)->id)), "ignored");
  row = make_record(session);
  row.complete = false;
  EXPECT_EQ(post(label(store->add_record(row)->id)), "ignored");
  row = make_record(session);
  row.token_ids.clear();
  EXPECT_EQ(post(label(store->add_record(row)->id)), "ignored");
  EXPECT_EQ(post(label(add_record(SessionId()).id)), "ignored");
  EXPECT_TRUE(trainable().empty());
  EXPECT_EQ(store->counts(session).dropped.at("held_out"), 1);
  EXPECT_EQ(store->counts(session).dropped.at("infra"), 1);
}

TEST_F(FeedbackTest, EndedSessionIsLate) {
  const auto record = add_record(session);
  ASSERT_TRUE(store->set_session_state(session, SessionState::kEnded).ok());
  EXPECT_EQ(post(label(record.id)), "late");
  EXPECT_EQ(store->set_session_state(session, SessionState::kRunning).code(), Code::kConflict);
  EXPECT_EQ(store->set_session_state(SessionId(99), SessionState::kEnded).code(), Code::kNotFound);
}

TEST_F(FeedbackTest, RetractFreesTheRecordUntilItIsUsed) {
  const auto record = add_record(session);
  const auto given = store->add_feedback(label(record.id)).value().row;
  EXPECT_TRUE(store->retract_feedback(given.id, false)->retracted);
  EXPECT_EQ(store->record(record.id)->fate, "");
  EXPECT_TRUE(trainable().empty());
  EXPECT_TRUE(store->retract_feedback(given.id, false).ok());  // twice is the same
  const auto again = store->add_feedback(label(record.id)).value().row;
  EXPECT_NE(again.id, given.id);
  add_batch(session, {record.id});
  EXPECT_EQ(store->retract_feedback(again.id, false).code(), Code::kConflict);
  EXPECT_TRUE(store->retract_feedback(again.id, true).ok());
  EXPECT_EQ(store->retract_feedback(FeedbackId(99), true).code(), Code::kNotFound);
}

TEST_F(FeedbackTest, WatermarkKeepsServingOrder) {
  std::vector<RecordRow> r;
  for (int i = 0; i < 4; ++i) r.push_back(add_record(session));
  post(label(r[0].id));
  post(label(r[2].id));
  post(label(r[3].id, FeedbackKind::kReject, FeedbackSource::kHuman));
  // r[1] is open: r[2] waits behind it, a person's label does not.
  EXPECT_EQ(trainable(), (std::vector<RecordId>{r[0].id, r[3].id}));
  EXPECT_EQ(trainable(1), std::vector<RecordId>{r[0].id});
  clock.now_us += 121 * kSecond;  // the window of r[1] is over, even before any write says so
  EXPECT_EQ(trainable(), (std::vector<RecordId>{r[0].id, r[2].id, r[3].id}));
  add_batch(session, {r[0].id, r[2].id});
  EXPECT_EQ(trainable(), std::vector<RecordId>{r[3].id});
}

TEST_F(FeedbackTest, ARequestOfTheWorkbenchHoldsNobodyUp) {
  auto row = make_record(session);
  row.route = kDeskRoute;
  const auto tried = store->add_record(row).value();
  const auto next = add_record(session);
  post(label(next.id));
  EXPECT_EQ(trainable(), std::vector<RecordId>{next.id});
  post(label(tried.id, FeedbackKind::kAccept, FeedbackSource::kHuman));
  EXPECT_EQ(trainable(), (std::vector<RecordId>{tried.id, next.id}));
}

TEST_F(FeedbackTest, ManyUnlabelledRecordsDoNotStarveTheTrainer) {
  for (int i = 0; i < 600; ++i) add_record(session);
  clock.now_us += 200 * kSecond;
  const auto record = add_record(session);
  post(label(record.id));
  EXPECT_EQ(trainable(), std::vector<RecordId>{record.id});
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(store->put_value("any", "write").ok());
  EXPECT_EQ(store->counts(session).dropped.at("no_event"), 600);
}

TEST_F(FeedbackTest, GateAndHeldOutRecordsNeverJoinABatch) {
  auto row = make_record(session);
  row.purpose = Purpose::kGate;
  const auto gate = store->add_record(row).value();
  const auto unlabelled = add_record(session);
  BatchRow batch;
  batch.session = session;
  batch.rewards = batch.advantages = batch.weights = {1.0};
  batch.records = {gate.id};
  EXPECT_EQ(store->add_batch(batch, {}, {}).code(), Code::kInvalidArgument);
  batch.records = {unlabelled.id};
  EXPECT_EQ(store->add_batch(batch, {}, {}).code(), Code::kConflict);
  batch.records = {{"rec_none"}};
  EXPECT_EQ(store->add_batch(batch, {}, {}).code(), Code::kNotFound);
  batch.records = {unlabelled.id, gate.id};
  EXPECT_EQ(store->add_batch(batch, {}, {}).code(), Code::kInvalidArgument);
  EXPECT_TRUE(store->batches(session, 0, 10).empty());  // a refused write leaves nothing
  EXPECT_EQ(store->record(unlabelled.id)->fate, "");
}

}  // namespace
}  // namespace sluice
