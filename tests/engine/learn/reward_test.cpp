// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/reward.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

FeedbackRow feedback(FeedbackKind kind, FeedbackSource source = FeedbackSource::kClient, double score = 0) {
  FeedbackRow row;
  row.kind = kind;
  row.source = source;
  row.score = score;
  return row;
}

RewardSettings threshold() {
  RewardSettings s;
  s.mapping = RewardMapping::kThreshold;
  return s;
}

TEST(Reward, SignedMapping) {
  const RewardSettings s;
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kAccept), false, s), 1.0);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kReject), false, s), -1.0);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kSilent), true, s), std::nullopt);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kHuman, 0.75), false, s), 0.5);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kJudge, 8), false, s), 0.6000000000000001);
}

TEST(Reward, ThresholdMappingMakesSilenceAnAction) {
  const RewardSettings s = threshold();
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kAccept), false, s), 0.75);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kReject), false, s), -0.25);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kSilent), true, s), 0.0);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kSilent), false, s), std::nullopt);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kHuman, 0.5), false, s), 0.25);
}

TEST(Reward, AScoreOfZeroIsAValue) {
  LabelledRecord one;
  one.feedback = {feedback(FeedbackKind::kScore, FeedbackSource::kHuman, 0.5)};
  const std::vector<SourceReward> rewards = rewards_of(one, RewardSettings());
  ASSERT_EQ(rewards.size(), 1u);
  EXPECT_EQ(rewards[0].value, 0.0);
}

TEST(Reward, AVoteIsItsValueUnderBothMappings) {
  RewardSettings s = threshold();
  s.score_scale[static_cast<int>(FeedbackSource::kJudge)] = {-1, 1};
  for (double vote : {-1.0, 0.0, 1.0}) {
    EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kJudge, vote), false, s), vote);
  }
}

TEST(Reward, AScoreOutsideItsScaleIsMissing) {
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kHuman, 1.5), false, {}), std::nullopt);
  EXPECT_EQ(map_feedback(feedback(FeedbackKind::kScore, FeedbackSource::kHuman, NAN), false, {}), std::nullopt);
}

TEST(Reward, OneRewardPerSourceTheNewestAndNeitherLateNorRetracted) {
  LabelledRecord one;
  FeedbackRow old_one = feedback(FeedbackKind::kReject);
  old_one.id = FeedbackId(1);
  FeedbackRow new_one = feedback(FeedbackKind::kAccept);
  new_one.id = FeedbackId(2);
  FeedbackRow late = feedback(FeedbackKind::kAccept, FeedbackSource::kHuman);
  late.state = "late";
  FeedbackRow gone = feedback(FeedbackKind::kAccept, FeedbackSource::kVerifier);
  gone.retracted = true;
  one.feedback = {new_one, old_one, late, gone};
  const std::vector<SourceReward> rewards = rewards_of(one, RewardSettings());
  ASSERT_EQ(rewards.size(), 1u);
  EXPECT_EQ(rewards[0].source, FeedbackSource::kClient);
  EXPECT_EQ(rewards[0].value, 1.0);
}

TEST(Reward, ASourceOfWeightZeroSaysNothing) {
  RewardSettings s;
  s.source_weight[static_cast<int>(FeedbackSource::kJudge)] = 0;
  LabelledRecord one;
  one.feedback = {feedback(FeedbackKind::kScore, FeedbackSource::kJudge, 8)};
  EXPECT_TRUE(rewards_of(one, s).empty());
}

TEST(Settings, DefaultsPassAndEachBadFieldIsNamed) {
  EXPECT_TRUE(check(LearnSettings()).ok());
  LearnSettings s;
  s.optimiser.lr = NAN;
  EXPECT_NE(check(s).message().find("lr"), std::string::npos);
  s = {};
  s.max_ahead = 2;
  s.candidate_every = 3;
  EXPECT_NE(check(s).message().find("max_ahead"), std::string::npos);
  s = {};
  s.loss.dual_clip = 0.5;
  EXPECT_FALSE(check(s).ok());
  s = {};
  s.reward.score_scale[1] = {3, 3};
  EXPECT_NE(check(s).message().find("judge"), std::string::npos);
}

TEST(Settings, NamesReadBackAndUnknownOnesListTheKnown) {
  for (Aggregation a : {Aggregation::kSeqSumConst, Aggregation::kSeqMean, Aggregation::kTokenMean}) {
    EXPECT_EQ(parse_aggregation(aggregation_name(a)).value(), a);
  }
  for (Objective o : {Objective::kPpo, Objective::kReinforce}) EXPECT_EQ(parse_objective(objective_name(o)).value(), o);
  EXPECT_NE(parse_objective("k1").status().message().find("ppo, reinforce"), std::string::npos);
}

}  // namespace
}  // namespace sluice
