// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <thread>

#include "base/seeds.h"
#include "release_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::Workspace;
using S = VersionState;

TEST(Registry, StartsWithTheBase) {
  Workspace w;
  EXPECT_EQ(w.registry->serving(), kBaseVersion);
  EXPECT_EQ(w.host->serving(), kBaseVersion);
  EXPECT_FALSE(w.registry->frozen());
  EXPECT_EQ(w.registry->anchor(), kBaseVersion);
  EXPECT_TRUE(w.registry->make_pass(kBaseVersion).ok());
  EXPECT_EQ(w.registry->make_pass(VersionId{9}).code(), Code::kNotFound);
}

TEST(Registry, PromotionIsDurableThenVisible) {
  Workspace w;
  const VersionId v = w.add_candidate();
  const auto row = w.judge(v, Verdict::kPromote);
  ASSERT_TRUE(row.ok()) << row.status().message();
  EXPECT_EQ(row->kind, "gate");
  EXPECT_FALSE(row->hash.empty());
  EXPECT_EQ(w.host->serving(), v);
  EXPECT_EQ(w.state(v), S::kServing);
  EXPECT_EQ(w.state(kBaseVersion), S::kRetired);
  EXPECT_EQ(w.host->published().back(), row->id);
  ASSERT_TRUE(w.reopen().ok());
  EXPECT_EQ(w.host->serving(), v);
}

TEST(Registry, RejectAndHoldKeepTheIncumbent) {
  Workspace w;
  const VersionId a = w.add_candidate(), b = w.add_candidate();
  ASSERT_TRUE(w.judge(b, Verdict::kReject).ok());
  EXPECT_EQ(w.state(b), S::kRejected);
  EXPECT_EQ(w.state(a), S::kSuperseded) << "the newest waiting candidate is measured, older ones are not";
  const VersionId c = w.add_candidate();
  ASSERT_TRUE(w.judge(c, Verdict::kHold).ok());
  EXPECT_EQ(w.state(c), S::kHeld);
  EXPECT_EQ(w.host->serving(), kBaseVersion);
}

// The trainer's head returns to the incumbent: what it wrote further along the line is void, at any depth.
TEST(Registry, ARejectTakesTheRestOfItsLineAlong) {
  Workspace w;
  const VersionId rejected = w.add_candidate(kBaseVersion, 3);
  ASSERT_TRUE(w.registry->begin_evaluation(rejected).ok());
  const VersionId child = w.add_candidate(rejected, 6), grandchild = w.add_candidate(child, 9);
  const VersionId sibling = w.add_candidate(kBaseVersion, 3);
  ASSERT_TRUE(w.registry->apply(w.verdict(rejected, Verdict::kReject)).ok());
  EXPECT_EQ(w.state(child), S::kSuperseded);
  EXPECT_EQ(w.state(grandchild), S::kSuperseded);
  EXPECT_EQ(w.state(sibling), S::kCandidate) << "another line is not touched";
}

TEST(Registry, ARejectByHandTakesTheLineAlongToo) {
  Workspace w;
  const VersionId rejected = w.add_candidate();
  const VersionId child = w.add_candidate(rejected, 6);
  ASSERT_TRUE(w.act(ManualAction::kReject, rejected).ok());
  EXPECT_EQ(w.state(child), S::kSuperseded);
}

TEST(Registry, OneEvaluationAtATimeAndItIsFoundAgain) {
  Workspace w;
  const VersionId a = w.add_candidate();
  ASSERT_TRUE(w.registry->begin_evaluation(a).ok());
  const VersionId b = w.add_candidate();
  EXPECT_EQ(w.registry->begin_evaluation(b).code(), Code::kConflict);
  ASSERT_TRUE(w.reopen().ok());
  EXPECT_EQ(w.registry->evaluating(), a);
  EXPECT_TRUE(w.registry->begin_evaluation(a).ok());
  EXPECT_EQ(w.registry->newest_candidate(), b);
}

TEST(Registry, AVerdictOnAnOutdatedComparisonIsRefused) {
  Workspace w;
  const VersionId a = w.promoted();
  const VersionId b = w.add_candidate(a);
  ASSERT_TRUE(w.registry->begin_evaluation(b).ok());
  GateVerdict verdict = w.verdict(b, Verdict::kPromote);
  verdict.row.incumbent = kBaseVersion;
  EXPECT_EQ(w.registry->apply(verdict).code(), Code::kConflict);
  EXPECT_EQ(w.host->serving(), a);
  EXPECT_EQ(w.registry->apply(w.verdict(a, Verdict::kPromote)).code(), Code::kConflict) << "a is not evaluating";
}

