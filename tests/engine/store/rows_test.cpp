// SPDX-License-Identifier: GPL-3.0-or-later
// Every row comes back as it was written, also after the workspace was closed and opened again.
#include <cmath>
#include <limits>

#include "store/columns.h"
#include "store_fixture.h"

namespace sluice {
namespace {

template <class T>
void expect_same(const char* name, const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(a)) {
      EXPECT_TRUE(std::isnan(b)) << name;
      return;
    }
  }
  EXPECT_TRUE(a == b) << name;
}

template <class Row>
void expect_equal(const Row& a, const Row& b) {
  std::vector<std::function<void()>> checks;
  Table<Row>::each(a, [&](const char* name, const auto& field) {
    using T = std::decay_t<decltype(field)>;
    const T* left = &field;
    Table<Row>::each(b, [&, left](const char* other, const auto& right) {
      if constexpr (std::is_same_v<T, std::decay_t<decltype(right)>>) {
        if (std::string_view(name) == other) expect_same(name, *left, right);
      }
    });
  });
}

// Gives every field a value of its own that is not its default.
struct Filler {
  int k = 1;
  void operator()(const char*, std::int64_t& v) { v = 1000 + k++; }
  void operator()(const char*, int& v) { v = 100 + k++; }
  void operator()(const char*, std::uint64_t& v) { v = std::numeric_limits<std::uint64_t>::max() - static_cast<std::uint64_t>(k++); }
  void operator()(const char*, bool& v) { v = true; }
  void operator()(const char*, double& v) { v = k++ + 0.1; }
  void operator()(const char*, float& v) { v = static_cast<float>(k++) + 0.1f; }
  void operator()(const char* name, std::string& v) { v = std::string(name) + " é 中 \"'% " + std::to_string(k++); }
  void operator()(const char*, RecordId& v) { v.text = "rec_" + std::to_string(k++); }
  void operator()(const char*, std::vector<RecordId>& v) { v = {{"rec_a"}, {"rec_b"}}; }
  template <class Tag>
  void operator()(const char*, Id<Tag>&) {}  // references to other rows: set by the test
  template <class E>
    requires std::is_enum_v<E>
  void operator()(const char*, E& v) { v = static_cast<E>(1); }
  template <class T>
    requires std::is_arithmetic_v<T>
  void operator()(const char*, std::vector<T>& v) { v = {T(1.5), T(-2.25), T(3)}; }
};

template <class Row>
Row filled() {
  Row row;
  Filler filler;
  Table<Row>::each(row, filler);
  return row;
}

class RowsTest : public StoreTest {};

TEST_F(RowsTest, SessionRecordFeedback) {
  auto session = filled<SessionRow>();
  session.id = store->add_session(session).value();
  auto record = filled<RecordRow>();
  record.session = session.id;
  record.version = kBaseVersion;
  record.purpose = Purpose::kProbe;
  record = store->add_record(record).value();
  auto feedback = filled<FeedbackRow>();
  feedback.record = record.id;
  feedback = store->add_feedback(feedback).value().row;
  EXPECT_GT(feedback.time_us, record.served_us);  // commits never share a time
  open();
  expect_equal(session, store->session(session.id).value());
  expect_equal(record, store->record(record.id).value());
  ASSERT_EQ(store->feedback_of(record.id).size(), 1u);
  expect_equal(feedback, store->feedback_of(record.id)[0]);
  EXPECT_EQ(store->sessions().size(), 1u);
  EXPECT_EQ(store->feedback_after(0, 10).size(), 1u);
  EXPECT_TRUE(store->feedback_after(feedback.id.value, 10).empty());
}

