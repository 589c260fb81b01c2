// SPDX-License-Identifier: GPL-3.0-or-later
// The gate thread over a real store and registry; answers come from a formula, so every verdict is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "release/evidence.h"
#include "release/what_if.h"
#include "evaluator_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::EvaluatorTest;
using testing::FormulaAnswers;
using testing::soon;
using testing::Workspace;
using S = VersionState;

TEST_F(EvaluatorTest, PromotesABetterCandidate) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 90;
  run();
  ASSERT_EQ(decided.size(), 1u);
  const DecisionRow& row = decided[0];
  EXPECT_EQ(row.verdict, Verdict::kPromote) << row.reason_text;
  EXPECT_EQ(row.reason_code, "better");
  EXPECT_EQ(w.host->serving(), v);
  EXPECT_EQ(row.n, 68) << "better is shown earlier; that the topic is kept takes 68 pairs without a loss";
  EXPECT_EQ(row.candidate_n, row.n);
  EXPECT_EQ(row.anchor_n, 0) << "the anchor is the incumbent";
  EXPECT_TRUE(row.same_signal);
  EXPECT_FALSE(row.moved_in_flight);
  EXPECT_GT(row.tokens_spent, 0);
  EXPECT_TRUE(row.settings.valid());
  EXPECT_EQ(static_cast<std::int64_t>(w.store->evidence(v).size()), row.n);
  EXPECT_THAT(row.reason_text, HasSubstr("for the base; being worse by 5 points or more is excluded (E "));
  EXPECT_EQ(w.host->holds(v), 1) << "held for serving, no longer for the evaluation";
}

TEST_F(EvaluatorTest, RejectsAWorseOneAndTheIncumbentServesOn) {
  use(gate_preset(GateProfile::kDemo));
  answers->percent[kBaseVersion] = 80;
  const VersionId v = w.add_candidate();
  answers->percent[v] = 20;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kReject);
  EXPECT_EQ(decided[0].reason_code, "not_better");
  EXPECT_EQ(w.host->serving(), kBaseVersion);
  EXPECT_EQ(w.state(v), S::kRejected);
  EXPECT_EQ(w.host->holds(v), 0);
}

TEST_F(EvaluatorTest, InvariantsStopItBeforeAnyPair) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 100;
  answers->kl[kBaseVersion] = 4.3;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "kl_incumbent");
  EXPECT_EQ(decided[0].stage, "invariants");
  EXPECT_TRUE(w.store->evidence(v).empty());
  EXPECT_THAT(decided[0].invariants_json, HasSubstr("\"kl_base\""));
}

TEST_F(EvaluatorTest, TheSameAnswersAreNoChange) {
  use(gate_preset(GateProfile::kDemo));
  answers->all_alike = true;
  answers->percent[kBaseVersion] = 100;
  const VersionId v = w.add_candidate();
  answers->percent[v] = 100;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "no_change");
}

TEST_F(EvaluatorTest, DamagedOrUnloadableBytesAreRejected) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId damaged = w.add_candidate();
  w.damage(damaged);
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "unusable");
  EXPECT_THAT(decided[0].reason_text, HasSubstr("damaged"));
  const VersionId unbound = w.add_candidate();
  w.host->set_unloadable(unbound);
  evaluator->notify();
  ASSERT_TRUE(evaluator->wait_idle(soon()));
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[1].reason_code, "unusable");
}

TEST_F(EvaluatorTest, TheProtectedMetricIsGuarded) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 50;
  answers->protected_percent[v] = 20;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "protected_harm") << decided[0].reason_text;
  EXPECT_THAT(decided[0].protected_json, HasSubstr("names the topic"));
}

TEST_F(EvaluatorTest, TheNewestIsMeasuredOlderOnesAreSuperseded) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId old = w.add_candidate(), newest = w.add_candidate();
  answers->percent[newest] = 95;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].version, newest);
  EXPECT_EQ(w.state(old), S::kSuperseded);
}

TEST_F(EvaluatorTest, TheAnchorIsMeasuredAndItsAnswersAreKept) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId first = w.add_candidate();
  answers->percent[first] = 70;
  run();
  ASSERT_EQ(w.host->serving(), first);
  for (int i = 0; i < 3; ++i) {
    const VersionId next = w.add_candidate(first);
    answers->percent[next] = 10;
    evaluator->notify();
    ASSERT_TRUE(evaluator->wait_idle(soon()));
    EXPECT_GT(decided.back().anchor_n, 0);
    EXPECT_EQ(decided.back().anchor_n, decided.back().n);
  }
  const int answered = (answers->started[{kBaseVersion, Purpose::kGate}]);
  EXPECT_LE(answered, 200) << "no prompt was put to the anchor twice";
  EXPECT_LT((answers->started[{kBaseVersion, Purpose::kProbe}]), 40) << "probe answers of the base are kept";
}

