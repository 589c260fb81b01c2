// SPDX-License-Identifier: GPL-3.0-or-later
// Which versions are resident, who may ask for them, and that a publish is seen at once or not at all.
#include <gmock/gmock.h>

#include <new>
#include <thread>

#include "base/sha256.h"
#include "engine/serve/serve_fixture.h"
#include "support/test_store.h"

namespace sluice::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kBytes = 1000;  // of a fake adapter

struct SlotsUnderTest {
  explicit SlotsUnderTest(std::int64_t pool = AdapterSlots::kPoolBytes, FakeModelOptions options = {})
      : model(FakeModel::make(std::move(options))),
        slots(model->adapter_loader(), [this](VersionId) { return folder.path(); }, pool) {
    write_fake_adapter(folder.path(), kBytes);
  }
  VersionId version() { return store.new_version(); }
  VersionId publish(VersionId v) {
    const Result<std::int64_t> micros = slots.publish(store.promote(v));
    EXPECT_TRUE(micros.ok()) << micros.status().message();
    return v;
  }

  TempFolder folder;
  TestStore store;
  std::shared_ptr<const FakeModel> model;
  AdapterSlots slots;
};

// An exception is a failed load, for those who wait for the same version too.
TEST(AdapterSlots, ALoadThatThrowsFailsAndMayBeTriedAgain) {
  FakeModelOptions options;
  auto broken = std::make_shared<std::atomic<bool>>(true);
  options.on_load = [broken](VersionId) -> Status {
    if (*broken) throw std::bad_alloc();
    return {};
  };
  SlotsUnderTest t(AdapterSlots::kPoolBytes, std::move(options));
  EXPECT_EQ(t.slots.prepare(VersionId(5), "").code(), Code::kInternal);
  *broken = false;
  EXPECT_TRUE(t.slots.prepare(VersionId(5), "").ok());
  t.slots.release(VersionId(5));
}

TEST(AdapterSlots, AVersionWithOtherWeightsThanRecordedIsNeverHeld) {
  SlotsUnderTest t;
  const Status other = t.slots.prepare(VersionId(5), std::string(64, '0'));
  EXPECT_EQ(other.code(), Code::kCorrupt);
  EXPECT_THAT(other.message(), HasSubstr("adapter version 5 is damaged"));
  EXPECT_THAT(t.slots.resident(), IsEmpty());
  ASSERT_TRUE(t.slots.prepare(VersionId(5), "").ok());
  EXPECT_TRUE(t.slots.prepare(VersionId(5), sha256_file(t.folder.path() + "/fake_adapter.txt").value()).ok());
  EXPECT_EQ(t.slots.prepare(VersionId(5), std::string(64, '0')).code(), Code::kCorrupt) << "nor is what is in memory taken for it";
  t.slots.release(VersionId(5));
  t.slots.release(VersionId(5));
}

TEST(AdapterSlots, LRA3_PreparedVersionsStayUntilReleasedAsOftenAsPrepared) {
  SlotsUnderTest t;
  ASSERT_TRUE(t.slots.prepare(VersionId(5), "").ok());
  ASSERT_TRUE(t.slots.prepare(VersionId(5), "").ok());
  EXPECT_EQ(t.model->loads(), 1);
  t.slots.release(VersionId(5));
  EXPECT_THAT(t.slots.resident(), ElementsAre(VersionId(5)));
  t.slots.release(VersionId(5));
  EXPECT_THAT(t.slots.resident(), IsEmpty());
  EXPECT_EQ(t.model->live_adapters(), 0) << "memory is back";
  EXPECT_TRUE(t.slots.prepare(kBaseVersion, "").ok());
  t.slots.release(kBaseVersion);
}

// One that served before its files were deleted, too: no roll-back goes there any more.
TEST(AdapterSlots, LRA3_ADeletedVersionGivesItsMemoryBack) {
  SlotsUnderTest t;
  const VersionId deleted = t.publish(t.version()), serving = t.publish(t.version());
  t.slots.set_pinnable({deleted, serving});
  EXPECT_THAT(t.slots.resident(), ElementsAre(deleted, serving)) << "for a roll-back";
  t.slots.set_pinnable({serving});
  EXPECT_EQ(t.slots.resolve(AdapterChoice::pinned(deleted)).code(), Code::kNotFound);
  EXPECT_THAT(t.slots.resident(), ElementsAre(serving));
  EXPECT_EQ(t.model->live_adapters(), 1);
}

TEST(AdapterSlots, FailedLoadsSayWhyAndLeaveNothing) {
  SlotsUnderTest t;
  t.publish(t.version());
  const VersionId serving = t.slots.serving();
  write_fake_adapter(t.folder.path() + "/elsewhere");
  std::filesystem::remove(t.folder.path() + "/fake_adapter.txt");
  EXPECT_EQ(t.slots.prepare(VersionId(9), "").code(), Code::kNotFound);
  EXPECT_EQ(t.slots.prepare(VersionId(), "").code(), Code::kInvalidArgument);
  const Result<std::int64_t> published = t.slots.publish(t.store.promote(t.version()));
  EXPECT_EQ(published.code(), Code::kNotFound);
  EXPECT_EQ(t.slots.serving(), serving) << "the incumbent serves on";
  EXPECT_THAT(t.slots.resident(), ElementsAre(serving));
}

