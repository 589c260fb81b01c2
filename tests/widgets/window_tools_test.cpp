// SPDX-License-Identifier: GPL-3.0-or-later
// What lies around the pages: command palette, list of sessions, jobs, leaving at once and a session that can't go on; rows
// that come to a page in an unusual order or number.
#include <QAction>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScopeGuard>
#include <QSignalSpy>
#include <QTableView>
#include <QThreadPool>
#include <QTreeView>
#include <QTreeWidget>
#include <QtTest>

#include "bridge/job.h"
#include "compare/inspect_page.h"
#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "session/session_list.h"
#include "shell/command_palette.h"
#include "widgets/support/fake_window.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;

class WindowToolsTest : public QObject {
  Q_OBJECT

 private:
  static SessionId addSession(Store& store, const std::string& name, std::uint64_t seed) {
    SessionRow row;
    row.name = name;
    row.recipe_name = "be-brief";
    row.seed = seed;
    return *store.add_session(row);
  }
  static void addPoints(Store& store, SessionId session, const std::string& metric, int n, double value) {
    std::vector<MetricRow> rows(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      auto& row = rows[static_cast<std::size_t>(i)];
      row.session = session;
      row.name = metric;
      row.x = i + 1;
      row.value = value;
    }
    QVERIFY(store.add_metrics(rows).ok());
  }
  static CommandPalette* openPalette(FakeWindow& f) {
    f.find<QAction>("palette")->trigger();
    return f.find<CommandPalette>("commandPalette");
  }

 private Q_SLOTS:
  void thePaletteRunsACommandByAPartOfItsName() {
    FakeWindow f;
    QTRY_VERIFY(f.find<QPushButton>("runDemo")->isEnabled());
    CommandPalette* palette = openPalette(f);
    QVERIFY(palette && palette->isVisible());
    auto* filter = palette->findChild<QLineEdit*>(QStringLiteral("paletteFilter"));
    QTest::keyClicks(filter, QStringLiteral("inspe"));
    QCOMPARE(palette->names(), QStringList{QStringLiteral("Inspect")});
    QTest::keyClick(filter, Qt::Key_Return);
    QCOMPARE(f.window.mode(), MainWindow::Mode::kInspect);
    QTRY_VERIFY(!f.find<CommandPalette>("commandPalette"));
    palette = openPalette(f);
    QCOMPARE(palette->names().value(1), QStringLiteral("Inspect"));  // after the palette itself, the last one used
    QVERIFY(!palette->names().contains(QStringLiteral("Pause session")));  // no session runs
  }

  void arrowsMoveInThePalette() {
    FakeWindow f;
    CommandPalette* palette = openPalette(f);
    auto* filter = palette->findChild<QLineEdit*>(QStringLiteral("paletteFilter"));
    auto* list = palette->findChild<QTreeView*>(QStringLiteral("paletteList"));
    QTest::keyClick(filter, Qt::Key_Down);
    QCOMPARE(list->currentIndex().row(), 1);
    QTest::keyClick(filter, Qt::Key_Up);
    QCOMPARE(list->currentIndex().row(), 0);
  }

  void anEarlierSessionIsDrawnWhenChosen() {
    SessionId first, second;
    FakeWindow f([&](FakeEngine& engine) {
      first = addSession(engine.writableStore(), "first", 1);
      second = addSession(engine.writableStore(), "second", 2);
      addPoints(engine.writableStore(), first, "reward_mean", 3, 0.25);
      addPoints(engine.writableStore(), second, "reward_mean", 5, 0.75);
    });
    CurvesPage* curves = f.window.curves();
    QTRY_COMPARE(curves->session(), second);
    f.find<QAction>("sessions")->trigger();
    QVERIFY(f.find<QDockWidget>("sessionsDock")->isVisible());
    auto* list = f.window.findChild<SessionList*>();
    QTRY_COMPARE(list->rowTexts().size(), 2);
    QTRY_VERIFY(list->rowTexts().front().startsWith(QStringLiteral("second\t2\truns\t5\t0.75 (step 5)")));
    auto* tree = f.find<QTreeWidget>("sessionList");
    tree->setCurrentItem(tree->topLevelItem(1));
    QCOMPARE(curves->session(), first);
    QCOMPARE(curves->series(QStringLiteral("reward_mean")).points().size(), std::size_t{3});
    addSession(f.engine->writableStore(), "third", 3);
    QTRY_COMPARE(list->rowTexts().size(), 3);
    QCOMPARE(curves->session(), first);  // a choice holds when a session starts
    QTest::mouseClick(f.find<QPushButton>("followNewest"), Qt::LeftButton);
    QTRY_VERIFY(curves->session() != first && curves->session() != second);
  }

  void leavingNeedNotWaitForTheStepInHand() {
    QTemporaryDir dir;
    auto made = std::make_unique<FakeEngine>(dir.path().toStdString());
    std::atomic<bool> letGo{false};
    made->onEnd = [&] {
      while (!letGo) std::this_thread::yield();
    };
    MainWindow window;
    const auto release = qScopeGuard([&] { letGo = true; });  // a failure must not leave the window waiting
    QSignalSpy now(&window, &MainWindow::stopNowRequested);
    window.setEngine(std::move(made));
    window.show();
    window.close();
    auto* button = window.findChild<QPushButton*>(QStringLiteral("stopNow"));
    QVERIFY(button);
    QTRY_VERIFY(button->isVisible());
    QTest::mouseClick(button, Qt::LeftButton);
    QCOMPARE(now.size(), 1);
    letGo = true;
    QTRY_VERIFY(!window.isVisible());
  }

