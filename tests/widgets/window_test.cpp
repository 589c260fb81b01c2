// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window on a scripted engine: what a person does, asserted through what the window shows and what the engine got.
#include <QComboBox>
#include <QDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QTableView>
#include <QtTest>
#include <atomic>
#include <thread>

#include "compare/inspect_page.h"
#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "labelling/label_page.h"
#include "log/log_page.h"
#include "shell/info_bar.h"
#include "start/start_page.h"
#include "timeline/timeline_page.h"
#include "widgets/support/fake_window.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;
using Fixture = FakeWindow;

class WindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void opensBeforeTheEngine() {
    MainWindow window;
    window.show();
    QVERIFY(window.isVisible());
    QCOMPARE(window.mode(), MainWindow::Mode::kStart);
    window.setMode(MainWindow::Mode::kOperate);
    QCOMPARE(window.mode(), MainWindow::Mode::kStart);
    window.showOpenProblem(QStringLiteral("The workspace is locked."));
    bool shown = false;
    for (QLabel* label : window.startPage()->findChildren<QLabel*>()) shown |= label->isVisible() && label->text() == QStringLiteral("The workspace is locked.");
    QVERIFY(shown);
  }

  void demoIsOneClick() {
    Fixture f;
    auto* demo = f.find<QPushButton>("runDemo");
    QTRY_VERIFY(demo->isEnabled());
    QTest::mouseClick(demo, Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<StartSession>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<StartSession>().front().recipe, std::string("be-brief"));
    QCOMPARE(f.window.mode(), MainWindow::Mode::kOperate);
  }

  void theDemoFindsAFreePort() {
    Fixture f;
    f.engine->setState([](EngineState& s) { s.server_error = "Port 8080 is in use by another program."; });
    QTRY_VERIFY(f.window.infoBar()->has(QStringLiteral("server")));
    QTest::mouseClick(f.find<QPushButton>("runDemo"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<StartSession>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<StartServer>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<StartServer>().front().port, 0);
    QVERIFY(!f.engine->commandsOf<StartServer>().front().remember);
  }

  void aBusyPortIsSaidWithAWayOut() {
    Fixture f;
    f.engine->setState([](EngineState& s) { s.server_error = "Port 8080 is in use by another program."; });
    QTRY_VERIFY(f.window.infoBar()->has(QStringLiteral("server")));
    QVERIFY(f.window.infoBar()->text(QStringLiteral("server")).contains(QStringLiteral("8080")));
    QTRY_VERIFY(f.find<QPushButton>("choosePort")->isVisibleTo(f.window.startPage()));
  }

  void labelsByKeyboard() {
    Fixture f([](FakeEngine& engine) {
      for (int i = 0; i < 20; ++i) {
        QVERIFY(engine.writableStore().add_record(makeRecord("prompt " + std::to_string(i), "reply " + std::to_string(i))).ok());
      }
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    QTRY_VERIFY(!page->currentRecord().isEmpty());
    QStringList ids;
    for (int i = 0; i < 16; ++i) {
      const QString id = page->currentRecord();
      ids << id;
      QTest::keyClick(page, i % 2 ? Qt::Key_X : Qt::Key_A);
      QTRY_VERIFY(page->currentRecord() != id);
    }
    QCOMPARE(page->decided(), 16);
    const auto labels = f.engine->commandsOf<GiveLabel>();
    QCOMPARE(labels.size(), std::size_t{16});
    for (int i = 0; i < 16; ++i) {
      QCOMPARE(QString::fromStdString(labels[static_cast<std::size_t>(i)].record.text), ids[i]);
      const auto rows = f.engine->store().feedback_of(RecordId{ids[i].toStdString()});
      QCOMPARE(rows.size(), std::size_t{1});
      QCOMPARE(rows[0].kind, i % 2 ? FeedbackKind::kReject : FeedbackKind::kAccept);
      QCOMPARE(rows[0].source, FeedbackSource::kHuman);
    }
  }

  void undoBringsTheReplyBack() {
    Fixture f([](FakeEngine& engine) {
      QVERIFY(engine.writableStore().add_record(makeRecord("a", "b")).ok());
      QVERIFY(engine.writableStore().add_record(makeRecord("c", "d")).ok());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    QTRY_VERIFY(!page->currentRecord().isEmpty());
    const QString id = page->currentRecord();
    QTest::keyClick(page, Qt::Key_A);
    QTRY_VERIFY(page->currentRecord() != id);
    QTest::keyClick(page, Qt::Key_U);
    QTRY_COMPARE(page->currentRecord(), id);
    QCOMPARE(page->decided(), 0);
    const auto rows = f.engine->store().feedback_of(RecordId{id.toStdString()});
    QVERIFY(rows.empty() || rows[0].retracted);
  }

  void aHeldKeyLabelsOnce() {
    Fixture f([](FakeEngine& engine) {
      for (int i = 0; i < 5; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p", "r" + std::to_string(i))).ok());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    QTRY_VERIFY(!page->currentRecord().isEmpty());
    const QString id = page->currentRecord();
    QTest::keyPress(page, Qt::Key_A);
    QTRY_VERIFY(page->currentRecord() != id);
    const QString second = page->currentRecord();
    for (int i = 0; i < 10; ++i) {
      QKeyEvent held(QEvent::KeyPress, Qt::Key_A, Qt::NoModifier, QStringLiteral("a"), true);
      QApplication::sendEvent(page, &held);
    }
    QTest::keyRelease(page, Qt::Key_A);
    QCOMPARE(page->currentRecord(), second);
    QCOMPARE(f.engine->commandsOf<GiveLabel>().size(), std::size_t{1});
  }

  void aLabelThatWasNotSavedStays() {
    Fixture f([](FakeEngine& engine) {
      QVERIFY(engine.writableStore().add_record(makeRecord("p", "r")).ok());
      engine.script = [](const Command& command) -> std::optional<CommandOutcome> {
        if (!std::holds_alternative<GiveLabel>(command)) return std::nullopt;
        CommandOutcome out;
        out.status = unavailable("The disk is full.");
        out.text = "The disk is full.";
        return out;
      };
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    QTRY_VERIFY(!page->currentRecord().isEmpty());
    const QString id = page->currentRecord();
    QTest::keyClick(page, Qt::Key_A);
    QTRY_VERIFY(page->statusText().contains(QStringLiteral("The disk is full.")));
    QCOMPARE(page->currentRecord(), id);
  }

  void aMovedThresholdIsApplied() {
    Fixture f;
    f.window.setMode(MainWindow::Mode::kOperate);
    GatePanel* gate = f.window.gate();
    QVERIFY(!gate->draftDiffers());
    QTRY_COMPARE(gate->draftValue(QStringLiteral("alpha")), 0.1);  // what is in force
    gate->setDraftValue(QStringLiteral("alpha"), 0.02);
    QVERIFY(gate->draftDiffers());
    auto* apply = f.find<QPushButton>("applyGate");
    QVERIFY(apply->isEnabled());
    QTest::mouseClick(apply, Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    QTRY_VERIFY(f.engine->store().gate_settings().has_value());
    QVERIFY(f.engine->store().gate_settings()->settings_json.find("0.02") != std::string::npos);
    QTRY_VERIFY(!gate->draftDiffers());
    QCOMPARE(gate->draftValue(QStringLiteral("alpha")), 0.02);
  }

  void verdictsCarryTheirSentence() {
    Fixture f;
    f.window.setMode(MainWindow::Mode::kOperate);
    QVERIFY(addVersion(f.engine->writableStore(), Verdict::kReject, "Rejected v1: because.").valid());
    QTRY_COMPARE(f.window.gate()->verdictTexts(), QStringList{QStringLiteral("Rejected v1: because.")});
    QTRY_VERIFY(f.window.timeline()->rowTexts().join(QLatin1Char('\n')).contains(QStringLiteral("Rejected v1: because.")));
  }

  void aHeldCandidateIsDecidedByHandWithAReason() {
    Fixture f;
    f.window.setMode(MainWindow::Mode::kOperate);
    const VersionId held = addVersion(f.engine->writableStore(), Verdict::kHold, "Held v1: not enough evidence.");
    QVERIFY(held.valid());
    QTRY_VERIFY(f.find<QPushButton>("handPromote"));
    auto* promote = f.find<QPushButton>("handPromote");
    QVERIFY(!promote->isEnabled());
    f.find<QLineEdit>("handNote")->setText(QStringLiteral("looks good to me"));
    QVERIFY(promote->isEnabled());
    promote->click();
    QTRY_COMPARE(f.engine->commandsOf<Decide>().size(), std::size_t{1});
    const Decide sent = f.engine->commandsOf<Decide>().front();
    QCOMPARE(sent.action, std::string("promote"));
    QCOMPARE(sent.version, held);
    QCOMPARE(sent.note, std::string("looks good to me"));
  }

  void rollBackAsksFirstAndCanBeUndone() {
    VersionId first, second;
    Fixture f([&](FakeEngine& engine) {
      first = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.");
      second = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v2.");
    });
    QVERIFY(first.valid() && second.valid());
    f.engine->setState([&](EngineState& s) { s.serving = second; });
    f.window.setMode(MainWindow::Mode::kOperate);
    TimelinePage* timeline = f.window.timeline();
    QTRY_COMPARE(timeline->rowTexts().size(), 3);
    timeline->select(second);
    QVERIFY(!timeline->rollBackReason().isEmpty());
    timeline->select(first);
    QCOMPARE(timeline->rollBackReason(), QString());
    timeline->rollBack();
    auto* sheet = f.window.findChild<QDialog*>(QStringLiteral("rollBackSheet"));
    QVERIFY(sheet && sheet->isVisible());
    QVERIFY(f.engine->commandsOf<Decide>().empty());
    QTest::mouseClick(sheet->findChild<QPushButton*>(QStringLiteral("confirmRollBack")), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<Decide>().size(), std::size_t{1});
    const Decide sent = f.engine->commandsOf<Decide>().front();
    QCOMPARE(sent.action, std::string("rollback"));
    QCOMPARE(sent.version, first);
    QVERIFY(!sent.note.empty() && !sent.actor.empty());
    QTRY_VERIFY(f.window.infoBar()->has(QStringLiteral("rollback")));
    QVERIFY(f.window.infoBar()->trigger(QStringLiteral("rollback")));
    QTRY_COMPARE(f.engine->commandsOf<Decide>().size(), std::size_t{2});
    QCOMPARE(f.engine->commandsOf<Decide>().back().version, second);
  }

  void curvesFollowTheMetrics() {
    Fixture f;
    f.window.setMode(MainWindow::Mode::kOperate);
    SessionRow row;
    row.name = "s";
    row.recipe_name = "be-brief";
    const SessionId session = *f.engine->writableStore().add_session(row);
    std::vector<MetricRow> points;
    for (int i = 1; i <= 64; ++i) {
      MetricRow point;
      point.session = session;
      point.name = "accept";
      point.x = i;
      point.value = i > 32 ? 1 : 0;
      points.push_back(point);
    }
    QVERIFY(f.engine->writableStore().add_metrics(points).ok());
    QTRY_COMPARE(f.window.curves()->series(QStringLiteral("accept")).points().size(), std::size_t{64});
    QTRY_VERIFY(f.window.curves()->card(QStringLiteral("accept"))->isVisible());
    QTRY_VERIFY(f.window.curves()->card(QStringLiteral("accept"))->drawnPoints() > 0);
    QTRY_VERIFY(f.window.curves()->cardHead(QStringLiteral("accept")).contains(QStringLiteral("64")));
    QVERIFY(f.window.curves()->csv().count(QLatin1Char('\n')) >= 65);
  }

  void tryItShowsAnswerAndReceiptAndLabels() {
    RecordRow record = makeRecord("Why?", "Because.");
    Fixture f([&](FakeEngine& engine) {
      QVERIFY(engine.writableStore().add_record(record).ok());
      engine.script = [record](const Command& command) -> std::optional<CommandOutcome> {
        if (!std::holds_alternative<Ask>(command)) return std::nullopt;
        CommandOutcome out;
        for (std::size_t i = 0; i < std::max<std::size_t>(1, std::get<Ask>(command).versions.size()); ++i) {
          Answer answer;
          answer.adapter_name = i ? "be-brief@1" : "base";
          answer.text = i ? "Since it rains." : "Because it rains.";
          answer.record = record.id;
          answer.finish_reason = "stop";
          out.answers.push_back(answer);
        }
        return out;
      };
    });
    f.window.setMode(MainWindow::Mode::kInspect);
    f.find<QPlainTextEdit>("askPrompt")->setPlainText(QStringLiteral("Why?"));
    QTest::mouseClick(f.find<QPushButton>("ask"), Qt::LeftButton);
    QTRY_COMPARE(f.window.inspect()->answerText(0), QStringLiteral("Because it rains."));
    QVERIFY(f.find<QLabel>("receipt")->text().contains(QString::fromStdString(record.id.text)));
    QTest::mouseClick(f.find<QPushButton>("askAccept"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->store().feedback_of(record.id).size(), std::size_t{1});
    QTest::mouseClick(f.find<QPushButton>("askBoth"), Qt::LeftButton);
    QTRY_COMPARE(f.window.inspect()->answerText(1), QStringLiteral("Since it rains."));
    QVERIFY(!f.find<QPushButton>("askAccept")->isEnabled());
  }

  void pauseAndFreezeAreSaidInEveryMode() {
    Fixture f;
    f.engine->setState([](EngineState& s) {
      s.session = SessionRow();
      s.session->state = SessionState::kPaused;
      s.frozen = true;
    });
    auto* banner = f.find<QLabel>("banner");
    using Mode = MainWindow::Mode;
    for (const Mode mode : {Mode::kStart, Mode::kOperate, Mode::kInspect, Mode::kLabel}) {
      f.window.setMode(mode);
      QCOMPARE(f.window.mode(), mode);
      QTRY_VERIFY(banner->isVisible());
      QVERIFY(banner->text().contains(QStringLiteral("paused")));
      QVERIFY(banner->text().contains(QStringLiteral("frozen")));
    }
    f.engine->setState([](EngineState& s) {
      s.session->state = SessionState::kRunning;
      s.frozen = false;
    });
    QTRY_VERIFY(!banner->isVisible());
  }

  void curvesByMinutesKeepEveryPoint() {
    Fixture f;
    f.window.setMode(MainWindow::Mode::kOperate);
    SessionRow row;
    row.name = "s";
    const SessionId session = *f.engine->writableStore().add_session(row);
    std::vector<MetricRow> points(10);
    for (int i = 0; i < 10; ++i) {
      auto& point = points[static_cast<std::size_t>(i)];
      point.session = session;
      point.name = "loss";
      point.x = 100 + i;
      point.value = i;
    }
    QVERIFY(f.engine->writableStore().add_metrics(points).ok());
    QTRY_COMPARE(f.window.curves()->series(QStringLiteral("loss")).points().size(), std::size_t{10});
    f.window.curves()->setXAxis(CurvesPage::XAxis::kMinutes);
    QCOMPARE(f.window.curves()->series(QStringLiteral("loss")).points().size(), std::size_t{10});
    QVERIFY(f.window.curves()->series(QStringLiteral("loss")).maxX() < 1.0);
    f.window.curves()->setXAxis(CurvesPage::XAxis::kRequests);
    QCOMPARE(f.window.curves()->series(QStringLiteral("loss")).maxX(), 109.0);
  }

  void closingSaysSoAndEndsTheEngineOffTheGuiThread() {
    QTemporaryDir dir;
    auto made = std::make_unique<FakeEngine>(dir.path().toStdString());
    std::atomic<bool> letGo{false};
    std::atomic<bool> gone{false};
    made->onEnd = [&] {
      while (!letGo) std::this_thread::yield();
      gone = true;
    };
    MainWindow window;
    window.setEngine(std::move(made));
    window.show();
    window.close();
    QVERIFY(window.isVisible());  // the step in hand runs still
    auto* text = window.findChild<QLabel*>(QStringLiteral("closing"));
    QVERIFY(text && text->text().contains(QStringLiteral("Finishing the current step")));
    QVERIFY(!gone);
    letGo = true;
    QTRY_VERIFY(!window.isVisible());
    QVERIFY(gone);
  }

  void aModelThatDoesNotFitIsNotLoaded() {
    Fixture f;
    QMetaObject::invokeMethod(&f.window, "loadIfItFits", Q_ARG(QString, QStringLiteral("/models/huge.gguf")));
    auto* line = f.find<QLabel>("modelFit");
    QTRY_VERIFY(line->text().contains(QStringLiteral("needs 9.1 GB; 6.4 GB are free")));
    QVERIFY(line->text().contains(QStringLiteral("Nothing was loaded")));
    QVERIFY(f.engine->commandsOf<LoadModel>().empty());
  }

  void recordsShowVerdicts() {
    Fixture f([](FakeEngine& engine) {
      for (int i = 0; i < 3; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    });
    f.window.setMode(MainWindow::Mode::kInspect);
    QTRY_COMPARE(f.window.inspect()->recordCount(), 3);
    auto* table = f.find<QTableView>("records");
    QCOMPARE(table->model()->index(0, 1).data().toString(), QStringLiteral("p2"));  // newest first
    FeedbackRow row;
    row.record = RecordId{f.engine->store().records({}, 0, 1).front().id};
    row.kind = FeedbackKind::kReject;
    row.source = FeedbackSource::kHuman;
    QVERIFY(f.engine->writableStore().add_feedback(row).ok());
    QTRY_VERIFY(table->model()->index(0, 4).data().toString().contains(QStringLiteral("rejected")));
  }

  void theLogShowsWhatWasWritten() {
    Fixture f;
    LogRow line;
    line.level = "warning";
    line.category = "session";
    line.text = "Something happened.";
    f.engine->writableStore().add_log(line);
    QTRY_VERIFY(f.window.log()->lines() > 0);
    QCOMPARE(f.window.log()->lineText(f.window.log()->lines() - 1), QStringLiteral("Something happened."));
  }
};

QTEST_MAIN(WindowTest)
#include "window_test.moc"
