// SPDX-License-Identifier: GPL-3.0-or-later
// What lies around the pages: command palette, list of sessions, leaving at once and a session that can't go on.
#include <QAction>
#include <QComboBox>
#include <QDockWidget>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QScopeGuard>
#include <QSignalSpy>
#include <QTreeView>
#include <QTreeWidget>
#include <QtTest>

#include "curves/curves_page.h"
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
};

QTEST_MAIN(WindowToolsTest)
#include "window_tools_test.moc"
