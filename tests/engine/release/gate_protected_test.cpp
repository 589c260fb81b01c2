// SPDX-License-Identifier: GPL-3.0-or-later
// The protected metric in the gate's verdict: a loss that is shown rejects, a promotion needs the loss excluded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/seeds.h"
#include "engine/release/gate_fixture.h"
#include "release/gate.h"
#include "release/gate_json.h"

namespace sluice {
namespace {

using testing::HasSubstr;

const GateSettings kGuarded = gate_preset(GateProfile::kDemo);

// Wins every other prompt, so that E is reached early.
PairEvidence winning(std::size_t index, bool keeps, bool anchored) {
  PairEvidence p = pair(1, static_cast<double>(index % 2));
  p.candidate_protected = keeps;
  if (anchored) p.incumbent_protected = keeps;
  p.anchor_protected = 1;
  return p;
}

Evidence guarded(bool anchored) {
  Evidence e = healthy();
  e.anchor_applies = anchored;
  e.anchor = kBaseVersion;
  return e;
}

TEST(GateProtected, ProtectedLossRejectsHoweverGoodTheMetric) {
  Evidence e = healthy();
  for (int i = 0; i < 40; ++i) {
    PairEvidence p = pair(i >= 20, 0);
    p.candidate_protected = 0;
    e.pairs.push_back(p);
  }
  const Decision d = decide(kGuarded, e);
  EXPECT_EQ(d.outcome, Outcome::kReject);
  EXPECT_EQ(d.reason_code, "protected_harm");
  EXPECT_THAT(d.reason_text, HasSubstr("names the topic 0 of 40 against 40 of 40 for v12; a loss of more than 5 points is shown"));
}

// Every promotion of a chain loses a little to its incumbent; against the anchor the sum shows.
TEST(GateProtected, ProtectedLossToTheAnchorRejectsWhatTheIncumbentHides) {
  Evidence e = healthy();
  e.anchor = kBaseVersion;
  e.anchor_applies = true;
  for (int i = 0; i < 100; ++i) {
    PairEvidence p = pair(i % 8 != 0, i % 3 == 0);
    p.candidate_protected = p.incumbent_protected = i % 3 != 0;
    p.anchor_protected = 1;
    e.pairs.push_back(p);
  }
  const Decision d = decide(kGuarded, e);
  EXPECT_EQ(d.outcome, Outcome::kReject);
  EXPECT_EQ(d.stage, "anchor");
  EXPECT_EQ(d.reason_code, "protected_harm");
  EXPECT_EQ(d.mean_protected, 0);
  EXPECT_NEAR(d.mean_protected_anchor, -0.34, 1e-12);
  EXPECT_THAT(d.reason_text, HasSubstr("names the topic 66 of 100 against 100 of 100 for the anchor, the base; a loss of more than 5 points"));
  EXPECT_THAT(protected_to_json(e.protected_metric, d), HasSubstr("\"anchor_k\":100"));
}

TEST(GateProtected, APromotionWaitsUntilTheLossIsExcluded) {
  for (const bool anchored : {false, true}) {
    Evidence e = guarded(anchored);
    GateFold fold(kGuarded, e);
    int n = 0;
    for (; fold.outcome() == Outcome::kNeedsMore && n < 128; ++n) fold.add(winning(static_cast<std::size_t>(n), true, anchored));
    EXPECT_EQ(fold.outcome(), Outcome::kPromote) << anchored;
    EXPECT_EQ(n, 68) << anchored;  // 68 pairs of which none loses it
    const Decision d = fold.judge();
    EXPECT_GE(d.log_ep, std::log(5));
    EXPECT_THAT(protected_to_json(e.protected_metric, d), HasSubstr("\"log_e\":1.6"));
  }
}

TEST(GateProtected, OneLossAsksForMorePairs) {
  GateFold fold(kGuarded, guarded(false));
  std::size_t n = 0;
  for (; fold.outcome() == Outcome::kNeedsMore && n < 128; ++n) fold.add(winning(n, n != 10, false));
  EXPECT_EQ(fold.outcome(), Outcome::kPromote);
  EXPECT_GT(n, 85u);
  EXPECT_LT(n, 128u);
}

// Measuring on would be idle once no further pair could show that the loss is small.
TEST(GateProtected, ItIsHeldAsSoonAsTheLossCannotBeExcludedBeforeTheCap) {
  for (const bool anchored : {false, true}) {
    Evidence e = guarded(anchored);
    GateFold fold(kGuarded, e);
    std::size_t n = 0;
    for (; fold.outcome() == Outcome::kNeedsMore && n < 128; ++n) fold.add(winning(n, n % 8 != 7, anchored));
    const Decision held = fold.judge();
    EXPECT_EQ(held.outcome, Outcome::kHold) << anchored;
    EXPECT_EQ(held.reason_code, "protected");
    EXPECT_EQ(held.stage, anchored ? "anchor" : "shadow");
    EXPECT_THAT(held.reason_text, HasSubstr("; a loss of 5 points or more can't be excluded within 128 pairs (E "));
    EXPECT_THAT(held.reason_text, HasSubstr(", 5 needed)."));
    EXPECT_LT(n, 64u) << anchored;
    for (; n < 128; ++n) fold.add(winning(n, true, anchored));
    EXPECT_LT(fold.judge().log_ep, std::log(5)) << "it was out of reach indeed";
  }
}

TEST(GateProtected, AtTheCapWhatIsNotExcludedIsHeld) {
  GateSettings s = kGuarded;
  s.cap = 60;
  Evidence e = guarded(false);
  for (std::size_t i = 0; i < 60; ++i) e.pairs.push_back(winning(i, true, false));
  EXPECT_EQ(decide(s, e).reason_code, "protected");
  s.protected_alpha = 1;  // no evidence asked for
  EXPECT_EQ(decide(s, e).outcome, Outcome::kPromote);
}

// Share of candidates promoted that lose `lost` of the prompts and regain `regained` of them.
double promoted(double lost, double regained) {
  constexpr int kCandidates = 4000;
  const Evidence head = guarded(false);
  int count = 0;
  for (int c = 0; c < kCandidates; ++c) {
    SplitMix64 draws(static_cast<std::uint64_t>(c) + 1);
    GateFold fold(kGuarded, head);
    for (std::size_t i = 0; fold.outcome() == Outcome::kNeedsMore; ++i) {
      const double u = static_cast<double>(draws.next() >> 11) * 0x1.0p-53;
      PairEvidence p = winning(i, u >= lost, false);
      p.incumbent_protected = u < 1 - regained;
      fold.add(p);
    }
    count += fold.outcome() == Outcome::kPromote;
  }
  return count / static_cast<double>(kCandidates);
}

TEST(GateProtected, ALossOfTheMarginIsPromotedNoMoreOftenThanPromised) {
  const double tolerance = 3 * std::sqrt(0.2 * 0.8 / 4000);
  EXPECT_LE(promoted(0.05, 0), 0.2 + tolerance);
  EXPECT_LE(promoted(0.08, 0.03), 0.2 + tolerance);
  EXPECT_LE(promoted(0.10, 0), 0.02);
  EXPECT_EQ(promoted(0, 0), 1);
  EXPECT_GE(promoted(0.01, 0), 0.8);
}

}  // namespace
}  // namespace sluice
