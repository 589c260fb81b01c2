// SPDX-License-Identifier: GPL-3.0-or-later
// A session as the window tells it from its first count to its end, with what was skipped and warned of on the way, and a
// workspace that is not to be had.
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>

#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "labelling/label_page.h"
#include "log/log_page.h"
#include "session/intake_card.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "start/start_page.h"
#include "widgets/support/fake_window.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;

class WindowSessionTest : public QObject {
  Q_OBJECT

 private:
  static void set(FakeWindow& f, const std::function<void(EngineState&)>& change) {
    f.engine->setState(change);
    f.window.bridge()->pollNow();
  }
  static SessionRow addSession(Store& store, const std::string& name) {
    SessionRow row;
    row.name = name;
    row.recipe_name = "be-brief";
    row.id = *store.add_session(row);
    return row;
  }
  // Of a simulated user: nothing is accepted in the first 32 requests, everything in the last 64.
  static void addVerdicts(Store& store, SessionId session) {
    std::vector<MetricRow> rows(128);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      rows[i].session = session;
      rows[i].name = "accept";
      rows[i].x = static_cast<double>(i + 1);
      rows[i].value = i < 32 ? 0 : 1;
    }
    QVERIFY(store.add_metrics(rows).ok());
  }
  static IntakeCard* card(FakeWindow& f) { return f.window.findChild<IntakeCard*>(); }

 private Q_SLOTS:
  void aDemoThatIsThroughSaysSoUntilItIsEnded() {
    SessionRow session;
    FakeWindow f([&](FakeEngine& engine) {
      session = addSession(engine.writableStore(), "be-brief");
      addVerdicts(engine.writableStore(), session.id);
    });
    QTRY_COMPARE(f.window.curves()->verdicts(session.id).size(), std::size_t{128});
    InfoBar* info = f.window.infoBar();
    const QString id = QStringLiteral("through");
    set(f, [&](EngineState& s) {
      s.session = session;
      s.session->state = SessionState::kRunning;
      s.stream.max_requests = s.stream.requests = 128;
      s.stream.simulated = s.stream.finished = true;
      s.train.batch_size = 16;
    });
    QVERIFY(!info->has(id));  // its last candidate is trained and measured still
    QVERIFY(card(f)->text().contains(QStringLiteral("runs")));

    set(f, [](EngineState& s) { s.session_through = true; });
    const QString text = info->text(id);
    QVERIFY2(text.contains(QStringLiteral("is through")) && text.contains(QStringLiteral("at first: 0 of 32")) &&
                 text.contains(QStringLiteral("at last: 64 of 64")), qPrintable(text));
    QVERIFY2(card(f)->text().contains(QStringLiteral("is through")), qPrintable(card(f)->text()));
    for (const QString& told : {card(f)->text(), f.window.statusText()}) QVERIFY2(!told.contains(QStringLiteral("waits for 16 labels")), qPrintable(told));
    QVERIFY(f.window.statusText().contains(QStringLiteral("Through")));
    QVERIFY(f.find<QPushButton>("endOpenSession")->isVisibleTo(f.window.startPage()));

    info->dismiss(id);
    f.window.bridge()->pollNow();
    QVERIFY(!info->has(id));  // it was read
    set(f, [](EngineState& s) { s.session_through = false; });
    set(f, [](EngineState& s) { s.session_through = true; });
    QVERIFY(info->trigger(id));
    QTRY_COMPARE(f.engine->commandsOf<EndSession>().size(), std::size_t{1});
    set(f, [](EngineState& s) {
      s.session.reset();
      s.session_through = false;
    });
    QVERIFY(!info->has(id));
  }

  void theDeliberatelyBadCandidateIsCalledSo() {
    SessionRow session;
    VersionId good, bad;
    FakeWindow f([&](FakeEngine& engine) {
      session = addSession(engine.writableStore(), "be-brief");
      good = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.", session.id);
      bad = addVersion(engine.writableStore(), Verdict::kReject, "Rejected v2: worse.", session.id, "deliberately bad");
    });
    const QString label = QStringLiteral("deliberately bad");
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->verdictHeads().size(), 2);
    QTRY_VERIFY2(gate->verdictHeads().front().contains(label), qPrintable(gate->verdictHeads().front()));
    QVERIFY(!gate->verdictHeads().back().contains(label));
    QCOMPARE(gate->verdictTexts().front(), QStringLiteral("Rejected v2: worse."));  // the engine's sentence as it is

    for (const char* stage : {"invariants", "shadow"}) {
      set(f, [&](EngineState& s) {
        s.gate.measuring = true;
        s.gate.stage = stage;
        s.gate.candidate = bad;
        s.gate.incumbent = good;
      });
      QVERIFY2(gate->progressText().contains(label), qPrintable(gate->progressText()));
    }
    const auto marks = [&] { return f.window.curves()->card(QStringLiteral("accept"))->drawnMarks(); };
    QTRY_COMPARE(marks().size(), std::size_t{2});
    QTRY_VERIFY(marks().back().text.contains(label));
    QCOMPARE(marks().front().text, QStringLiteral("Promoted v1."));
  }

  void theCountsAreThoseOfTheSessionThatRuns() {
    SessionRow first;
    FakeWindow f([&](FakeEngine& engine) {
      Store& store = engine.writableStore();
      first = addSession(store, "first");
      for (int i = 0; i < 3; ++i) {
        RecordRow record = makeRecord("p", "r");
        record.session = first.id;
        QVERIFY(store.add_record(record).ok());
      }
      engine.setState([&](EngineState& s) { s.session = first; });
    });
    QTRY_VERIFY2(card(f)->text().contains(QStringLiteral("3 answer(s)")), qPrintable(card(f)->text()));
    // The snapshot is a moment behind: it shows the first one still.
    QVERIFY(f.engine->writableStore().set_session_state(first.id, SessionState::kEnded).ok());
    addSession(f.engine->writableStore(), "second");
    QTRY_VERIFY2(card(f)->text().contains(QStringLiteral("0 answer(s)")), qPrintable(card(f)->text()));
  }

  void whatWasSkippedComesBack() {
    FakeWindow f([](FakeEngine& engine) {
      for (int i = 1; i <= 3; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    const auto* prompt = f.find<QLabel>("labelPrompt");
    QTRY_COMPARE(prompt->text(), QStringLiteral("p3"));
    QTest::keyClick(page, Qt::Key_S);
    QCOMPARE(prompt->text(), QStringLiteral("p2"));
    QTest::keyClick(page, Qt::Key_U);
    QCOMPARE(prompt->text(), QStringLiteral("p3"));

    // Undo goes back in the order of what was done: the skip of p1, the verdict on p2, the skip of p3.
    QTest::keyClick(page, Qt::Key_S);
    QTest::keyClick(page, Qt::Key_A);
    QTRY_COMPARE(prompt->text(), QStringLiteral("p1"));
    QTest::keyClick(page, Qt::Key_S);
    QVERIFY(page->currentRecord().isEmpty());
    QTest::keyClick(page, Qt::Key_U);
    QCOMPARE(prompt->text(), QStringLiteral("p1"));
    QTest::keyClick(page, Qt::Key_U);
    QTRY_COMPARE(prompt->text(), QStringLiteral("p2"));
    QTRY_VERIFY(f.find<QPushButton>("labelUndo")->isEnabled());
    QTest::keyClick(page, Qt::Key_U);
    QCOMPARE(prompt->text(), QStringLiteral("p3"));
  }

  void anOlderReplyIsReachedBehindManyThatAreUsed() {
    FakeWindow f([](FakeEngine& engine) {
      QVERIFY(engine.writableStore().add_record(makeRecord("old", "r")).ok());
      for (int i = 0; i < 450; ++i) {
        RecordRow row = makeRecord("held out", "r");
        row.split = Split::kHeldOut;
        QVERIFY(engine.writableStore().add_record(row).ok());
      }
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    QTRY_COMPARE(f.find<QLabel>("labelPrompt")->text(), QStringLiteral("old"));
  }

  void theSkippedAreOfferedWhenNothingElseWaits() {
    FakeWindow f([](FakeEngine& engine) {
      for (int i = 1; i <= 3; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    const auto* prompt = f.find<QLabel>("labelPrompt");
    auto* again = f.find<QPushButton>("labelAgain");
    QTRY_COMPARE(prompt->text(), QStringLiteral("p3"));
    QTest::keyClick(page, Qt::Key_S);
    QVERIFY(!again->isVisible());
    QTest::keyClick(page, Qt::Key_G);
    QCOMPARE(prompt->text(), QStringLiteral("p2"));  // others wait still
    QTest::keyClick(page, Qt::Key_S);
    QTest::keyClick(page, Qt::Key_A);
    QTRY_VERIFY(again->isVisible());
    QVERIFY2(prompt->text().contains(QStringLiteral("skipped")), qPrintable(prompt->text()));
    QTest::mouseClick(again, Qt::LeftButton);
    QCOMPARE(prompt->text(), QStringLiteral("p3"));
    QVERIFY(!again->isVisible());
    QTest::keyClick(page, Qt::Key_X);
    QTRY_COMPARE(prompt->text(), QStringLiteral("p2"));
    QCOMPARE(page->decided(), 2);
  }

  void warningsOfTheSessionAreSeenWithoutTheLog() {
    const auto warn = [](Store& store, const std::string& category, const std::string& text) {
      LogRow row;
      row.level = "warning";
      row.category = category;
      row.text = text;
      store.add_log(row);
    };
    FakeWindow f([&](FakeEngine& engine) {
      LogRow old;
      old.level = "warning";
      old.category = "session";
      old.text = "Of an earlier run.";
      old.time_us = nowUs() - 60'000'000;
      engine.writableStore().add_log(old);
    });
    QTRY_VERIFY(f.window.log()->lines() == 1);
    InfoBar* info = f.window.infoBar();
    const QString id = QStringLiteral("warning");
    QVERIFY(!info->has(id));
    warn(f.engine->writableStore(), "http", "A client went away.");
    warn(f.engine->writableStore(), "session", "The head goes back.");
    QTRY_COMPARE(info->text(id), QStringLiteral("The head goes back."));
    warn(f.engine->writableStore(), "train", "A step was skipped.");
    QTRY_VERIFY2(info->text(id).startsWith(QStringLiteral("A step was skipped.")) && info->text(id).contains(QLatin1Char('1')), qPrintable(info->text(id)));
    // What stopped training has a notice with the way on.
    warn(f.engine->writableStore(), "session", "Answers got too long.");
    QTRY_VERIFY(info->text(id).startsWith(QStringLiteral("Answers got too long.")));
    set(f, [](EngineState& s) { s.train.brake = "Answers got too long."; });
    QVERIFY(info->has(QStringLiteral("brake")) && !info->has(id));
    warn(f.engine->writableStore(), "session", "Something else.");
    QTRY_COMPARE(info->text(id), QStringLiteral("Something else."));
    QVERIFY(info->trigger(id));
    QTRY_VERIFY(f.window.log()->isVisible());
  }

  void aLockedWorkspaceSaysWhyAndIsTriedAgain() {
    QTemporaryDir dir;
    MainWindow window;
    window.show();
    const QString locked = QStringLiteral("The workspace is in use by another running Sluice.");
    window.showOpenProblem(locked);
    const auto hint = [&](const char* name) {
      const auto* button = window.findChild<QPushButton*>(QString::fromLatin1(name));
      return button->isEnabled() ? QString() : button->toolTip();
    };
    for (const char* name : {"runDemo", "startSession"}) QVERIFY2(hint(name).contains(locked), qPrintable(hint(name)));
    for (const auto* action : window.findChildren<QAction*>()) QVERIFY2(!action->toolTip().contains(QStringLiteral("loaded yet")), qPrintable(action->text()));
    auto* retry = window.findChild<QPushButton*>(QStringLiteral("tryAgain"));
    QVERIFY(retry->isVisible());
    QSignalSpy asked(&window, &MainWindow::retryRequested);
    QTest::mouseClick(retry, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    QVERIFY(!retry->isVisible());
    QVERIFY(window.statusText().contains(QStringLiteral("Opening")));
    QVERIFY(!hint("runDemo").contains(locked));
    QVERIFY(window.findChild<QLabel*>(QStringLiteral("modelLine"))->isVisible());

    window.setEngine(std::make_unique<FakeEngine>(dir.path().toStdString()));
    QTRY_VERIFY(window.findChild<QPushButton*>(QStringLiteral("runDemo"))->isEnabled());
  }
};

QTEST_MAIN(WindowSessionTest)
#include "window_session_test.moc"
