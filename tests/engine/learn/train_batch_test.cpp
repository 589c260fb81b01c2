// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/train_batch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/learn/labelled.h"

namespace sluice {
namespace {

using testing::labelled;

LearnSettings small() {
  LearnSettings s;
  s.batch_size = 4;
  return s;
}

const AgeOf kFresh = [](VersionId) { return std::optional<int>(0); };

// An editor reports the part that it showed: what came behind it was never judged.
TEST(TrainBatch, TokensBehindTheShownPartAreMasked) {
  LabelledRecord a = labelled(7, true, 4);
  a.feedback.front().by_text = true;
  a.feedback.front().shown_tokens = 2;
  EXPECT_EQ(visible_tokens(a.record, a.feedback), 2u);
  const TrainBatch batch = pack({{&a.record, 0.5, 1, 0, visible_tokens(a.record, a.feedback)}}).value();
  EXPECT_EQ(batch.mask, (std::vector<float>{1, 1, 0, 0}));
  a.feedback.front().shown_tokens = -1;
  EXPECT_EQ(visible_tokens(a.record, a.feedback), 4u);
  a.feedback.front().shown_tokens = 0;
  EXPECT_EQ(drop_reason(a, rewards_of(a, {}), 0, {}), "empty_mask");
}

TEST(Pack, ShapesPositionsAndShift) {
  LabelledRecord a = labelled(7, true, 2), b = labelled(9, false, 3);
  b.record.prompt_ids = {5};
  b.record.token_ids = {11, 12, 2};
  const TrainBatch out = pack({{&a.record, 0.5, 1, 0}, {&b.record, -1, 1, 2}}).value();
  EXPECT_EQ(out.ids, (std::vector<std::int32_t>{1, 2, 7, 7, 8, 5, 11, 12, 2}));
  EXPECT_EQ(out.pos, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 0, 1, 2, 3}));
  EXPECT_EQ(out.seq_start, (std::vector<std::int64_t>{0, 5, 9}));
  // The row before a token predicts it: the last prompt row predicts the first answer token.
  EXPECT_EQ(out.resp_index, (std::vector<std::int64_t>{2, 3, 5, 6, 7}));
  EXPECT_EQ(out.target, (std::vector<std::int32_t>{7, 8, 11, 12, 2}));
  EXPECT_EQ(out.resp_start, (std::vector<std::int64_t>{0, 2, 5}));
  EXPECT_EQ(out.mask, (std::vector<float>{1, 1, 1, 1, 1})) << "a sampled end token is trained";
  EXPECT_EQ(out.advantage, (std::vector<float>{0.5f, 0.5f, -1, -1, -1}));
  EXPECT_EQ(out.age, (std::vector<std::int32_t>{0, 2}));
  EXPECT_EQ(out.tau, (std::vector<float>{0.7f, 0.7f}));
}

TEST(Pack, LogProbsOfAnotherLengthAreAnErrorThatNamesTheRecord) {
  LabelledRecord a = labelled(7, true, 3);
  a.record.lp_full.push_back(-1);
  const auto out = pack({{&a.record, 1, 1, 0}});
  EXPECT_EQ(out.code(), Code::kInvalidArgument);
  EXPECT_NE(out.status().message().find(a.record.id.text), std::string::npos);
}

TEST(FormBatch, TakesRecordsInServingOrder) {
  std::vector<LabelledRecord> records;
  for (int i = 0; i < 6; ++i) records.push_back(labelled(i, i % 2 == 0));
  Baseline baseline;
  const FormedBatch out = form_batch(records, kFresh, small(), baseline).value();
  ASSERT_TRUE(out.enough);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(out.records[i], records[i].record.id);
  EXPECT_EQ(out.rewards, (std::vector<double>{1, -1, 1, -1}));
  EXPECT_EQ(out.advantages, out.rewards) << "the first batch has no baseline: read before it is added";
  EXPECT_TRUE(out.dropped.empty());
}