TEST_F(EvaluatorTest, ReplayGivesTheSameVerdictToTheBit) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId good = w.add_candidate();
  answers->percent[good] = 90;
  run();
  const VersionId bad = w.add_candidate(good);
  answers->percent[bad] = 30;
  evaluator->notify();
  ASSERT_TRUE(evaluator->wait_idle(soon()));
  ASSERT_EQ(decided.size(), 2u);
  restart();
  const GateSettings settings = stored_gate_settings(*w.store)->settings;
  for (const DecisionRow& row : decided) {
    const auto evidence = load_evidence(*w.store, row);
    ASSERT_TRUE(evidence.ok()) << evidence.status().message();
    const Decision again = decide(settings, *evidence);
    EXPECT_EQ(again.reason_text, row.reason_text);
    EXPECT_EQ(again.log_e, row.log_e);
    EXPECT_EQ(again.log_f, row.log_f);
    EXPECT_EQ(again.lo, row.lo);
    EXPECT_EQ(again.log_ha, row.log_ha);
  }
  const auto same = what_if(*w.store, settings, 50);
  ASSERT_EQ(same.size(), 2u);
  EXPECT_FALSE(same[0].differs);
  EXPECT_FALSE(same[1].differs);
  GateSettings strict = settings;
  strict.protected_alpha = 0.01;
  EXPECT_TRUE(what_if(*w.store, strict, 50)[0].differs);
}

TEST_F(EvaluatorTest, AThresholdMovedInFlightCounts) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 90;
  int pairs = 0;
  SettingsId moved;
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    if (version == v && prompt.id.rfind("held", 0) == 0 && ++pairs == 10) {
      GateSettings s = gate_preset(GateProfile::kDemo);
      s.n_min = 80;
      moved = store_gate_settings(*w.store, s, "operator", "be surer").value();
    }
    return {};
  };
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].n, 80);
  EXPECT_TRUE(decided[0].moved_in_flight);
  EXPECT_EQ(decided[0].settings, moved);
}

TEST_F(EvaluatorTest, PauseStandsStillAndResumeGoesOn) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 90;
  std::atomic<int> pairs{0};
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    if (version == v && prompt.id.rfind("held", 0) == 0 && ++pairs == 12) evaluator->pause();
    return {};
  };
  evaluator->start();
  while (evaluator->state().phase != EvaluatorState::Phase::kPaused) std::this_thread::yield();
  EXPECT_TRUE(decided.empty());
  EXPECT_EQ(w.state(v), S::kEvaluating);
  evaluator->resume();
  ASSERT_TRUE(evaluator->wait_idle(soon()));
  ASSERT_EQ(decided.size(), 1u);
  std::int64_t index = 0;
  for (const EvidenceRow& row : w.store->evidence(v)) {
    EXPECT_EQ(row.index, index++) << "every prompt once, in order";
    EXPECT_EQ(row.attempt, 0);
  }
}

TEST_F(EvaluatorTest, AStoppedEvaluationGoesOnAfterARestartToTheSameVerdict) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 75;
  int pairs = 0;
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    if (version == v && prompt.id.rfind("held", 0) == 0 && ++pairs == 14) evaluator->pause();
    return {};
  };
  evaluator->start();
  while (evaluator->state().phase != EvaluatorState::Phase::kPaused) std::this_thread::yield();
  evaluator->stop();
  const std::size_t before = w.store->evidence(v).size();
  EXPECT_GT(before, 5u);
  restart();
  answers->percent[v] = 75;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(answers->started[(std::pair(v, Purpose::kProbe))], 0) << "stage 1 was kept";
  const DecisionRow interrupted = decided[0];
  EXPECT_EQ(w.store->evidence(v).back().attempt, 0);

  // The same candidate id in a fresh workspace, without an interruption.
  Workspace other;
  FormulaAnswers other_answers(*other.store);
  ASSERT_TRUE(store_gate_settings(*other.store, gate_preset(GateProfile::kDemo), "test", "a test").ok());
  const VersionId same = other.add_candidate();
  ASSERT_EQ(same, v);
  other_answers.percent[same] = 75;
  std::vector<DecisionRow> rows;
  EvaluatorOptions options = testing::evaluator_options();
  options.on_decision = [&](const DecisionRow& row) { rows.push_back(row); };
  Evaluator straight(*other.store, *other.registry, other_answers, options);
  straight.start();
  ASSERT_TRUE(straight.wait_idle(soon()));
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].log_e, interrupted.log_e);
  EXPECT_EQ(rows[0].n, interrupted.n);
  EXPECT_EQ(rows[0].reason_text, interrupted.reason_text);
}