  void aSessionThatCantGoOnSaysWhy() {
    FakeWindow f;
    f.engine->setState([](EngineState& s) {
      s.session = SessionRow();
      s.session->name = "be-brief";
      s.session->state = SessionState::kPaused;
      s.session_problem = "Port 8080 is in use by another program.";
    });
    auto* line = f.find<QLabel>("sessionLine");
    QTRY_VERIFY(line->isVisible() && line->text().contains(QStringLiteral("8080")));
    QVERIFY(f.find<QLabel>("banner")->text().contains(QStringLiteral("8080")));
    QTest::mouseClick(f.find<QPushButton>("endOpenSession"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<EndSession>().size(), std::size_t{1});
  }

  void whatServesStandsAgainstTheBase() {
    VersionId promoted;
    FakeWindow f([&](FakeEngine& engine) {
      promoted = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.");
      QVERIFY(addVersion(engine.writableStore(), Verdict::kReject, "Rejected v2.").valid());
    });
    f.window.setMode(MainWindow::Mode::kInspect);
    auto* right = f.find<QComboBox>("rightVersion");
    QTRY_COMPARE(right->count(), 3);
    QCOMPARE(f.find<QComboBox>("leftVersion")->currentData().toLongLong(), 0);
    QCOMPARE(right->currentData().toLongLong(), promoted.value);
    const VersionId next = addVersion(f.engine->writableStore(), Verdict::kPromote, "Promoted v3.");
    QTRY_COMPARE(right->currentData().toLongLong(), next.value);
    right->setCurrentIndex(right->findData(static_cast<qlonglong>(promoted.value)));
    Q_EMIT right->activated(right->currentIndex());  // by hand
    QVERIFY(addVersion(f.engine->writableStore(), Verdict::kPromote, "Promoted v4.").valid());
    QTRY_COMPARE(right->count(), 5);
    QCOMPARE(right->currentData().toLongLong(), promoted.value);
  }

  // A cleared search asks for the newest page. The reader may answer that before it tells of rows that the page holds already.
  void rowsThatAPageBroughtAreShownOnce() {
    FakeWindow f([](FakeEngine& engine) {
      for (int i = 1; i <= 3; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    });
    f.window.setMode(MainWindow::Mode::kInspect);
    const InspectPage* page = f.window.inspect();
    QTRY_COMPARE(page->recordCount(), 3);
    auto rows = f.engine->store().records_after(1, 10);
    QCOMPARE(rows.size(), std::size_t{2});
    for (int i = 4; i <= 5; ++i) {
      rows.push_back(makeRecord("p" + std::to_string(i), "r"));
      rows.back().seq = i;
    }
    Q_EMIT f.window.bridge()->recordsArrived(std::make_shared<const std::vector<RecordRow>>(rows));
    const auto* model = f.find<QTableView>("records")->model();
    QStringList prompts;
    for (int i = 0; i < model->rowCount(); ++i) prompts << model->index(i, 1).data().toString();
    QCOMPARE(prompts.join(QLatin1Char(' ')), QStringLiteral("p5 p4 p3 p2 p1"));
  }

  void ofALongHistoryTheNewestVerdictsHaveACard() {
    FakeWindow f;
    const auto arrive = [&](int first, int last) {
      std::vector<DecisionRow> rows;
      for (int i = first; i <= last; ++i) {
        DecisionRow row;
        row.version = VersionId(i);
        row.kind = i % 50 ? "gate" : "startup";
        row.verdict = Verdict::kReject;
        row.reason_text = "Rejected v" + std::to_string(i) + ".";
        rows.push_back(row);
      }
      Q_EMIT f.window.bridge()->decisionsArrived(std::make_shared<const std::vector<DecisionRow>>(rows));
    };
    arrive(1, 260);
    QStringList texts = f.window.gate()->verdictTexts();
    QCOMPARE(texts.size(), 100);
    QCOMPARE(texts.front(), QStringLiteral("Rejected v260."));
    QCOMPARE(texts.back(), QStringLiteral("Rejected v159."));  // v200 and v250 are start-ups: no verdicts
    QVERIFY(f.find<QLabel>("rejections")->text().contains(QStringLiteral("255")));  // counted are all
    arrive(261, 262);
    texts = f.window.gate()->verdictTexts();
    QCOMPARE(texts.size(), 100);
    QCOMPARE(texts.front(), QStringLiteral("Rejected v262."));
    QCOMPARE(texts.back(), QStringLiteral("Rejected v161."));
  }

  void aJobComesBackToTheGuiThreadUnlessItsOwnerIsGone() {
    auto gone = std::make_unique<QObject>();
    bool late = false;
    QThread *worked = nullptr, *returned = nullptr;
    runJob(gone.get(), [] { return 1; }, [&](int) { late = true; });
    gone.reset();
    QThreadPool::globalInstance()->waitForDone();
    runJob(this, [] { return QThread::currentThread(); }, [&](QThread* pool) {
      worked = pool;
      returned = QThread::currentThread();
    });
    QTRY_VERIFY(returned);  // hops keep their order: the first one's is over as well
    QCOMPARE(returned, qApp->thread());
    QVERIFY(worked && worked != returned);
    QVERIFY(!late);
  }
};

QTEST_MAIN(WindowToolsTest)
#include "window_tools_test.moc"
