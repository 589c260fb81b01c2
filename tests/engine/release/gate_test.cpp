// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "release/gate_json.h"
#include "release/sentence.h"
#include "release/what_if.h"
#include "engine/release/gate_fixture.h"

namespace sluice {
namespace {

using testing::HasSubstr;

void add(Evidence& e, int n, double candidate, double incumbent) {
  for (int i = 0; i < n; ++i) e.pairs.push_back(pair(candidate, incumbent));
}

TEST(Gate, ABetterCandidateIsPromotedWithItsNumbers) {
  Evidence e = healthy();
  for (int i = 0; i < 30; ++i) e.pairs.push_back(pair(i % 6 != 0, i % 3 == 0));
  const Decision d = decide(kDemo, e);
  EXPECT_EQ(d.outcome, Outcome::kPromote);
  EXPECT_EQ(d.reason_code, "better");
  EXPECT_EQ(d.stage, "shadow");
  EXPECT_EQ(d.n, 30);
  EXPECT_EQ(d.candidate.k, 25);
  EXPECT_EQ(d.incumbent.k, 10);
  EXPECT_EQ(d.wins + d.losses + d.ties, 30);
  EXPECT_GE(d.lo, -kDemo.delta);
  EXPECT_FALSE(d.forced);
  EXPECT_THAT(d.reason_text, HasSubstr("Promoted v14: accept rate 25 of 30 against 10 of 30 for v12; being worse by 5 points"));
  EXPECT_THAT(d.reason_text, HasSubstr("\u2265 10)."));
}

TEST(Gate, AWorseCandidateIsRejected) {
  Evidence e = healthy();
  add(e, 40, 0, 1);
  const Decision d = decide(kDemo, e);
  EXPECT_EQ(d.outcome, Outcome::kReject);
  EXPECT_EQ(d.reason_code, "not_better");
  EXPECT_LE(d.hi, kDemo.delta);
  EXPECT_THAT(d.reason_text, HasSubstr("Rejected v14: accept rate 0 of 40 against 40 of 40 for v12; being at least 5 points better is excluded (F "));
}

TEST(Gate, NoVerdictBeforeTheLeastNumberOfPairs) {
  Evidence e = healthy();
  add(e, 15, 1, 0);
  EXPECT_EQ(decide(kDemo, e).outcome, Outcome::kNeedsMore);
  add(e, 1, 1, 0);
  EXPECT_EQ(decide(kDemo, e).outcome, Outcome::kPromote);
}

TEST(Gate, HoldsAtTheCapAndSaysWhatIsExcluded) {
  Evidence e = healthy();
  for (int i = 0; i < 128; ++i) e.pairs.push_back(pair(i % 2, (i + 1) % 2));
  const Decision d = decide(kDemo, e);
  EXPECT_EQ(d.outcome, Outcome::kHold);
  EXPECT_EQ(d.reason_code, "inconclusive");
  EXPECT_THAT(d.reason_text, HasSubstr("the difference lies between \u2212"));
  EXPECT_THAT(d.reason_text, HasSubstr("after 128 pairs"));
}

TEST(Gate, EveryBrokenInvariantRejectsBeforeAnyPair) {
  const auto reject_code = [](auto change) {
    Evidence e = healthy();
    change(e.probe);
    const Decision d = decide(gate_preset(GateProfile::kStandard), e);
    EXPECT_EQ(d.outcome, Outcome::kReject);
    EXPECT_EQ(d.stage, "invariants");
    EXPECT_EQ(d.n, 0);
    EXPECT_THAT(d.reason_text, HasSubstr("Rejected v14: "));
    return d.reason_code;
  };
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.broken = "the file is cut short"; }), "unusable");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.same_bytes = true; }), "no_change");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.differing = 0; }), "no_change");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.mismatch = 0.01; }), "probe_mismatch");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.kl_incumbent = 0.8; }), "kl_incumbent");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.kl_base = 4.3; }), "kl_base");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.kl_base = std::numeric_limits<double>::quiet_NaN(); }), "kl_base");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.eos_share = 0.2; }), "eos_share");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.cut_share = 0.8; }), "cut_share");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.empty_share = 0.1; }), "empty_share");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.mean_length = 7; }), "length_incumbent");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.mean_length = 170; }), "length_incumbent");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.base.mean_length = 400; }), "length_base");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.distinct3 = 0.5; }), "distinct3");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.duplicate_share = 0.2; }), "duplicates");
  EXPECT_EQ(reject_code([](ProbeEvidence& p) { p.candidate.us_per_token = 1300; }), "latency");
}