TEST(Registry, DamagedBytesNeverServeNotEvenByForce) {
  Workspace w;
  const VersionId v = w.add_candidate();
  w.damage(v);
  EXPECT_EQ(w.judge(v, Verdict::kPromote).code(), Code::kCorrupt);
  EXPECT_EQ(w.act(ManualAction::kPromote, v).code(), Code::kCorrupt);
  EXPECT_EQ(w.host->serving(), kBaseVersion);
  EXPECT_EQ(w.store->decisions(-1, 100).size(), 1u) << "only the workspace's own first row";
}

TEST(Registry, AFailedPublicationIsTakenBackByADecision) {
  Workspace w;
  const VersionId a = w.promoted();
  const VersionId b = w.add_candidate(a);
  ASSERT_TRUE(w.registry->begin_evaluation(b).ok());
  w.host->fail_next_publish();
  EXPECT_EQ(w.registry->apply(w.verdict(b, Verdict::kPromote)).code(), Code::kUnavailable);
  EXPECT_EQ(w.host->serving(), a);
  EXPECT_EQ(w.registry->serving(), a);
  EXPECT_EQ(w.state(b), S::kQuarantined);
  const DecisionRow last = w.store->decisions(-1, 100).back();
  EXPECT_EQ(last.reason_code, "publish_failed");
  EXPECT_TRUE(last.automatic);
}

TEST(Registry, ForcedIsWhatTheGateDidNotPass) {
  Workspace w;
  const VersionId unmeasured = w.add_candidate();
  EXPECT_TRUE(w.registry->unmet_limits(unmeasured).forced);
  const auto forced = w.act(ManualAction::kPromote, unmeasured);
  ASSERT_TRUE(forced.ok());
  EXPECT_TRUE(forced->forced);
  EXPECT_EQ(forced->kind, "manual");
  EXPECT_THAT(forced->reason_text, HasSubstr("the gate has not measured"));
  const VersionId passed = w.promoted();
  EXPECT_FALSE(w.registry->unmet_limits(passed).forced);
  const auto back = w.act(ManualAction::kRollback, unmeasured);
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->forced) << "a roll-back to a forced version stays marked";
  EXPECT_EQ(back->kind, "rollback");
  const auto again = w.act(ManualAction::kRollback, passed);
  ASSERT_TRUE(again.ok());
  EXPECT_FALSE(again->forced);
}

TEST(Registry, ManualActionsNeedActorAndNote) {
  Workspace w;
  const VersionId v = w.add_candidate();
  EXPECT_THAT(w.registry->act({ManualAction::kPromote, v, "", "x", {}, {}}).status().message(), HasSubstr("\"actor\""));
  EXPECT_THAT(w.registry->act({ManualAction::kPromote, v, "x", "", {}, {}}).status().message(), HasSubstr("\"note\""));
  EXPECT_EQ(w.act(ManualAction::kPromote, VersionId{77}).code(), Code::kNotFound);
  for (const ManualAction a : {ManualAction::kPromote, ManualAction::kFreeze, ManualAction::kPinAnchor}) {
    EXPECT_EQ(parse_manual_action(manual_action_name(a)).value(), a);
  }
  EXPECT_FALSE(parse_manual_action("delete").ok());
}

TEST(Registry, OnlyLegalTransitions) {
  Workspace w;
  const VersionId v = w.add_candidate();
  EXPECT_EQ(w.act(ManualAction::kRollback, v).code(), Code::kConflict) << "it never served";
  EXPECT_EQ(w.act(ManualAction::kHold, v).code(), Code::kConflict) << "nothing is measured";
  EXPECT_EQ(w.act(ManualAction::kPinAnchor, v).code(), Code::kConflict);
  EXPECT_EQ(w.act(ManualAction::kRollback, kBaseVersion).code(), Code::kConflict) << "it serves already";
  EXPECT_EQ(w.act(ManualAction::kPromote, kBaseVersion).code(), Code::kConflict);
  ASSERT_TRUE(w.act(ManualAction::kReject, v).ok());
  EXPECT_EQ(w.act(ManualAction::kReject, v).code(), Code::kConflict);
  ASSERT_TRUE(w.act(ManualAction::kPromote, v).ok()) << "an operator may force a rejected one";
}

