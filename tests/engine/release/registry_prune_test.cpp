// SPDX-License-Identifier: GPL-3.0-or-later
// Registry::prune (gate.md §1): whose files may go, what goes with them, what a restart makes of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "release/registry.h"
#include "release_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::Workspace;
using S = VersionState;

bool has_files(const Workspace& w, VersionId version) { return std::filesystem::exists(w.store->adapter_folder(version)); }

TEST(RegistryPrune, TakesTheFilesAndKeepsTheRow) {
  Workspace w;
  const VersionId rejected = w.add_candidate();
  ASSERT_TRUE(w.judge(rejected, Verdict::kReject).ok());
  const VersionId held = w.add_candidate();
  ASSERT_TRUE(w.judge(held, Verdict::kHold).ok());
  const VersionId superseded = w.add_candidate(), newer = w.add_candidate();
  ASSERT_TRUE(w.judge(newer, Verdict::kReject).ok());
  ASSERT_EQ(w.state(superseded), S::kSuperseded);
  for (const VersionId v : {rejected, held, superseded}) {
    EXPECT_TRUE(w.registry->prune(v).ok());
    EXPECT_EQ(w.state(v), S::kPruned);
    EXPECT_FALSE(has_files(w, v));
    EXPECT_TRUE(w.registry->prune(v).ok()) << "once more is no mistake";
    EXPECT_EQ(w.registry->make_pass(v).code(), Code::kNotFound);
    EXPECT_EQ(w.act(ManualAction::kPromote, v).code(), Code::kConflict);
  }
  EXPECT_TRUE(has_files(w, newer));
  EXPECT_THAT(w.store->verify(), ::testing::IsEmpty());
  ASSERT_TRUE(w.reopen().ok());
  EXPECT_EQ(w.state(held), S::kPruned);
}

TEST(RegistryPrune, WhatIsNeededStays) {
  Workspace w;
  const VersionId waiting = w.add_candidate();
  EXPECT_EQ(w.registry->prune(waiting).code(), Code::kConflict) << "a candidate is rejected first";
  ASSERT_TRUE(w.registry->begin_evaluation(waiting).ok());
  EXPECT_EQ(w.registry->prune(waiting).code(), Code::kConflict);
  ASSERT_TRUE(w.registry->apply(w.verdict(waiting, Verdict::kPromote)).ok());
  EXPECT_EQ(w.registry->prune(waiting).code(), Code::kConflict) << "it serves";
  EXPECT_EQ(w.registry->prune(kBaseVersion).code(), Code::kConflict);
  EXPECT_EQ(w.registry->prune(VersionId(99)).code(), Code::kNotFound);

  const VersionId second = w.promoted();
  ASSERT_EQ(w.state(waiting), S::kRetired);
  ASSERT_TRUE(w.act(ManualAction::kPinAnchor, waiting).ok());
  const Status anchor = w.registry->prune(waiting);
  EXPECT_EQ(anchor.code(), Code::kConflict);
  EXPECT_THAT(anchor.message(), HasSubstr("is the anchor"));
  ASSERT_TRUE(w.act(ManualAction::kPinAnchor, second).ok());
  EXPECT_EQ(w.registry->prune(kBaseVersion).code(), Code::kConflict) << "the base stays also when it is no anchor";
  EXPECT_TRUE(w.registry->prune(waiting).ok());
  EXPECT_TRUE(has_files(w, second));
  EXPECT_EQ(w.host->serving(), second);
}

TEST(RegistryPrune, TheLastProvenVersionStays) {
  Workspace w;
  const VersionId proven = w.promoted();
  ASSERT_TRUE(w.store->set_version_proven(proven).ok());
  w.promoted();
  ASSERT_EQ(w.registry->last_proven(), proven);
  const Status refused = w.registry->prune(proven);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(), HasSubstr("last proven"));
  EXPECT_TRUE(has_files(w, proven));
}

TEST(RegistryPrune, OfSeveralAllOrNoneGo) {
  Workspace w;
  const VersionId rejected = w.add_candidate();
  ASSERT_TRUE(w.judge(rejected, Verdict::kReject).ok());
  const VersionId serving = w.promoted(), waiting = w.add_candidate();
  for (const VersionId needed : {serving, waiting, VersionId(99), kBaseVersion}) {
    const Status refused = w.registry->prune({rejected, needed});
    EXPECT_FALSE(refused.ok());
    EXPECT_EQ(refused.code(), needed == VersionId(99) ? Code::kNotFound : Code::kConflict);
    EXPECT_EQ(w.state(rejected), S::kRejected);
    EXPECT_TRUE(has_files(w, rejected));
  }
  ASSERT_TRUE(w.act(ManualAction::kReject, waiting).ok());
  EXPECT_TRUE(w.registry->prune({rejected, waiting}).ok());
  EXPECT_EQ(w.state(rejected), S::kPruned);
  EXPECT_EQ(w.state(waiting), S::kPruned);
}

TEST(RegistryPrune, LetsGoOfMemoryAndOfClientsPins) {
  std::set<VersionId> pinnable;
  RegistryOptions options;
  options.on_pinnable = [&](std::set<VersionId> v) { pinnable = std::move(v); };
  Workspace w(options);
  const VersionId a = w.promoted(), b = w.promoted();
  ASSERT_EQ(w.host->holds(a), 1);
  ASSERT_TRUE(w.registry->prune(a).ok());
  EXPECT_EQ(w.host->holds(a), 0);
  EXPECT_EQ(pinnable, (std::set<VersionId>{kBaseVersion, b}));
  EXPECT_EQ(w.act(ManualAction::kRollback, a).code(), Code::kConflict) << "its files are gone";
  EXPECT_EQ(w.host->serving(), b);
}

}  // namespace
}  // namespace sluice
