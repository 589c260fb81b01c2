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

// A client that asks and never says a word about the answer stalls nobody but its like, and those only while its timer runs.
TEST_F(FeedbackTest, AnUnlabelledRecordHoldsItsOwnStreamAlone) {
  const auto of = [&](const std::string& route, const std::string& stream) {
    auto row = make_record(session);
    row.route = route;
    row.stream = stream;
    row.holds = !stream.empty();
    return store->add_record(row).value().id;
  };
  of("chat", "");
  of("completions", "");
  of("fim", "");
  of("chat", "other");
  const RecordId persona = of("chat", "user"), chat = of("chat", ""), editor = of("completions", ""), named = of("chat", "other");
  for (const RecordId& id : {persona, chat, editor, named}) post(label(id));
  EXPECT_EQ(trainable(), (std::vector<RecordId>{persona, chat}));
  clock.now_us += 16 * kSecond;  // an editor's timer is over
  EXPECT_EQ(trainable(), (std::vector<RecordId>{persona, chat, editor}));
  clock.now_us += 105 * kSecond;
  EXPECT_EQ(trainable(), (std::vector<RecordId>{persona, chat, editor, named}));
  ASSERT_TRUE(store->put_value("any", "write").ok());
  EXPECT_EQ(store->counts(session).dropped.at("no_event"), 3);  // the chat turn may still get its verdict
  clock.now_us += 780 * kSecond;
  ASSERT_TRUE(store->put_value("any", "write").ok());
  EXPECT_EQ(store->counts(session).dropped.at("no_event"), 4);
}

