// SPDX-License-Identifier: GPL-3.0-or-later
// Inbox, reader and bridge with real threads.
#include <QSignalSpy>
#include <QtTest>
#include <atomic>
#include <thread>

#include "bridge/engine_bridge.h"
#include "widgets/support/fake_engine.h"

using namespace sluice;
using namespace sluice::gui;
using sluice::gui::testing::FakeEngine;
using sluice::gui::testing::makeRecord;

class BridgeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void aFloodCostsOneWakeUp() {
    std::atomic<int> wakes{0};
    Inbox inbox([&] { ++wakes; }, 100);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&inbox] {
        for (int i = 0; i < 1000; ++i) inbox.push({EventKind::kRecord, i, "", i});
      });
    }
    for (auto& thread : threads) thread.join();
    QCOMPARE(wakes.load(), 1);
    const Inbox::Drained drained = inbox.drain();
    QCOMPARE(drained.events.size(), std::size_t{100});
    QVERIFY(drained.overflowed);
    QVERIFY(drained.touched[static_cast<std::size_t>(EventKind::kRecord)]);
    inbox.push({EventKind::kLog, 1, "", 1});
    QCOMPARE(wakes.load(), 2);
  }

  void rowsArriveAfterTheirCommitAndNoneIsLost() {
    QTemporaryDir dir;
    auto engine = std::make_unique<FakeEngine>(dir.path().toStdString());
    FakeEngine* fake = engine.get();
    EngineBridge bridge(std::move(engine));
    qint64 seen = 0;
    connect(&bridge, &EngineBridge::recordsArrived, this, [&](const Rows<RecordRow>& rows) { seen += static_cast<qint64>(rows->size()); });
    bridge.start();
    constexpr int kRecords = 1200;
    std::thread writer([fake] {
      for (int i = 0; i < kRecords; ++i) {
        if (!fake->writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok()) return;
      }
    });
    writer.join();
    QTRY_COMPARE_WITH_TIMEOUT(seen, qint64{kRecords}, 20000);
  }

  // No widget shows token ids or log-probabilities; the rows are copied on the GUI thread.
  void recordsComeWithoutWhatNoWidgetShows() {
    QTemporaryDir dir;
    auto engine = std::make_unique<FakeEngine>(dir.path().toStdString());
    const RecordRow written = makeRecord("p", "r");
    QVERIFY(engine->writableStore().add_record(written).ok());
    EngineBridge bridge(std::move(engine));
    std::vector<RecordRow> live, page, one;
    connect(&bridge, &EngineBridge::recordsArrived, this, [&](const Rows<RecordRow>& rows) { live = *rows; });
    connect(&bridge, &EngineBridge::recordPageArrived, this, [&](quint64, const Rows<RecordRow>& rows) { page = *rows; });
    connect(&bridge, &EngineBridge::recordArrived, this, [&](quint64, const Rows<RecordRow>& rows, const Rows<FeedbackRow>&) { one = *rows; });
    bridge.start();
    bridge.requestRecordPage({}, 0, 10);
    bridge.requestRecord(written.id);
    QTRY_VERIFY(!live.empty() && !page.empty() && !one.empty());
    for (const auto& rows : {live, page, one}) {
      QCOMPARE(rows.size(), std::size_t{1});
      QCOMPARE(rows[0].prompt_text, written.prompt_text);
      QCOMPARE(rows[0].completion_text, written.completion_text);
      QVERIFY(rows[0].prompt_ids.empty() && rows[0].token_ids.empty() && rows[0].lp_full.empty() && rows[0].lp_mu.empty());
    }
  }

  void anOutcomeComesExactlyOnceOnTheGuiThread() {
    QTemporaryDir dir;
    EngineBridge bridge(std::make_unique<FakeEngine>(dir.path().toStdString()));
    int outcomes = 0;
    bridge.submit(PauseSession{}, this, [&](const CommandOutcome& outcome) {
      QCOMPARE(QThread::currentThread(), qApp->thread());
      QVERIFY(outcome.ok());
      ++outcomes;
    });
    QCOMPARE(bridge.pending(), 1);
    QTRY_COMPARE(outcomes, 1);
    QCOMPARE(bridge.pending(), 0);
  }

  void anOutcomeForADeadContextIsDropped() {
    QTemporaryDir dir;
    EngineBridge bridge(std::make_unique<FakeEngine>(dir.path().toStdString()));
    bool called = false;
    {
      QObject context;
      bridge.submit(PauseSession{}, &context, [&](const CommandOutcome&) { called = true; });
    }
    QTRY_COMPARE(bridge.pending(), 0);
    QVERIFY(!called);
  }

  void theBridgeMayGoWithCommandsUnderWay() {
    QTemporaryDir dir;
    auto bridge = std::make_unique<EngineBridge>(std::make_unique<FakeEngine>(dir.path().toStdString()));
    for (int i = 0; i < 50; ++i) bridge->submit(PauseSession{}, this, [](const CommandOutcome&) {});
    bridge.reset();
    QCoreApplication::sendPostedEvents();
  }
};

QTEST_GUILESS_MAIN(BridgeTest)
#include "bridge_test.moc"
