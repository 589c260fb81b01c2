// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/baseline.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice {
namespace {

constexpr FeedbackSource kClient = FeedbackSource::kClient;

TEST(Baseline, IsZeroBeforeAnyData) { EXPECT_EQ(Baseline().read(kClient, "chat/0-64"), 0.0); }

TEST(Baseline, ShrinksTheSegmentTowardsTheMeanOfTheSource) {
  Baseline b;
  b.add(kClient, "a", 2, 1);
  b.add(kClient, "b", 4, -1);
  const double d = std::exp2(-1.0 / 256);
  const double all_r = 2 * d - 4, all_l = 2 * d + 4, all_n = d + 1;
  const double mean = all_r / all_l, prior = 10 * all_l / all_n;
  EXPECT_NEAR(b.read(kClient, "a"), (2 + prior * mean) / (2 + prior), 1e-15);
  EXPECT_NEAR(b.read(kClient, "b"), (-4 + prior * mean) / (4 + prior), 1e-15);
  EXPECT_NEAR(b.read(kClient, "never seen"), mean, 1e-15);
  EXPECT_EQ(b.read(FeedbackSource::kJudge, "a"), 0.0) << "sources are centred separately";
}

// Centring by a length-weighted mean keeps the expected net token weight sum A L at zero; a plain mean does not.
TEST(Baseline, LengthWeightingBalancesShortAcceptsAgainstLongRejects) {
  Baseline b;
  for (int i = 0; i < 4000; ++i) i % 2 == 0 ? b.add(kClient, "s", 15, 1) : b.add(kClient, "s", 220, -1);
  const double base = b.read(kClient, "s");
  const double net = 15 * (1 - base) + 220 * (-1 - base);
  const double gross = 15 * std::abs(1 - base) + 220 * std::abs(-1 - base);
  EXPECT_LT(std::abs(net / gross), 0.02);
}

TEST(Baseline, OldSamplesFadeByHalfIn256) {
  Baseline b;
  b.add(kClient, "s", 1, 1);
  for (int i = 0; i < 256; ++i) b.add(kClient, "s", 1, 0);
  double weights = 0.5;
  for (int i = 0; i < 256; ++i) weights += std::exp2(-i / 256.0);
  EXPECT_NEAR(b.read(kClient, "s"), 0.5 / weights, 1e-12);
}

// A stream that learns within a hundred answers: the long rejected ones of the start must not hold the mean down for good,
// or every accepted answer is pushed up at full strength long after nothing is left to learn from it.
TEST(Baseline, AShortHalfLifeFollowsAStreamThatLearnsFast) {
  Baseline slow, fast;
  for (int i = 0; i < 64; ++i) {
    slow.add(kClient, "chat/0-64", 96, -1);
    fast.add(kClient, "chat/0-64", 96, -1, 24);
  }
  for (int i = 0; i < 64; ++i) {
    slow.add(kClient, "chat/0-64", 20, 1);
    fast.add(kClient, "chat/0-64", 20, 1, 24);
  }
  EXPECT_LT(slow.read(kClient, "chat/0-64"), -0.5);
  EXPECT_GT(fast.read(kClient, "chat/0-64"), 0.0);
}

TEST(Baseline, SegmentsBeyondSixtyFourShareOne) {
  Baseline b;
  for (int i = 0; i < 200; ++i) b.add(kClient, "s" + std::to_string(i), 1, i < 63 ? 1 : -1);
  EXPECT_EQ(b.read(kClient, "s150"), b.read(kClient, "s199"));
  EXPECT_LT(b.read(kClient, "s150"), b.read(kClient, "s3"));
}

TEST(Baseline, SerialisesExactly) {
  Baseline b;
  for (int i = 0; i < 50; ++i) b.add(i % 3 == 0 ? kClient : FeedbackSource::kJudge, "chat/" + std::to_string(i % 4), i + 0.1, std::sin(i));
  const Result<Baseline> back = Baseline::parse(b.serialise());
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(*back, b);
  EXPECT_EQ(Baseline::parse(Baseline().serialise()).value(), Baseline());
}

TEST(Baseline, DamagedTextIsRefused) {
  Baseline b;
  b.add(kClient, "s", 1, 1);
  const std::string text = b.serialise();
  EXPECT_EQ(Baseline::parse("").code(), Code::kCorrupt);
  EXPECT_EQ(Baseline::parse(text.substr(0, text.size() - 8)).code(), Code::kCorrupt);
  EXPECT_EQ(Baseline::parse(text + " 1").code(), Code::kCorrupt);
  EXPECT_EQ(Baseline::parse("baseline1 nan").code(), Code::kCorrupt);
}

TEST(Baseline, SegmentNamesCarryNoForeignCharacters) {
  RecordRow r;
  r.route = "chat \"x\"";
  r.prompt_ids.assign(65, 1);
  EXPECT_EQ(segment_of(r), "chat__x_/65-256");
  r.prompt_ids.assign(1025, 1);
  EXPECT_EQ(segment_of(r), "chat__x_/longer");
}

}  // namespace
}  // namespace sluice