TEST_F(FeedbackTest, WindowsByKindOfClientAndSource) {
  const auto state_after = [&](const std::string& route, const std::string& stream, FeedbackSource source, int seconds) {
    auto row = make_record(session);
    row.route = route;
    row.stream = stream;
    row.holds = !stream.empty();
    const RecordId id = store->add_record(row).value().id;
    clock.now_us += seconds * kSecond;
    return post(label(id, FeedbackKind::kAccept, source));
  };
  const struct {
    const char* route;
    const char* stream;
    FeedbackSource source;
    int window;
  } kCases[] = {{"completions", "", FeedbackSource::kClient, 15},  {"fim", "", FeedbackSource::kClient, 15},
                {"chat", "", FeedbackSource::kClient, 900},        {"chat", "user", FeedbackSource::kClient, 120},
                {"completions", "", FeedbackSource::kPersona, 120}, {"completions", "", FeedbackSource::kVerifier, 120},
                {"completions", "", FeedbackSource::kJudge, 300},  {"chat", "user", FeedbackSource::kHuman, 86'400},
                {kDeskRoute, "", FeedbackSource::kHuman, 86'400},  {"chat", "", FeedbackSource::kJudge, 900}};
  for (const auto& c : kCases) {
    EXPECT_EQ(state_after(c.route, c.stream, c.source, c.window - 1), "waiting") << c.route << c.window;
    EXPECT_EQ(state_after(c.route, c.stream, c.source, c.window + 1), "late") << c.route << c.window;
  }
}

// A name that only groups (reef's scenario) changes no window and holds nobody up.
TEST_F(FeedbackTest, ANameThatOnlyGroupsKeepsTheWindowOfTheRoute) {
  const auto of = [&](const std::string& route) {
    auto row = make_record(session);
    row.route = route;
    row.stream = "scenario";
    row.holds = false;
    return store->add_record(row).value();
  };
  const RecordRow open = of("chat"), chat = of("chat"), text = of("completions");
  EXPECT_FALSE(open.holds);
  EXPECT_EQ(chat.closes_us - chat.served_us, 900 * kSecond);
  EXPECT_EQ(text.closes_us - text.served_us, 15 * kSecond);
  clock.now_us += 14 * kSecond;
  EXPECT_EQ(post(label(text.id)), "waiting");
  clock.now_us += 2 * kSecond;
  EXPECT_EQ(post(label(of("completions").id)), "waiting");
  clock.now_us += 800 * kSecond;
  EXPECT_EQ(post(label(chat.id)), "waiting");
  EXPECT_EQ(trainable().size(), 3u) << "the open one before them holds nobody up";
}

TEST_F(FeedbackTest, FeedbackByText) {
  auto row = make_record(session);
  row.route = "completions";
  row.stream = "";
  row.prompt_digest = text_digest("int main");
  row.completion_text = "  return 0;\n}\n";
  const auto old = store->add_record(row).value();
  clock.now_us += kSecond;
  row.id = RecordId::make();
  const auto newest = store->add_record(row).value();
  const auto find = [&](const std::string& prompt, const std::string& shown, int seconds) {
    const auto found = store->record_by_text(text_digest(prompt), shown, seconds * kSecond);
    return found ? found->id : RecordId();
  };
  EXPECT_EQ(find("int main", "return 0;", 120), newest.id);
  EXPECT_EQ(find("int main", "return 1;", 120), RecordId());
  EXPECT_EQ(find("int main ", "return 0;", 120), RecordId());
  EXPECT_EQ(find("int main", "", 120), RecordId());
  clock.now_us += 121 * kSecond;
  EXPECT_EQ(find("int main", "return 0;", 120), RecordId());
  EXPECT_EQ(find("int main", "return 0;", 3600), newest.id);

  FeedbackRow by_text = label(newest.id);
  by_text.by_text = true;
  by_text.prompt_digest = row.prompt_digest;
  by_text.shown = "return 0;";
  by_text.shown_tokens = 1;
  by_text.key = "c1";
  EXPECT_EQ(post(by_text), "late");
  by_text.record = RecordId();  // found no more: still the same event
  EXPECT_EQ(post(by_text), "duplicate");
  by_text.kind = FeedbackKind::kReject;
  EXPECT_EQ(store->add_feedback(by_text).code(), Code::kConflict);
  by_text.key = "c2";
  EXPECT_EQ(post(by_text), "unmatched");
  const auto unmatched = store->unmatched_feedback(0, 10);
  ASSERT_EQ(unmatched.size(), 1u);
  EXPECT_EQ(unmatched[0].shown, "return 0;");
  EXPECT_FALSE(unmatched[0].record.valid());
  EXPECT_TRUE(store->verify().empty());
}

// The editor went on typing: what it had shown by then may still be accepted.
TEST_F(FeedbackTest, ACutOffRecordTrainsOnlyWhenALabelMatchesItsText) {
  auto row = make_record(session);
  row.route = "completions";
  row.stream = "";
  row.complete = false;
  row.finish_reason = "cancelled";
  const auto record = store->add_record(row).value();
  EXPECT_EQ(store->record(record.id)->fate, "infra");
  EXPECT_EQ(post(label(record.id)), "ignored");
  EXPECT_TRUE(trainable().empty());
  FeedbackRow by_text = label(record.id, FeedbackKind::kReject);
  by_text.by_text = true;
  by_text.shown = "It lets";
  const auto stored = store->add_feedback(by_text).value().row;
  EXPECT_EQ(stored.state, "waiting");
  EXPECT_EQ(trainable(), std::vector<RecordId>{record.id});
  ASSERT_TRUE(store->retract_feedback(stored.id, false).ok());
  EXPECT_EQ(store->record(record.id)->fate, "infra");
  EXPECT_TRUE(trainable().empty());
}

TEST_F(FeedbackTest, OtherChoicesAndSideTurnsNeverTrain) {
  auto row = label(add_record(session).id);
  row.choice = 1;
  EXPECT_EQ(post(row), "ignored");
  auto side = make_record(session);
  side.conversation = "c";
  side.turn = "side";
  const auto record = store->add_record(side).value();
  EXPECT_EQ(store->record(record.id)->fate, "side");
  EXPECT_EQ(post(label(record.id)), "ignored");
  EXPECT_TRUE(trainable().empty());
}

TEST_F(FeedbackTest, ManyAtOnceStandOrFallAlone) {
  const auto a = add_record(session), b = add_record(session);
  auto bad = label(b.id, FeedbackKind::kScore);
  bad.score = std::numeric_limits<double>::quiet_NaN();
  const auto results = store->add_feedback(std::vector<FeedbackRow>{label(a.id), label({"rec_none"}), bad, label(b.id), label(a.id)}).value();
  ASSERT_EQ(results.size(), 5u);
  EXPECT_EQ(results[0]->row.state, "waiting");
  EXPECT_EQ(results[1].code(), Code::kNotFound);
  EXPECT_EQ(results[2].code(), Code::kInvalidArgument);
  EXPECT_EQ(results[3]->row.state, "waiting");
  EXPECT_EQ(results[3]->queue_position, 2);
  EXPECT_EQ(results[4]->row.state, "duplicate");
  EXPECT_EQ(store->counts(session).feedback, 2);
}

TEST_F(FeedbackTest, NextStateOfAConversation) {
  const auto turn = [&](const std::string& kind, bool done = false) {
    auto row = make_record(session);
    row.conversation = "c";
    row.turn = kind;
    row.conversation_done = done;
    return store->add_record(row).value().id;
  };
  const auto next = [&](const std::string& text) { return store->add_next_state(session, "c", text).value(); };
  EXPECT_FALSE(next("early"));
  const RecordId first = turn("main");
  turn("side");
  EXPECT_FALSE(store->add_next_state(session, "d", "other").value());
  EXPECT_FALSE(store->add_next_state(session, "", "none").value());
  EXPECT_TRUE(next("thanks"));
  EXPECT_FALSE(next("again"));
  EXPECT_EQ(store->record(first)->next_state, "thanks");
  const RecordId second = turn("main");
  clock.now_us += 1801 * kSecond;
  EXPECT_FALSE(next("an hour later"));
  EXPECT_EQ(store->record(second)->next_state, "");
  turn("main", true);
  EXPECT_FALSE(next("a new one"));
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
