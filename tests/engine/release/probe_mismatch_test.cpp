// SPDX-License-Identifier: GPL-3.0-or-later
// Stage 1's comparison of server and trainer (gate.md §3.1), with a trainer that says what the test wants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "evaluator_fixture.h"
#include "release/gate_json.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::EvaluatorTest;
using S = VersionState;

class ProbeMismatch : public EvaluatorTest {
 protected:
  ProbeMismatch() {
    use(gate_preset(GateProfile::kDemo));
    candidate = w.add_candidate();
    answers->percent[candidate] = 90;
  }
  // Every token's log-prob differs by this from the server's.
  static auto off_by(float gap) {
    return [gap](VersionId, const ShadowAnswer& answer) { return Result(std::vector<float>(answer.lp_full.size(), gap)); };
  }
  ProbeEvidence probe_of(const DecisionRow& row) const { return probe_of_decision(row.invariants_json).value(); }

  VersionId candidate;
};

TEST_F(ProbeMismatch, ATrainerThatAgreesPassesAndItsNumberIsKept) {
  VersionId asked;
  std::size_t tokens = 0;
  train_with([&](VersionId version, const ShadowAnswer& answer) {
    asked = version;
    tokens = answer.token_ids.size();
    return Result(std::vector<float>(tokens, -0.0005f));
  });
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kPromote) << decided[0].reason_text;
  EXPECT_EQ(asked, candidate);
  EXPECT_EQ(tokens, std::string("good topic by v1 on probe/10").size()) << "the longest answer";
  ASSERT_TRUE(probe_of(decided[0]).mismatch);
  EXPECT_NEAR(*probe_of(decided[0]).mismatch, 0.0005, 1e-9);
  EXPECT_THAT(decided[0].invariants_json, HasSubstr("\"name\":\"probe_mismatch\",\"passed\":true"));
}

TEST_F(ProbeMismatch, ATrainerThatIsOffRejectsAndIsNamed) {
  train_with(off_by(0.01f));
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kReject);
  EXPECT_EQ(decided[0].stage, "invariants");
  EXPECT_EQ(decided[0].reason_code, "probe_mismatch");
  EXPECT_EQ(decided[0].reason_text,
            "Rejected v1: the gap between the server's and the trainer's log-probs is 0.01 nats per token; at most 0.001 nats "
            "per token is allowed.");
  EXPECT_TRUE(w.store->evidence(candidate).empty()) << "before any pair";
  EXPECT_EQ(w.host->serving(), kBaseVersion);
}

// Differences of either sign count: their mean would hide them.
TEST_F(ProbeMismatch, GapsOfBothSignsDoNotCancel) {
  train_with([](VersionId, const ShadowAnswer& answer) {
    std::vector<float> lp(answer.lp_full.size(), 0.01f);
    for (std::size_t i = 0; i < lp.size(); i += 2) lp[i] = -0.01f;
    return Result(std::move(lp));
  });
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "probe_mismatch");
}

TEST_F(ProbeMismatch, WithoutATrainerTheCheckDoesNotApply) {
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kPromote);
  EXPECT_FALSE(probe_of(decided[0]).mismatch);
}

TEST_F(ProbeMismatch, WhatTrainingCantReadIsUnusable) {
  train_with([](VersionId, const ShadowAnswer&) { return Result<std::vector<float>>(corrupt("its tensors are cut short")); });
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_text, "Rejected v1: it can't be used: its tensors are cut short.");
}

TEST_F(ProbeMismatch, LogProbsWithoutNumbersAreUnusable) {
  train_with(off_by(std::numeric_limits<float>::quiet_NaN()));
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "unusable");
}

// A trainer that fails for a while says nothing about the version: it is measured again, and not promoted until it was.
TEST_F(ProbeMismatch, ATrainerThatFailsIsAskedAgain) {
  int asked = 0;
  train_with([&](VersionId version, const ShadowAnswer& answer) {
    if (++asked == 1) return Result<std::vector<float>>(internal_error("no memory"));
    if (asked == 2) return Result(std::vector<float>(answer.lp_full.size() - 1, 0.0f));
    return off_by(0.0f)(version, answer);
  });
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(decided[0].verdict, Verdict::kPromote);
  EXPECT_EQ(w.state(candidate), S::kServing);
}

}  // namespace
}  // namespace sluice