TEST(AdapterSlots, ServingAndTheLastFourPromotedStayForARollBack) {
  SlotsUnderTest t;
  std::vector<VersionId> all;
  for (int i = 0; i < 8; ++i) all.push_back(t.publish(t.version()));
  EXPECT_THAT(t.slots.resident(), ElementsAre(all[3], all[4], all[5], all[6], all[7]));
  const int loads = t.model->loads();
  t.publish(all[3]);
  EXPECT_EQ(t.slots.serving(), all[3]);
  EXPECT_EQ(t.model->loads(), loads) << "a roll-back to a resident version loads nothing";
  t.publish(kBaseVersion);
  EXPECT_EQ(t.slots.serving(), kBaseVersion);
  EXPECT_THAT(t.slots.resident(), ElementsAre(all[3], all[4], all[5], all[6], all[7]));
  t.publish(all[0]);  // long gone: read again
  EXPECT_EQ(t.model->loads(), loads + 1);
  EXPECT_EQ(t.model->live_adapters(), 5);
}

TEST(AdapterSlots, AnOlderDecisionDoesNotUndoANewerOne) {
  SlotsUnderTest t;
  const CommittedDecision first = t.store.promote(t.version());
  const CommittedDecision second = t.store.promote(t.version());
  ASSERT_TRUE(t.slots.publish(second).ok());
  EXPECT_EQ(t.slots.publish(first).code(), Code::kConflict);
  EXPECT_EQ(t.slots.serving(), second.version());
  EXPECT_TRUE(t.slots.publish(second).ok()) << "the same again, as at start-up";
}

TEST(AdapterSlots, ClientsMayPinWhatTheRegistrySays) {
  SlotsUnderTest t;
  const VersionId serving = t.publish(t.version());
  const VersionId candidate = t.version(), retired = t.version();
  ASSERT_TRUE(t.slots.prepare(candidate, "").ok());
  ASSERT_TRUE(t.slots.prepare(retired, "").ok());
  t.slots.set_pinnable({retired});
  EXPECT_EQ(t.slots.resolve(AdapterChoice::pinned(candidate)).code(), Code::kNotFound);
  EXPECT_EQ(t.slots.resolve(AdapterChoice::pinned(VersionId(77))).code(), Code::kNotFound);
  for (const VersionId v : {serving, retired, kBaseVersion}) {
    const auto resolved = t.slots.resolve(AdapterChoice::pinned(v));
    ASSERT_TRUE(resolved.ok());
    EXPECT_EQ(resolved->version, v);
    EXPECT_EQ(resolved->adapter ? resolved->adapter->version() : kBaseVersion, v);
  }
  EXPECT_EQ(t.slots.resolve(AdapterChoice::serving())->version, serving);
  EXPECT_EQ(t.slots.resolve(AdapterChoice::base())->adapter, nullptr);
}

TEST(AdapterSlots, OverThePoolLeastRecentlyUsedPinnableVersionsLeave) {
  SlotsUnderTest t(3 * kBytes);
  const VersionId a(101), b(102), c(103), d(104);
  t.slots.set_pinnable({a, b, c, d});
  for (const VersionId v : {a, b, c}) {
    ASSERT_TRUE(t.slots.prepare(v, "").ok());
    t.slots.release(v);
  }
  EXPECT_THAT(t.slots.resident(), ElementsAre(a, b, c)) << "released, but clients may ask again and there is room";
  ASSERT_TRUE(t.slots.resolve(AdapterChoice::pinned(a)).ok());  // used again: b is now the oldest
  ASSERT_TRUE(t.slots.prepare(d, "").ok());
  EXPECT_THAT(t.slots.resident(), ElementsAre(a, c, d));
  {
    const auto in_use = t.slots.resolve(AdapterChoice::pinned(c));
    (void)t.slots.resolve(AdapterChoice::pinned(a));
    ASSERT_TRUE(t.slots.prepare(b, "").ok());
    EXPECT_THAT(t.slots.resident(), ElementsAre(b, c, d)) << "c is older than a, but a sequence holds it";  // LRA-16
  }
  t.slots.set_pinnable({});
  EXPECT_THAT(t.slots.resident(), ElementsAre(b, d)) << "only what is pinned";
  EXPECT_EQ(t.model->live_adapters(), 2);
}

TEST(AdapterSlots, WhatTheGateMustHaveAtHandStaysWhateverTheSizeOfThePool) {
  SlotsUnderTest t(/*pool=*/kBytes);
  const VersionId canary = t.version(), other = t.version(), third = t.version();
  t.slots.set_pinnable({canary, other, third});
  t.slots.set_kept({canary});
  for (const VersionId v : {canary, other, third}) {
    ASSERT_TRUE(t.slots.prepare(v, "").ok());
    t.slots.release(v);
  }
  EXPECT_THAT(t.slots.resident(), ElementsAre(canary));
  EXPECT_EQ(t.slots.resident_bytes(), kBytes);
  const int loads = t.model->loads();
  ASSERT_TRUE(t.slots.prepare(other, "").ok()) << "read again when it is asked for";
  EXPECT_EQ(t.model->loads(), loads + 1);
  t.slots.release(other);
  t.slots.set_kept({});
  ASSERT_TRUE(t.slots.prepare(third, "").ok());
  EXPECT_THAT(t.slots.resident(), ElementsAre(third));
}