// What was overtaken and what is forbidden are both conflicts; the reason tells them apart.
TEST(Registry, ARefusalSaysWhetherTheOperatorWasLate) {
  Workspace w;
  const VersionId v = w.add_candidate();
  const DecisionId seen = w.store->last_decision_id();
  ASSERT_TRUE(w.act(ManualAction::kReject, v).ok());
  const auto late = w.registry->act({ManualAction::kReject, v, "operator", "a test", SessionId(), seen});
  EXPECT_EQ(late.code(), Code::kConflict);
  EXPECT_EQ(late.status().reason(), Reason::kStale);
  const auto illegal = w.registry->act({ManualAction::kReject, v, "operator", "a test", SessionId(), w.store->last_decision_id()});
  EXPECT_EQ(illegal.code(), Code::kConflict);
  EXPECT_EQ(illegal.status().reason(), Reason::kNone);
}

TEST(Registry, FrozenPromotesByRollBackOnly) {
  Workspace w;
  const VersionId a = w.promoted();
  const VersionId b = w.add_candidate(a);
  ASSERT_TRUE(w.registry->begin_evaluation(b).ok());
  ASSERT_TRUE(w.act(ManualAction::kFreeze).ok());
  EXPECT_EQ(w.act(ManualAction::kFreeze).code(), Code::kConflict);
  EXPECT_EQ(w.registry->apply(w.verdict(b, Verdict::kPromote)).code(), Code::kConflict);
  EXPECT_EQ(w.act(ManualAction::kPromote, b).code(), Code::kConflict);
  ASSERT_TRUE(w.reopen().ok());
  EXPECT_TRUE(w.registry->frozen()) << "freezing survives a restart";
  ASSERT_TRUE(w.act(ManualAction::kRollback, kBaseVersion).ok());
  EXPECT_EQ(w.host->serving(), kBaseVersion);
  EXPECT_EQ(w.state(b), S::kSuperseded) << "it grew out of the version that was left";
  ASSERT_TRUE(w.act(ManualAction::kUnfreeze).ok());
  ASSERT_TRUE(w.act(ManualAction::kRollback, a).ok());
  EXPECT_EQ(w.host->serving(), a);
}

TEST(Registry, TheAnchorIsPinnedByADecision) {
  Workspace w;
  const VersionId a = w.promoted();
  ASSERT_TRUE(w.act(ManualAction::kPinAnchor, a).ok());
  ASSERT_TRUE(w.reopen().ok());
  EXPECT_EQ(w.registry->anchor(), a);
}

TEST(Registry, HarmRollsBackToTheLastProvenVersion) {
  Workspace w;
  EXPECT_EQ(w.registry->roll_back_for_harm("harm", "x").code(), Code::kConflict);
  const VersionId proven = w.promoted();
  ASSERT_TRUE(w.store->set_version_proven(proven).ok());
  const VersionId later = w.promoted(), harmful = w.promoted();
  const VersionId child = w.add_candidate(harmful);
  const auto row = w.registry->roll_back_for_harm("harm", "replies are empty");
  ASSERT_TRUE(row.ok()) << row.status().message();
  EXPECT_TRUE(row->automatic);
  EXPECT_EQ(row->kind, "rollback");
  EXPECT_EQ(w.host->serving(), proven);
  EXPECT_EQ(w.state(harmful), S::kQuarantined);
  EXPECT_EQ(w.state(later), S::kRetired);
  EXPECT_EQ(w.state(child), S::kSuperseded);
  EXPECT_EQ(w.act(ManualAction::kRollback, harmful).code(), Code::kConflict);
}

