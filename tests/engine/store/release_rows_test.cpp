// SPDX-License-Identifier: GPL-3.0-or-later
// Version states, decisions and their chain (gate.md §1, §6).
#include <set>

#include "store/database.h"
#include "store_fixture.h"

namespace sluice {
namespace {

using S = VersionState;
constexpr S kAll[] = {S::kCandidate, S::kEvaluating, S::kHeld,       S::kCanary,      S::kServing,
                      S::kRetired,   S::kRejected,   S::kSuperseded, S::kQuarantined, S::kPruned};

class ReleaseRowsTest : public StoreTest {
 protected:
  void tamper(const std::string& sql) {
    auto db = Database::open(options().folder + "/sluice.db", Database::Mode::kWrite);
    ASSERT_TRUE(db.ok());
    db.value()->exec(sql);
    ASSERT_TRUE(db.value()->take_error().ok());
  }
};

// The table of gate.md §1, pair by pair.
const std::set<std::pair<S, S>>& legal_pairs() {
  static const std::set<std::pair<S, S>> pairs = {
      {S::kCandidate, S::kEvaluating},   {S::kCandidate, S::kSuperseded},  {S::kCandidate, S::kCanary},
      {S::kCandidate, S::kServing},      {S::kCandidate, S::kRejected},    {S::kEvaluating, S::kSuperseded},
      {S::kEvaluating, S::kRejected},    {S::kEvaluating, S::kHeld},       {S::kEvaluating, S::kCanary},
      {S::kEvaluating, S::kServing},     {S::kHeld, S::kEvaluating},       {S::kHeld, S::kCanary},
      {S::kHeld, S::kServing},           {S::kHeld, S::kRejected},         {S::kHeld, S::kPruned},
      {S::kCanary, S::kServing},         {S::kCanary, S::kQuarantined},    {S::kCanary, S::kHeld},
      {S::kServing, S::kQuarantined},    {S::kServing, S::kRetired},       {S::kRetired, S::kCanary},
      {S::kRetired, S::kServing},        {S::kRetired, S::kPruned},        {S::kRejected, S::kCanary},
      {S::kRejected, S::kServing},       {S::kRejected, S::kPruned},       {S::kSuperseded, S::kCanary},
      {S::kSuperseded, S::kServing},     {S::kSuperseded, S::kPruned},     {S::kQuarantined, S::kCanary},
      {S::kQuarantined, S::kServing},    {S::kQuarantined, S::kPruned}};
  return pairs;
}

TEST(LegalTransition, EveryPair) {
  for (S from : kAll) {
    for (S to : kAll) {
      EXPECT_EQ(legal_transition(from, to), legal_pairs().count({from, to}) == 1)
          << version_state_name(from) << " -> " << version_state_name(to);
    }
  }
}

TEST_F(ReleaseRowsTest, NewWorkspaceServesTheBaseByDecision) {
  EXPECT_EQ(store->serving_version(), kBaseVersion);
  const auto first = store->decisions(0, 10).at(0);
  EXPECT_EQ(first.kind, "startup");
  EXPECT_EQ(first.verdict, Verdict::kPromote);
  EXPECT_EQ(store->serving_decision()->decision(), first.id);
  EXPECT_EQ(store->version(kBaseVersion)->state, S::kServing);
  EXPECT_TRUE(store->verify().empty());
  const std::string salt = store->split_salt();
  EXPECT_EQ(salt.size(), 32u);
  open();
  EXPECT_EQ(store->split_salt(), salt);
  EXPECT_EQ(store->decisions(0, 10).size(), 1u);
}

// Through the store: without a decision only the event rows of the table pass, and only from their states.
TEST_F(ReleaseRowsTest, EventsChangeOnlyWhatNeedsNoVerdict) {
  const VersionId v = add_version();
  for (S to : {S::kHeld, S::kCanary, S::kServing, S::kRetired, S::kRejected, S::kQuarantined, S::kPruned, S::kCandidate}) {
    EXPECT_EQ(store->set_version_state(v, to).code(), Code::kConflict) << version_state_name(to);
  }
  EXPECT_TRUE(store->set_version_state(v, S::kEvaluating).ok());
  const VersionId w = add_version();
  EXPECT_FALSE(store->set_version_state(w, S::kEvaluating).ok());  // one at a time
  EXPECT_TRUE(store->set_version_state(v, S::kSuperseded).ok());
  EXPECT_TRUE(store->set_version_state(v, S::kPruned).ok());
  EXPECT_EQ(store->set_version_state(v, S::kEvaluating).code(), Code::kConflict);
  EXPECT_EQ(store->set_version_state(VersionId(77), S::kEvaluating).code(), Code::kNotFound);
}

TEST_F(ReleaseRowsTest, PromoteRetiresTheOldAndRollBackBringsItBack) {
  const VersionId v = add_version();
  ASSERT_TRUE(store->set_version_state(v, S::kEvaluating).ok());
  const auto promoted = store->commit_decision(promote(v));
  ASSERT_TRUE(promoted.ok()) << promoted.status().message();
  EXPECT_EQ(promoted->version(), v);
  EXPECT_EQ(promoted->previous(), kBaseVersion);
  EXPECT_EQ(store->serving_version(), v);
  EXPECT_EQ(store->version(kBaseVersion)->state, S::kRetired);
  DecisionWrite back = promote(kBaseVersion);
  back.row.kind = "rollback";
  back.states = {{v, S::kQuarantined}};
  ASSERT_TRUE(store->commit_decision(back).ok());
  EXPECT_EQ(store->serving_version(), kBaseVersion);
  EXPECT_EQ(store->version(v)->state, S::kQuarantined);
  open();
  EXPECT_EQ(store->serving_version(), kBaseVersion);
  EXPECT_EQ(store->serving_decision()->version(), kBaseVersion);
  EXPECT_TRUE(store->verify().empty());
}

TEST_F(ReleaseRowsTest, RefusedDecisionsLeaveNothing) {
  const VersionId v = add_version();
  DecisionWrite write = promote(v);
  write.row.verdict = Verdict::kReject;
  EXPECT_EQ(store->commit_decision(write).code(), Code::kInvalidArgument);  // only promote moves the pointer
  write = decide(v, Verdict::kHold);
  write.states = {{v, S::kRejected}};
  EXPECT_EQ(store->commit_decision(write).code(), Code::kConflict);  // the verdict does not fit the state
  write = decide(v, Verdict::kPromote);
  write.states = {{v, S::kServing}};
  EXPECT_EQ(store->commit_decision(write).code(), Code::kInvalidArgument);  // serving, but not in service
  write = promote(VersionId(55));
  EXPECT_EQ(store->commit_decision(write).code(), Code::kNotFound);
  write = promote(v);
  write.row.actor.clear();
  EXPECT_EQ(store->commit_decision(write).code(), Code::kInvalidArgument);
  write = decide(v, Verdict::kPromote);
  write.states = {{kBaseVersion, S::kRetired}};
  EXPECT_EQ(store->commit_decision(write).code(), Code::kConflict);  // nothing would serve
  EXPECT_EQ(store->decisions(0, 10).size(), 1u);
  EXPECT_EQ(store->serving_version(), kBaseVersion);
  EXPECT_EQ(store->version(kBaseVersion)->state, S::kServing);
}

TEST_F(ReleaseRowsTest, LastProvenIsKept) {
  const VersionId v = add_version();
  ASSERT_TRUE(store->commit_decision(promote(v)).ok());
  ASSERT_TRUE(store->set_version_proven(v).ok());
  const VersionId w = add_version();
  ASSERT_TRUE(store->commit_decision(promote(w)).ok());
  EXPECT_EQ(store->set_version_state(v, S::kPruned).code(), Code::kConflict);
  ASSERT_TRUE(store->set_version_proven(w).ok());
  EXPECT_TRUE(store->set_version_state(v, S::kPruned).ok());
  EXPECT_EQ(store->set_version_state(kBaseVersion, S::kPruned).code(), Code::kConflict);
  EXPECT_EQ(store->set_version_state(w, S::kPruned).code(), Code::kConflict);
  EXPECT_EQ(store->commit_decision(promote(v)).code(), Code::kConflict);  // its files are gone
}

TEST_F(ReleaseRowsTest, VersionIdsComeFromOneCounter) {
  const VersionId a = store->reserve_version().value();
  open();
  const VersionId b = store->reserve_version().value();
  EXPECT_EQ(b.value, a.value + 1);
  VersionRow row;
  row.id = VersionId(b.value + 1);
  EXPECT_EQ(store->add_version(row).code(), Code::kInvalidArgument);
  row.id = b;
  row.state = S::kServing;
  EXPECT_EQ(store->add_version(row).code(), Code::kInvalidArgument);
  row.state = S::kCandidate;
  EXPECT_TRUE(store->add_version(row).ok());
  EXPECT_EQ(store->add_version(row).code(), Code::kConflict);
  EXPECT_EQ(store->adapter_folder(b), options().folder + "/adapters/" + std::to_string(b.value));
}

TEST_F(ReleaseRowsTest, ChainTellsAnyChange) {
  for (int i = 0; i < 4; ++i) {
    const VersionId v = add_version();
    DecisionWrite write = decide(v, Verdict::kReject);
    write.row.mean_d = -0.125;
    write.states = {{v, S::kRejected}};
    ASSERT_TRUE(store->commit_decision(write).ok());
  }
  store.reset();
  tamper("UPDATE version SET label = 'x'");  // not part of the chain
  open();
  EXPECT_TRUE(store->verify_decisions().empty());
  const std::string free = "DROP TRIGGER decision_no_update; DROP TRIGGER decision_no_delete; ";
  store.reset();
  tamper(free + "UPDATE decision SET mean_d = 0.125 WHERE id = 3");
  open();
  auto problems = store->verify_decisions();
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_NE(problems[0].find("decision 3"), std::string::npos);
  store.reset();
  tamper("UPDATE decision SET mean_d = -0.125 WHERE id = 3; DELETE FROM decision WHERE id = 4");
  open();
  problems = store->verify_decisions();
  ASSERT_EQ(problems.size(), 2u);  // one is missing, and the next does not follow
  EXPECT_FALSE(store->verify().empty());
}

TEST_F(ReleaseRowsTest, DecisionsAndEvidenceCanNotBeRewritten) {
  store.reset();
  auto db = Database::open(options().folder + "/sluice.db", Database::Mode::kWrite).value();
  db->exec("UPDATE decision SET note = 'x'");
  EXPECT_FALSE(db->take_error().ok());
  db->exec("DELETE FROM decision");
  EXPECT_FALSE(db->take_error().ok());
}

TEST_F(ReleaseRowsTest, VerifyFindsAnAnswerWithoutADecision) {
  const VersionId v = add_version();
  auto row = make_record(SessionId());
  row.version = v;
  ASSERT_TRUE(store->add_record(row).ok());
  ASSERT_EQ(store->verify().size(), 1u);
  EXPECT_NE(store->verify()[0].find("before any promote"), std::string::npos);
}

}  // namespace
}  // namespace sluice