TEST(Gate, InvariantSentencesNameNumberAndLimit) {
  Evidence e = healthy();
  e.probe.kl_base = 4.3;
  EXPECT_EQ(decide(kDemo, e).reason_text,
            "Rejected v14: KL to the base is 4.3 nats per token; at most 1 nats per token is allowed.");
  e = healthy();
  e.probe.mismatch = 0.001234;  // two digits that say something, not two places
  EXPECT_EQ(decide(kDemo, e).reason_text,
            "Rejected v14: the gap between the server's and the trainer's log-probs is 0.0012 nats per token; at most 0.001 nats "
            "per token is allowed.");
}

TEST(Gate, LimitsThatMovedCountForStoredProbeNumbers) {
  Evidence e = healthy();
  e.probe.kl_base = 1.2;
  GateSettings s = kDemo;
  EXPECT_EQ(decide(s, e).outcome, Outcome::kReject);
  s.invariants.kl_base = 1.5;
  EXPECT_EQ(decide(s, e).outcome, Outcome::kNeedsMore);
}

TEST(Gate, SameSignalWithoutAProtectedMetricIsHeld) {
  Evidence e = healthy();
  e.protected_metric.clear();
  EXPECT_EQ(decide(kDemo, e).reason_code, "no_protected_metric");
  e.same_signal = false;
  EXPECT_EQ(decide(kDemo, e).outcome, Outcome::kNeedsMore);
}

TEST(Gate, TheAnchorMustBePassedToo) {
  Evidence e = healthy();
  e.anchor_applies = true;
  e.anchor = kBaseVersion;
  for (int i = 0; i < 60; ++i) {
    PairEvidence p = pair(i % 2, 0);  // far better than the incumbent ...
    p.anchor = i % 2;                 // ... and equal to the anchor
    e.pairs.push_back(p);
  }
  EXPECT_EQ(decide(kDemo, e).outcome, Outcome::kNeedsMore);
  while (e.pairs.size() < 128) {
    PairEvidence p = pair(1, 0);
    p.anchor = 1;
    e.pairs.push_back(p);
  }
  const Decision held = decide(kDemo, e);
  EXPECT_EQ(held.outcome, Outcome::kHold);
  EXPECT_EQ(held.reason_code, "anchor");

  for (PairEvidence& p : e.pairs) {
    p.anchor = 1;
    p.candidate = p.incumbent = 0;
  }
  const Decision harm = decide(kDemo, e);
  EXPECT_EQ(harm.outcome, Outcome::kReject);
  EXPECT_EQ(harm.reason_code, "anchor_harm");
  EXPECT_EQ(harm.stage, "anchor");
}

TEST(Gate, VoidPairsSayNothingAndTooManyHold) {
  Evidence e = healthy();
  add(e, 20, 1, 1);
  PairEvidence voided;
  voided.voided = true;
  for (int i = 0; i < 5; ++i) e.pairs.push_back(voided);
  const Decision some = decide(kDemo, e);
  EXPECT_EQ(some.outcome, Outcome::kNeedsMore);
  EXPECT_EQ(some.n, 20);
  EXPECT_EQ(some.voids, 5);
  e.pairs.push_back(voided);
  EXPECT_EQ(decide(kDemo, e).reason_code, "judge_unhealthy");
  add(e, 50, 1, 1);  // they have left the window of fifty
  EXPECT_NE(decide(kDemo, e).reason_code, "judge_unhealthy");
}

TEST(Gate, NamesFloorCeilingAndNoChange) {
  GateSettings s = gate_preset(GateProfile::kStandard);
  Evidence e = healthy();
  add(e, 100, 0, 0);
  EXPECT_EQ(decide(s, e).reason_code, "floor");
  e.pairs.clear();
  add(e, 100, 1, 1);
  EXPECT_EQ(decide(s, e).reason_code, "ceiling");
  EXPECT_EQ(decide(s, e).outcome, Outcome::kHold);
  for (int i = 0; i < 95; ++i) e.pairs[static_cast<std::size_t>(i)].equal_answers = true;
  const Decision same = decide(s, e);
  EXPECT_EQ(same.reason_code, "no_change");
  EXPECT_EQ(same.outcome, Outcome::kReject);
  EXPECT_THAT(same.reason_text, HasSubstr("95 of 100 answers equal those of v12"));
}