TEST_F(EvaluatorTest, AChangeOfTheIncumbentStartsAnew) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId first = w.add_candidate();
  answers->percent[first] = 70;
  run();
  ASSERT_EQ(w.host->serving(), first);
  const VersionId v = w.add_candidate(kBaseVersion, 5);
  answers->percent[v] = 95;
  int pairs = 0;
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    if (version == v && prompt.id.rfind("held", 0) == 0 && ++pairs == 8) {
      EXPECT_TRUE(w.act(ManualAction::kRollback, kBaseVersion).ok());
    }
    return {};
  };
  evaluator->notify();
  ASSERT_TRUE(evaluator->wait_idle(soon()));
  ASSERT_EQ(decided.size(), 2u);
  EXPECT_EQ(decided[1].incumbent, kBaseVersion);
  const auto rows = w.store->evidence(v);
  EXPECT_EQ(rows.back().attempt, 1);
  EXPECT_EQ(rows.back().incumbent, kBaseVersion);
  std::set<std::string> first_prompts, second_prompts;
  for (const EvidenceRow& row : rows) (row.attempt == 0 ? first_prompts : second_prompts).insert(row.prompt_id);
  for (const std::string& id : first_prompts) EXPECT_FALSE(second_prompts.contains(id)) << "used prompts come last";
}

TEST_F(EvaluatorTest, BrokenInfrastructureVoidsAndHolds) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 100;
  answers->on_start = [&](VersionId, const TaskPrompt& prompt) -> Status {
    return prompt.id.rfind("held", 0) == 0 ? unavailable("the store is full") : Status();
  };
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kHold);
  EXPECT_EQ(decided[0].reason_code, "judge_unhealthy");
  EXPECT_EQ(decided[0].voids, 6);
  EXPECT_THAT(w.store->evidence(v)[0].void_reason, HasSubstr("candidate: the store is full"));
}

TEST_F(EvaluatorTest, AnswersThatBreakTheVersionCountAsWorst) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 100;
  answers->percent[kBaseVersion] = 60;
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    const bool pair = version == v && prompt.id.rfind("held", 0) == 0;
    return pair ? internal_error("no number").with(Reason::kNotFinite) : Status();
  };
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kReject);
  EXPECT_EQ(decided[0].voids, 0);
  EXPECT_EQ(decided[0].candidate_k, 0);
}

TEST_F(EvaluatorTest, NonFiniteProbesAreUnusable) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->on_start = [&](VersionId version, const TaskPrompt&) -> Status {
    return version == v ? internal_error("no number").with(Reason::kNotFinite) : Status();
  };
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].reason_code, "unusable");
}

TEST_F(EvaluatorTest, FrozenStandsStillAndNeverPromotes) {
  use(gate_preset(GateProfile::kDemo));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 100;
  int pairs = 0;
  answers->on_start = [&](VersionId version, const TaskPrompt& prompt) -> Status {
    if (version == v && prompt.id.rfind("held", 0) == 0 && ++pairs == 10) {
      EXPECT_TRUE(w.act(ManualAction::kFreeze).ok());
    }
    return {};
  };
  evaluator->start();
  while (evaluator->state().phase != EvaluatorState::Phase::kFrozen) std::this_thread::yield();
  EXPECT_TRUE(decided.empty());
  EXPECT_EQ(w.host->serving(), kBaseVersion);
  ASSERT_TRUE(w.act(ManualAction::kUnfreeze).ok());
  evaluator->notify();
  ASSERT_TRUE(evaluator->wait_idle(soon()));
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(w.host->serving(), v);
}

TEST_F(EvaluatorTest, ProfileOffPromotesForced) {
  use(gate_preset(GateProfile::kOff));
  const VersionId v = w.add_candidate();
  answers->percent[v] = 0;
  run();
  ASSERT_EQ(decided.size(), 1u);
  EXPECT_EQ(decided[0].verdict, Verdict::kPromote);
  EXPECT_TRUE(decided[0].forced);
  EXPECT_TRUE(w.registry->unmet_limits(v).forced);
}

TEST(EvidencePlan, OnePromptAGroupInAnOrderFixedByTheSeed) {
  std::vector<TaskPrompt> pool;
  for (int i = 0; i < 30; ++i) pool.push_back({std::to_string(i), "t" + std::to_string(i), "", {}, "g" + std::to_string(i / 3)});
  const auto a = plan_pairs(pool, 1), b = plan_pairs(pool, 2);
  EXPECT_EQ(a.size(), 10u);
  EXPECT_EQ(a, plan_pairs(pool, 1));
  EXPECT_NE(a, b);
  std::set<std::string> groups;
  for (const std::size_t i : a) EXPECT_TRUE(groups.insert(pool[i].group).second);
}

TEST(EvidenceSplit, ATenthIsHeldOutByHash) {
  int held = 0;
  for (int i = 0; i < 10000; ++i) held += split_of("salt", "conversation " + std::to_string(i)) == Split::kHeldOut;
  EXPECT_NEAR(held, 1000, 100);
  EXPECT_EQ(split_bucket("salt", "a"), split_bucket("salt", "a"));
  EXPECT_EQ(split_of("salt", "x", 100), Split::kHeldOut);
  EXPECT_EQ(split_of("salt", "x", 0), Split::kTrain);
}

}  // namespace
}  // namespace sluice