TEST(FormBatch, BaselineOfTheRowReadsBackExactly) {
  std::vector<LabelledRecord> records;
  for (int i = 0; i < 4; ++i) records.push_back(labelled(i, i != 0, 3 + i));
  Baseline baseline;
  const FormedBatch first = form_batch(records, kFresh, small(), baseline).value();
  BatchRow row;
  row.baseline_json = first.baseline_json;
  EXPECT_EQ(baseline_after(row).value(), baseline);
  const double b = baseline.read(FeedbackSource::kPersona, "chat/0-64");
  EXPECT_GT(b, 0);
  const FormedBatch second = form_batch(records, kFresh, small(), baseline).value();
  EXPECT_NEAR(second.advantages[0], -1 - b, 1e-12);
  EXPECT_NEAR(second.advantages[1], 1 - b, 1e-12);
  EXPECT_NEAR(second.reward_rows[1].baseline, b, 1e-12);
  row.baseline_json = "{}";
  EXPECT_EQ(baseline_after(row).code(), Code::kCorrupt);
}

TEST(FormBatch, SourcesAreCentredSeparatelyAndWeighted) {
  LabelledRecord one = labelled(1, true);
  FeedbackRow judge = testing::label(one.record.id, false, FeedbackSource::kJudge);
  judge.kind = FeedbackKind::kScore;
  judge.score = 5;  // signed 0
  one.feedback.push_back(judge);
  LearnSettings s = small();
  s.batch_size = 1;
  Baseline baseline;
  const FormedBatch out = form_batch({one}, kFresh, s, baseline).value();
  EXPECT_NEAR(out.rewards[0], (1.0 * 1 + 0.5 * 0) / 1.5, 1e-12);
  EXPECT_EQ(out.reward_rows.size(), 2u);
}

TEST(FormBatch, DropsNameTheirReasonAndOthersKeepTheirAdvantage) {
  std::vector<LabelledRecord> records;
  for (int i = 0; i < 12; ++i) records.push_back(labelled(i, i % 3 != 0, 4, VersionId(i)));
  records[0].feedback.clear();
  records[1].record.temperature = 0;
  records[2].record.lp_full.pop_back();
  records[3].record.token_ids.clear();
  records[4].feedback[0].state = "late";
  records[5].record.finish_reason = "length";
  records[5].feedback[0].source = FeedbackSource::kJudge;
  records[8].record.lp_full[0] = NAN;
  const AgeOf age = [](VersionId v) -> std::optional<int> {
    if (v.value == 6) return 33;
    if (v.value == 7) return std::nullopt;
    return 0;
  };
  LearnSettings s = small();
  s.batch_size = 3;
  Baseline baseline;
  const FormedBatch out = form_batch(records, age, s, baseline).value();
  ASSERT_TRUE(out.enough);
  std::vector<std::string> reasons;
  for (const auto& [id, reason] : out.dropped) reasons.push_back(reason);
  EXPECT_EQ(reasons, (std::vector<std::string>{"no_event", "greedy", "no_logprobs", "empty_mask", "late", "cut", "too_old",
                                               "imported", "no_logprobs"}));
  EXPECT_EQ(out.records[0], records[9].record.id);
  EXPECT_EQ(out.rewards, (std::vector<double>{-1, 1, 1}));
}

TEST(FormBatch, AClientsLabelOnACutAnswerTrains) {
  LabelledRecord one = labelled(1, false);
  one.record.finish_reason = "length";
  LearnSettings s = small();
  s.batch_size = 1;
  Baseline baseline;
  EXPECT_TRUE(form_batch({one}, kFresh, s, baseline).value().enough);
}

TEST(FormBatch, EqualRewardsAreSkippedOnlyWhereTheRecipeSaysSo) {
  std::vector<LabelledRecord> records;
  for (int i = 0; i < 4; ++i) records.push_back(labelled(i, true));
  LearnSettings s = small();
  Baseline baseline;
  EXPECT_FALSE(form_batch(records, kFresh, s, baseline).value().equal);
  s.skip_equal_rewards = true;
  const Baseline before = baseline;
  const FormedBatch out = form_batch(records, kFresh, s, baseline).value();
  EXPECT_TRUE(out.equal);
  EXPECT_EQ(baseline, before);
  EXPECT_EQ(out.dropped.size(), 4u);
  EXPECT_EQ(out.dropped[0].second, "no_spread");
}

TEST(FormBatch, TooFewLeavesTheBaselineAlone) {
  Baseline baseline;
  const FormedBatch out = form_batch({labelled(1, true)}, kFresh, small(), baseline).value();
  EXPECT_FALSE(out.enough);
  EXPECT_EQ(baseline, Baseline());
}

}  // namespace
}  // namespace sluice