TEST(Registry, DamagedServingVersionAtStartFallsBack) {
  Workspace w;
  const VersionId proven = w.promoted();
  ASSERT_TRUE(w.store->set_version_proven(proven).ok());
  const VersionId bad = w.promoted();
  w.damage(bad);
  const auto first = w.reopen();
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_TRUE(first->recovered);
  EXPECT_EQ(first->serving, proven);
  EXPECT_EQ(w.host->serving(), proven);
  EXPECT_THAT(first->note, HasSubstr("damaged"));
  const DecisionRow row = w.store->decisions(-1, 100).back();
  EXPECT_EQ(row.kind, "startup");
  EXPECT_EQ(row.version, proven);

  std::filesystem::remove_all(w.store->adapter_folder(proven));
  const auto second = w.reopen();
  ASSERT_TRUE(second.ok());
  EXPECT_EQ(second->serving, kBaseVersion);
  EXPECT_TRUE(w.store->verify().empty());
}

TEST(Registry, OldFilesGoServedOnesStay) {
  RegistryOptions options;
  options.keep_last = 2;
  Workspace w(options);
  const VersionId served = w.promoted();
  std::vector<VersionId> rejected;
  for (int i = 0; i < 5; ++i) {
    rejected.push_back(w.add_candidate(served));
    ASSERT_TRUE(w.judge(rejected.back(), Verdict::kReject).ok());
  }
  const auto there = [&](VersionId v) { return std::filesystem::exists(w.store->adapter_folder(v)); };
  EXPECT_FALSE(there(rejected[0]));
  EXPECT_FALSE(there(rejected[2]));
  EXPECT_TRUE(there(rejected[3]));
  EXPECT_TRUE(there(rejected[4]));
  EXPECT_TRUE(there(served));
  EXPECT_EQ(w.state(rejected[0]), S::kPruned);
  EXPECT_EQ(w.registry->make_pass(rejected[0]).code(), Code::kNotFound);
  EXPECT_EQ(w.act(ManualAction::kPromote, rejected[0]).code(), Code::kConflict);
}

TEST(Registry, PromotedVersionsStayLoadedUpToALimit) {
  RegistryOptions options;
  options.keep_resident = 3;
  Workspace w(options);
  std::vector<VersionId> v;
  for (int i = 0; i < 5; ++i) v.push_back(w.promoted());
  EXPECT_EQ(w.host->holds(v[0]), 0);
  EXPECT_EQ(w.host->holds(v[1]), 0);
  EXPECT_EQ(w.host->holds(v[2]), 1);
  EXPECT_EQ(w.host->holds(v[4]), 1);
  ASSERT_TRUE(w.act(ManualAction::kRollback, v[3]).ok());
  EXPECT_EQ(w.host->holds(v[3]), 1) << "rolling back to a loaded version holds it once";
}

TEST(Registry, TellsDecisionsSwapsAndPinnableVersions) {
  std::vector<std::string> told;
  std::set<VersionId> pinnable;
  Registry* registry = nullptr;
  RegistryOptions options;
  options.on_decision = [&](const DecisionRow& row) {
    told.push_back(row.reason_code);
    EXPECT_FALSE(registry->frozen()) << "a callback may ask the registry";
  };
  options.on_swap = [&](const SwapNotice& s) { told.push_back("swap " + std::to_string(s.to.value)); };
  options.on_pinnable = [&](std::set<VersionId> v) { pinnable = std::move(v); };
  Workspace w(options);
  registry = w.registry.get();
  told.clear();
  const VersionId a = w.promoted(), b = w.promoted();
  EXPECT_EQ(told, (std::vector<std::string>{"better", "swap 1", "better", "swap 2"}));
  EXPECT_EQ(pinnable, (std::set<VersionId>{kBaseVersion, a, b}));
  ASSERT_TRUE(w.registry->roll_back_for_harm("harm", "x").ok());
  EXPECT_EQ(pinnable, (std::set<VersionId>{kBaseVersion, a}));
}

TEST(Registry, ChangesFromManyThreadsRunOneAfterAnother) {
  Workspace w;
  const VersionId a = w.promoted();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 10; ++i) {
        // Whether each succeeds depends on who came first; that is the point.
        (void)w.act(ManualAction::kRollback, (t + i) % 2 == 0 ? a : kBaseVersion);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(w.host->serving(), w.registry->serving());
  EXPECT_TRUE(w.store->verify().empty());
}