TEST_F(RowsTest, BatchStepMetricReward) {
  const SessionId session = add_session();
  const RecordRow a = add_record(session), b = add_record(session), dropped = add_record(session);
  post(label(a.id));
  post(label(b.id, FeedbackKind::kReject));
  auto batch = filled<BatchRow>();
  batch.session = session;
  batch.records = {a.id, b.id};
  batch.rewards = {1, -1}, batch.advantages = {0.5, -0.5}, batch.weights = {1, 1};
  batch.state = "formed";
  BatchRow inverted = batch;
  EXPECT_EQ(store->add_batch(inverted, {}, {}).code(), Code::kConflict) << "goes over records that trained before";
  batch.inverted = false;
  auto reward = filled<RewardRow>();
  reward.record = a.id;
  batch.id = store->add_batch(batch, {reward}, {{dropped.id, "leak"}}).value();
  EXPECT_EQ(store->record(a.id)->fate, "batched");
  EXPECT_EQ(store->record(dropped.id)->fate, "leak");
  expect_equal(reward, store->rewards_of(a.id).at(0));
  auto stored = store->batches(session, 0, 10).at(0);
  EXPECT_EQ(stored.records, batch.records);
  EXPECT_EQ(store->last_settled_batch(session), BatchId()) << "it is still to be trained on";
  EXPECT_EQ(store->last_batch_with_baseline(session)->id, batch.id);
  EXPECT_FALSE(store->last_batch_with_baseline(SessionId(session.value + 1)));
  EXPECT_EQ(stored.advantages, batch.advantages);
  EXPECT_EQ(stored.baseline_json, batch.baseline_json);
  EXPECT_FALSE(stored.inverted);

  auto step = filled<StepRow>();
  step.session = session;
  step.batch = batch.id;
  step.loss = std::numeric_limits<double>::quiet_NaN();
  MetricRow metric;
  metric.session = session, metric.name = "loss", metric.x = 16, metric.value = 0.25;
  step.id = store->add_step(step, {metric}).value();
  open();
  auto back = store->steps(session, 0, 10).at(0);
  step.time_us = back.time_us;
  expect_equal(step, back);
  EXPECT_EQ(store->record(a.id)->fate, "trained");
  EXPECT_EQ(store->record(a.id)->used_in_step, step.id);
  EXPECT_EQ(store->batches(session, 0, 10).at(0).state, "trained");
  EXPECT_EQ(store->metrics(session, "loss", 0, 10).at(0).value, 0.25);
  EXPECT_EQ(store->metrics_after(0, 10).size(), 1u);
  EXPECT_TRUE(store->metrics(session, "kl_base", 0, 10).empty());
  EXPECT_EQ(store->add_step(step, {}).code(), Code::kConflict);  // a batch trains once

  EXPECT_EQ(store->last_settled_batch(session), batch.id);
  inverted.baseline_json = "";
  inverted.id = store->add_batch(inverted, {}, {}).value();
  EXPECT_TRUE(store->batches(session, batch.id.value, 10).at(0).inverted);
  EXPECT_EQ(store->last_settled_batch(session), inverted.id) << "done with, though never trained on";
  EXPECT_EQ(store->last_batch_with_baseline(session)->id, batch.id) << "it has none";
  StepRow bad = step;
  bad.batch = inverted.id;
  ASSERT_TRUE(store->add_step(bad, {}).ok());
  EXPECT_EQ(store->record(a.id)->used_in_step, step.id) << "an inverted batch leaves its records as they are";
  EXPECT_TRUE(store->verify().empty());
}

TEST_F(RowsTest, VersionDecisionEvidenceSettings) {
  auto version = filled<VersionRow>();
  version.id = store->reserve_version().value();
  version.parent = kBaseVersion;
  version.state = VersionState::kCandidate;
  ASSERT_TRUE(store->add_version(version).ok());
  auto settings = filled<GateSettingsRow>();
  settings.id = store->add_gate_settings(settings).value();
  ASSERT_TRUE(store->set_version_state(version.id, VersionState::kEvaluating).ok());
  auto evidence = filled<EvidenceRow>();
  evidence.candidate = version.id, evidence.incumbent = kBaseVersion, evidence.anchor = kBaseVersion;
  evidence.seq = 1;
  ASSERT_TRUE(store->add_evidence({evidence}).ok());
  EXPECT_EQ(store->add_evidence({evidence}).code(), Code::kConflict);  // a pair is measured once
  DecisionWrite write;
  write.row = filled<DecisionRow>();
  write.row.version = version.id, write.row.parent = kBaseVersion, write.row.incumbent = kBaseVersion;
  write.row.settings = settings.id;
  write.row.verdict = Verdict::kReject;
  write.row.lo = -0.0, write.row.hi = std::numeric_limits<double>::infinity();
  write.row.log_e = std::numeric_limits<double>::quiet_NaN();
  write.states = {{version.id, VersionState::kRejected}};
  const auto committed = store->commit_decision(write);
  ASSERT_TRUE(committed.ok()) << committed.status().message();
  EXPECT_EQ(committed->version(), kBaseVersion);
  open();
  auto decision = store->decision(committed->decision()).value();
  write.row.id = committed->decision();
  write.row.time_us = decision.time_us, write.row.prev_hash = decision.prev_hash, write.row.hash = decision.hash;
  expect_equal(write.row, decision);
  EXPECT_EQ(store->latest_decision(version.id)->id, decision.id);
  expect_equal(evidence, store->evidence(version.id).at(0));
  settings.time_us = store->gate_settings()->time_us;
  expect_equal(settings, store->gate_settings(settings.id).value());
  auto back = store->version(version.id).value();
  version.state = VersionState::kRejected, version.state_us = back.state_us, version.proven = false;
  expect_equal(version, back);
  EXPECT_EQ(store->versions().size(), 2u);
  EXPECT_TRUE(store->verify().empty());
}