TEST(AdapterSlots, ManyWhoAskForOneVersionWaitForOneRead) {
  StepGate load;
  FakeModelOptions options;
  options.on_load = [&load](VersionId) { return load.pass(); };
  SlotsUnderTest t(AdapterSlots::kPoolBytes, options);
  std::vector<std::thread> askers;
  for (int i = 0; i < 8; ++i) askers.emplace_back([&] { EXPECT_TRUE(t.slots.prepare(VersionId(3), "").ok()); });
  load.wait_arrived(1);
  load.open();
  for (std::thread& a : askers) a.join();
  EXPECT_EQ(t.model->loads(), 1);
  for (int i = 0; i < 8; ++i) t.slots.release(VersionId(3));
  EXPECT_EQ(t.model->live_adapters(), 0);
}

TEST(AdapterSlots, LRA10_AnswersFlowWhileAVersionLoads) {
  StepGate load;
  FakeModelOptions options;
  options.on_load = [&load](VersionId) { return load.pass(); };
  EngineUnderTest t(options);
  TestStore store;
  const CommittedDecision decision = store.promote(store.new_version());
  std::thread publisher([&] { EXPECT_TRUE(t.slots.publish(decision).ok()); });
  load.wait_arrived(1);
  for (int i = 0; i < 5; ++i) {
    ResponseHandle handle = t.submit(request("during the load"));
    EXPECT_EQ(t.started(handle), kBaseVersion);
    EXPECT_EQ(drain(handle).finish, FinishReason::kLength);
  }
  load.open();
  publisher.join();
  ResponseHandle handle = t.submit(request("after it"));
  EXPECT_EQ(t.started(handle), decision.version());
}

TEST(AdapterSlots, LRA16_ASequenceKeepsItsVersionWhateverHappensToIt) {
  StepGate gate;
  FakeModelOptions options;
  options.on_step = [&gate](const FakeStep&) { return gate.pass(); };
  EngineUnderTest t(options, {}, /*pool_bytes=*/1);
  TestStore store;
  ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  ResponseHandle old = t.submit(request("began early", 40));
  gate.wait_arrived(1);
  const VersionId first = t.started(old);
  for (int i = 0; i < 10; ++i) {  // LRA-16: far past what stays resident
    gate.allow(1);
    gate.wait_arrived(i + 2);
    ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  }
  EXPECT_THAT(t.slots.resident(), ::testing::Not(::testing::Contains(first)));
  ResponseHandle fresh = t.submit(request("began late", 40));
  gate.open();
  EXPECT_EQ(drain(old).ids, fake_answer(first, fake_tokens("began early"), 40));
  EXPECT_EQ(t.started(fresh), t.slots.serving());
  EXPECT_EQ(drain(fresh).ids, fake_answer(t.slots.serving(), fake_tokens("began late"), 40));
}

TEST(AdapterSlots, LRA9_PinnedVersionsLoadOnTheCallersThread) {
  EngineUnderTest t;
  TestStore store;
  const VersionId v = store.new_version();
  Request r = request("pin", 9);
  r.adapter = AdapterChoice::pinned(v);
  const Result<ResponseHandle> refused = t.engine->submit(r);
  EXPECT_EQ(refused.code(), Code::kNotFound);  // LRA-9: never the base instead
  EXPECT_EQ(t.model->loads(), 0);
  t.slots.set_pinnable({v});
  EXPECT_EQ(t.ask(r).ids, fake_answer(v, fake_tokens("pin"), 9));
  // The engine lets go of an ended sequence a moment after its caller saw the end; what is still held then is not evicted.
  const SteadyTime deadline = Clock::system().steady() + std::chrono::seconds(30);
  do {
    t.slots.set_pinnable({});
  } while (t.model->live_adapters() != 0 && Clock::system().steady() < deadline);
  EXPECT_EQ(t.model->live_adapters(), 0) << "no pin is left behind";
}

TEST(AdapterSlots, ChoicesOfOneExchangeShareTheVersionAcrossASwap) {
  EngineUnderTest t;
  TestStore store;
  ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  const VersionId first = t.slots.serving();
  ResponseHandle a = t.submit(request("n", 20));
  EXPECT_EQ(t.started(a), first);
  const AdapterChoice same = a->same_version();
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(t.slots.publish(store.promote(store.new_version())).ok());
  Request r = request("n", 20);
  r.adapter = same;
  ResponseHandle b = t.submit(r);
  EXPECT_EQ(t.started(b), first);
  EXPECT_EQ(drain(b).ids, drain(a).ids);
}

}  // namespace
}  // namespace sluice::testing