TEST(Gate, AnEmptyPoolHolds) {
  Evidence e = healthy();
  add(e, 10, 1, 0);
  e.pool_exhausted = true;
  const Decision d = decide(kDemo, e);
  EXPECT_EQ(d.outcome, Outcome::kHold);
  EXPECT_EQ(d.reason_code, "pool_exhausted");
}

TEST(Gate, ProfileOffPromotesForcedButOnlyUsableChanges) {
  const GateSettings off = gate_preset(GateProfile::kOff);
  Evidence e = healthy();
  e.probe.kl_base = 4.3;
  const Decision d = decide(off, e);
  EXPECT_EQ(d.outcome, Outcome::kPromote);
  EXPECT_TRUE(d.forced);
  EXPECT_EQ(d.reason_code, "ungated");
  e.probe.differing = 0;
  EXPECT_EQ(decide(off, e).outcome, Outcome::kReject);
  e = healthy();
  e.probe.broken = "its hash differs";
  EXPECT_EQ(decide(off, e).reason_code, "unusable");
  e.probe.measured = false;
  EXPECT_EQ(decide(off, e).outcome, Outcome::kNeedsMore);
}

TEST(Gate, FoldingStepByStepEqualsDecidingToTheBit) {
  Evidence e = healthy();
  e.anchor_applies = true;
  GateFold fold(kDemo, e);
  for (int i = 0; i < 90; ++i) {
    PairEvidence p = pair((i * 7) % 5 < 3, (i * 3) % 5 < 2);
    p.anchor = i % 3 == 0;
    p.candidate_protected = i % 11 != 0;
    e.pairs.push_back(p);
    fold.add(p);
    const Decision a = fold.judge(), b = decide(kDemo, e);
    ASSERT_EQ(a.outcome, b.outcome);
    ASSERT_EQ(a.log_e, b.log_e);
    ASSERT_EQ(a.log_f, b.log_f);
    ASSERT_EQ(a.log_ea, b.log_ea);
    ASSERT_EQ(a.log_hp, b.log_hp);
    ASSERT_EQ(a.lo, b.lo);
    ASSERT_EQ(a.reason_text, b.reason_text);
    ASSERT_EQ(fold.outcome(), a.outcome);
  }
}

TEST(WhatIf, SaysWhatDiffersAndNeverGuesses) {
  Evidence e = healthy();
  for (int i = 0; i < 30; ++i) e.pairs.push_back(pair(i % 6 != 0, i % 3 == 0));
  DecisionRow row;
  row.id = DecisionId{3};
  row.version = e.candidate;
  while (decide(kDemo, e).outcome == Outcome::kPromote && e.pairs.size() > 16) {
    Evidence shorter = e;
    shorter.pairs.pop_back();
    if (decide(kDemo, shorter).outcome != Outcome::kPromote) break;
    e = shorter;
  }
  row.verdict = Verdict::kPromote;
  row.n = static_cast<std::int64_t>(e.pairs.size());
  const WhatIfRow same = replay_under(kDemo, row, e);
  EXPECT_FALSE(same.differs);
  EXPECT_EQ(same.n_would_be, row.n);

  GateSettings harder = kDemo;
  harder.alpha = 1e-4;
  const WhatIfRow more = replay_under(harder, row, e);
  EXPECT_TRUE(more.differs);
  EXPECT_EQ(more.would_be, Outcome::kNeedsMore);

  GateSettings small_kl = kDemo;
  small_kl.invariants.kl_base = 0.1;
  const WhatIfRow rejected = replay_under(small_kl, row, e);
  EXPECT_EQ(rejected.would_be, Outcome::kReject);
  EXPECT_EQ(rejected.reason_code, "kl_base");
  EXPECT_EQ(rejected.n_would_be, 0);
}

}  // namespace
}  // namespace sluice