// No sequence of operations, crashes and damage makes a version answer without a committed promote for it.
class RandomWalk {
 public:
  explicit RandomWalk(std::uint64_t seed) : draws_(seed) {
    RegistryOptions options;
    options.keep_last = 3;
    options.keep_resident = 2;
    w_ = std::make_unique<Workspace>(options);
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      step();
      check(i);
      if (::testing::Test::HasFatalFailure()) return;
    }
    EXPECT_THAT(w_->store->verify(), ::testing::IsEmpty());
    EXPECT_GE(promotions_, 3) << "the walk did promote";
    EXPECT_GT(refused_, steps / 40) << "the walk did try what is not allowed";
  }

 private:
  VersionId any_version() {
    const auto versions = w_->store->versions();
    return versions[draws_.below(versions.size())].id;
  }
  Verdict any_verdict() { return static_cast<Verdict>(draws_.below(3)); }
  ManualAction any_action() {
    if (w_->registry->frozen() && draws_.below(2) == 0) return ManualAction::kUnfreeze;
    return static_cast<ManualAction>(draws_.below(7));
  }

  void note(bool ok, bool promotes) {
    promotions_ += ok && promotes;
    refused_ += !ok;
  }

  void step() {
    switch (draws_.below(12)) {
      case 0: case 1:
        w_->add_candidate(w_->registry->serving(), static_cast<std::int64_t>(draws_.below(9)));
        break;
      case 2: case 3: case 4:
        if (const auto newest = w_->registry->newest_candidate()) note(w_->registry->begin_evaluation(*newest).ok(), false);
        break;
      case 5: case 6: {
        const VersionId target = w_->registry->evaluating().value_or(any_version());
        const Verdict verdict = any_verdict();
        note(w_->registry->apply(w_->verdict(target, verdict)).ok(), verdict == Verdict::kPromote);
        break;
      }
      case 7: case 8: {
        const ManualAction action = any_action();
        note(w_->act(action, any_version()).ok(), action == ManualAction::kPromote || action == ManualAction::kRollback);
        break;
      }
      case 9: note(w_->registry->roll_back_for_harm("harm", "by chance").ok(), true); break;
      case 10:
        if (draws_.below(10) == 0) w_->host->fail_next_publish();
        if (draws_.below(6) == 0) w_->damage_if_there(any_version());
        break;
      case 11: ASSERT_TRUE(w_->reopen().ok()); break;
    }
  }

  void check(int i) {
    const VersionId answers = w_->host->serving();
    ASSERT_EQ(answers, w_->store->serving_version()) << "step " << i;
    int serving = 0;
    for (const VersionRow& row : w_->store->versions()) {
      serving += row.state == S::kServing;
      ASSERT_EQ(row.state == S::kServing, row.id == answers) << "step " << i;
    }
    ASSERT_EQ(serving, 1) << "step " << i;
    bool decided = false;
    for (const DecisionRow& row : w_->store->decisions(-1, 1000000)) {
      decided |= row.version == answers && row.verdict == Verdict::kPromote;
    }
    ASSERT_TRUE(decided) << "step " << i << ": v" << answers.value << " answers without a promote";
  }

  SplitMix64 draws_;
  std::unique_ptr<Workspace> w_;
  int promotions_ = 0, refused_ = 0;
};

TEST(RegistryProperty, NothingServesWithoutACommittedPromote) {
  const char* scale = std::getenv("SLUICE_PROPERTY_SCALE");
  const int walks = scale != nullptr && std::atoi(scale) > 0 ? 2 * std::atoi(scale) : 2;
  for (int walk = 0; walk < walks; ++walk) RandomWalk(static_cast<std::uint64_t>(walk)).run(400);
}

// Each names the decision it saw as the newest; whoever comes second saw what is no longer so.
TEST(Registry, OfTwoDecisionsOnTheSameStateOneIsMade) {
  Workspace w;
  const VersionId a = w.add_candidate(), b = w.add_candidate();
  const DecisionId seen = w.store->last_decision_id();
  const auto reject = [&](VersionId v) {
    return w.registry->act({ManualAction::kReject, v, "operator", "because of a test", SessionId(), seen}).code();
  };
  Code first = Code::kInternal, second = Code::kInternal;
  std::thread other([&] { first = reject(a); });
  second = reject(b);
  other.join();
  EXPECT_EQ(std::set<Code>({first, second}), std::set<Code>({Code::kOk, Code::kConflict}));
  EXPECT_EQ((w.state(a) == VersionState::kRejected) + (w.state(b) == VersionState::kRejected), 1);
}

}  // namespace
}  // namespace sluice