TEST_F(RowsTest, ValuesAndLog) {
  EXPECT_FALSE(store->value("trainer.head").has_value());
  ASSERT_TRUE(store->put_value("trainer.head", "{}").ok());
  ASSERT_TRUE(store->put_value("trainer.head", std::string("a\0b", 3)).ok());
  LogRow log;
  log.level = "info", log.category = "train", log.text = "step 1", log.link = "step:1";
  store->add_log(log);
  ASSERT_TRUE(store->put_value("x", "y").ok());
  open();  // closing commits what was queued
  EXPECT_EQ(store->value("trainer.head").value(), std::string("a\0b", 3));
  ASSERT_EQ(store->log_after(0, 10).size(), 1u);
  EXPECT_EQ(store->log_after(0, 10)[0].text, "step 1");
  EXPECT_GT(store->log_after(0, 10)[0].time_us, 0);
}

TEST_F(RowsTest, PagesOfRecordsAndFilters) {
  const SessionId session = add_session();
  std::vector<RecordRow> rows;
  for (int i = 0; i < 25; ++i) rows.push_back(store->add_record(make_record(i < 20 ? session : SessionId())).value());
  RecordFilter all;
  std::vector<std::int64_t> seen;
  for (std::int64_t before = 0;;) {
    const auto page = store->records(all, before, 10);
    if (page.empty()) break;
    for (const auto& r : page) seen.push_back(r.seq);
    before = page.back().seq;
  }
  ASSERT_EQ(seen.size(), 25u);
  EXPECT_TRUE(std::is_sorted(seen.rbegin(), seen.rend()));
  EXPECT_EQ(store->records_after(20, 100).size(), 5u);
  RecordFilter filter;
  filter.session = session;
  EXPECT_EQ(store->records(filter, 0, 100).size(), 20u);
  post(label(rows[0].id));
  post(label(rows[1].id, FeedbackKind::kReject, FeedbackSource::kHuman));
  filter.label = "accept";
  EXPECT_EQ(store->records(filter, 0, 100).at(0).id, rows[0].id);
  filter.label = "none";
  EXPECT_EQ(store->records(filter, 0, 100).size(), 18u);
  filter.label.clear();
  filter.without_human_label = true;
  EXPECT_EQ(store->records(filter, 0, 100).size(), 19u);
  filter.fate = "waiting";
  EXPECT_EQ(store->records(filter, 0, 100).size(), 1u);
  filter.purpose = Purpose::kGate;
  EXPECT_TRUE(store->records(filter, 0, 100).empty());
}

TEST_F(RowsTest, SearchFindsWordsPiecesAndChinese) {
  const SessionId session = add_session();
  auto row = make_record(session, "如何修理漏水的水管？");
  row.completion_text = "先关闭阀门，再更换垫圈。";
  const auto chinese = store->add_record(row).value();
  row = make_record(session, "Why is 100% \"sure\" odd?");
  const auto english = store->add_record(row).value();
  const auto found = [&](const std::string& text) {
    RecordFilter filter;
    filter.text = text;
    std::vector<std::int64_t> seqs;
    for (const auto& r : store->records(filter, 0, 10)) seqs.push_back(r.seq);
    return seqs;
  };
  EXPECT_EQ(found("漏水的"), std::vector<std::int64_t>{chinese.seq});
  EXPECT_EQ(found("阀门"), std::vector<std::int64_t>{chinese.seq});  // two characters: no trigram
  EXPECT_EQ(found("管"), std::vector<std::int64_t>{chinese.seq});
  EXPECT_EQ(found("LETS SOME"), std::vector<std::int64_t>{english.seq});
  EXPECT_EQ(found("100% \"sure\""), std::vector<std::int64_t>{english.seq});
  EXPECT_EQ(found("0%"), std::vector<std::int64_t>{english.seq});
  EXPECT_TRUE(found("_%").empty());
  EXPECT_TRUE(found("nothing like it").empty());
}

}  // namespace
}  // namespace sluice
