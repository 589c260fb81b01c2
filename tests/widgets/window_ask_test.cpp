// SPDX-License-Identifier: GPL-3.0-or-later
// What the window asks of a person, whose name it keeps with the answer, and what it must not do meanwhile: wait for the
// engine, or move a reply away from under the eyes that read it.
#include <QDialog>
#include <QDoubleSpinBox>
#include <QInputDialog>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QRegularExpression>
#include <QToolButton>
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "compare/inspect_page.h"
#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "gate/verdict_card.h"
#include "labelling/label_page.h"
#include "release/gate_json.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "shell/theme.h"
#include "shell/user_name.h"
#include "start/start_page.h"
#include "timeline/timeline_page.h"
#include "widgets/support/fake_window.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;

class WindowAskTest : public QObject {
  Q_OBJECT

 private:
  static void set(FakeWindow& f, const std::function<void(EngineState&)>& change) {
    f.engine->setState(change);
    f.window.bridge()->pollNow();
  }
  static void press(FakeWindow& f, const char* action) {
    auto* found = f.find<QAction>(action);
    QVERIFY2(found && found->isEnabled(), action);
    found->trigger();
  }
  // A client's verdict, and a step that trained on it.
  static void train(Store& store, const RecordId& record) {
    FeedbackRow verdict;
    verdict.record = record;
    verdict.source = FeedbackSource::kClient;
    QVERIFY(store.add_feedback(verdict).ok());
    BatchRow batch;
    batch.records = {record};
    batch.rewards = batch.advantages = batch.weights = {1};
    batch.state = "formed";
    const auto id = store.add_batch(batch, {}, {});
    QVERIFY(id.ok());
    StepRow step;
    step.batch = *id;
    step.number = 1;
    QVERIFY(store.add_step(step, {}).ok());
  }

 private Q_SLOTS:
  void trainingThatWaitsForAPersonSaysSoUntilItIsAnswered() {
    VersionId held;
    FakeWindow f([&](FakeEngine& engine) { held = addVersion(engine.writableStore(), Verdict::kHold, "Held v1: inconclusive."); });
    InfoBar* info = f.window.infoBar();
    const QString id = QStringLiteral("plateau");
    const auto wait = [&](EngineState& s) {
      s.session = SessionRow();
      s.session->state = SessionState::kRunning;
      s.train.phase = TrainPhase::kAtBound;
      s.train.steps_ahead = 6;
      s.gate.held = {held};
    };
    set(f, wait);
    QVERIFY(!info->has(id));  // a candidate is being measured still
    set(f, [](EngineState& s) { s.train.asks = true; });
    QVERIFY2(info->text(id).contains(QStringLiteral("v1")) && info->text(id).contains(QStringLiteral("Training waits")), qPrintable(info->text(id)));

    // To its card, where the reason goes; what holds still stays.
    f.window.setMode(MainWindow::Mode::kInspect);
    QTRY_VERIFY(f.find<QLineEdit>("handNote"));
    QVERIFY(info->trigger(id, 0));
    QCOMPARE(f.window.mode(), MainWindow::Mode::kOperate);
    QCOMPARE(f.window.focusWidget(), f.find<QLineEdit>("handNote"));
    QVERIFY(info->has(id));

    f.engine->script = [](const Command& command) -> std::optional<CommandOutcome> {
      if (!std::holds_alternative<TrainOn>(command)) return std::nullopt;
      CommandOutcome out;
      out.status = conflict("Not now.");
      out.text = "Not now.";
      return out;
    };
    QVERIFY(info->trigger(id, 1));
    QTRY_COMPARE(f.engine->commandsOf<TrainOn>().size(), std::size_t{1});
    QTRY_COMPARE(info->text(QStringLiteral("command")), QStringLiteral("Not now."));
    QTRY_VERIFY(info->has(id));  // asked again, since nothing goes on
    QVERIFY(info->trigger(id, 2));
    QTRY_COMPARE(f.engine->commandsOf<DiscardTraining>().size(), std::size_t{1});
    set(f, [](EngineState& s) {
      s.train.asks = false;
      s.train.phase = TrainPhase::kWaiting;
    });
    QVERIFY(!info->has(id));
    set(f, [](EngineState& s) { s.train.asks = true; });
    QVERIFY(info->has(id));
    set(f, [](EngineState& s) { s.session.reset(); });
    QVERIFY(!info->has(id));
  }

  void decisionsAndLabelsCarryTheNameOfWhoWorksHere() {
    VersionId first, held;
    FakeWindow f([&](FakeEngine& engine) {
      first = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.");
      QVERIFY(addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v2.").valid());
      held = addVersion(engine.writableStore(), Verdict::kHold, "Held v3.");
      QVERIFY(engine.writableStore().add_record(makeRecord("p", "r")).ok());
    });
    QVERIFY(!loginName().isEmpty());
    QCOMPARE(QString::fromStdString(f.window.bridge()->user()), loginName());
    const auto call = [&](const QString& name) {
      press(f, "name");
      auto* dialog = f.find<QInputDialog>("nameDialog");
      QVERIFY(dialog);
      dialog->setTextValue(name);
      dialog->accept();
      QTRY_VERIFY(!f.find<QInputDialog>("nameDialog"));
    };
    call(QStringLiteral("  "));
    QCOMPARE(QString::fromStdString(f.window.bridge()->user()), loginName());
    call(QStringLiteral("Ada"));
    const std::string ada = "Ada";

    press(f, "freeze");
    press(f, "base");
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->draftValue(QStringLiteral("alpha")), 0.1);
    gate->setDraftValue(QStringLiteral("alpha"), 0.02);
    gate->apply();
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<PutGateSettings>().front().who, ada);
    QTRY_VERIFY(f.find<QLineEdit>("handNote"));
    f.find<QLineEdit>("handNote")->setText(QStringLiteral("why not"));
    f.find<QPushButton>("handReject")->click();
    TimelinePage* timeline = f.window.timeline();
    QTRY_COMPARE(timeline->rowTexts().size(), 4);
    timeline->select(first);
    timeline->rollBack();
    f.window.findChild<QDialog*>(QStringLiteral("rollBackSheet"))->accept();
    QTRY_VERIFY(f.window.infoBar()->has(QStringLiteral("rollback")));
    QVERIFY(f.window.infoBar()->trigger(QStringLiteral("rollback")));
    QTRY_COMPARE(f.engine->commandsOf<Decide>().size(), std::size_t{4});  // freeze, reject, roll back, undo
    for (const Decide& decide : f.engine->commandsOf<Decide>()) QCOMPARE(decide.actor, ada);
    QCOMPARE(f.engine->commandsOf<ServeBaseAndFreeze>().front().actor, ada);

    f.window.setMode(MainWindow::Mode::kLabel);
    QTRY_VERIFY(!f.window.labels()->currentRecord().isEmpty());
    QTest::keyClick(f.window.labels(), Qt::Key_A);
    QTRY_COMPARE(f.engine->commandsOf<GiveLabel>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<GiveLabel>().front().labeller, ada);
  }

  void theWindowItselfReadsNothingOfTheEngine() {
    FakeWindow f;
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->draftValue(QStringLiteral("alpha")), 0.1);
    QTRY_VERIFY(f.find<QPushButton>("runDemo")->isEnabled());
    press(f, "new");
    auto* dialog = f.window.findChild<QDialog*>();
    QVERIFY(dialog && dialog->isVisible());
    QTRY_VERIFY(dialog->findChild<QPushButton*>(QStringLiteral("start"))->isEnabled());
    dialog->reject();
    gate->setDraftValue(QStringLiteral("alpha"), 0.02);
    gate->apply();
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    QTRY_VERIFY(!gate->draftDiffers());
    QMetaObject::invokeMethod(&f.window, "loadIfItFits", Q_ARG(QString, QStringLiteral("/models/huge.gguf")));
    QTRY_VERIFY(f.find<QLabel>("modelFit")->text().contains(QStringLiteral("9.1 GB")));
    QVERIFY(f.engine->reads >= 4);
    QCOMPARE(f.engine->readsInWindow.load(), 0);
  }

  void everyLimitOfTheGateCanBeMoved() {
    FakeWindow f([](FakeEngine& engine) { engine.gateJson = gate_settings_to_json(gate_preset(GateProfile::kDemo)); });
    f.window.setMode(MainWindow::Mode::kOperate);
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->draftValue(QStringLiteral("invariants.eos_drop")), 0.35);
    const auto numbers = [](const QJsonObject& object, const QString& before) {
      QStringList out;
      for (auto it = object.begin(); it != object.end(); ++it) {
        if (it->isDouble()) out << before + it.key();
      }
      return out;
    };
    const QJsonObject all = QJsonDocument::fromJson(QByteArray::fromStdString(f.engine->gateJson)).object();
    QStringList paths = numbers(all, QString()) + numbers(all.value(QStringLiteral("invariants")).toObject(), QStringLiteral("invariants."));
    for (const char* how : {"probes", "k", "lam_max", "mu0", "v0"}) paths.removeAll(QString::fromLatin1(how));  // how it measures and bets
    QVERIFY2(paths.size() > 15, qPrintable(paths.join(QLatin1Char(' '))));
    for (const QString& path : paths) {
      auto* box = f.window.findChild<QDoubleSpinBox*>(QStringLiteral("spin_") + path);
      QVERIFY2(box, qPrintable(path));
      QVERIFY2(std::abs(box->value() - gate->draftValue(path)) < 1e-9, qPrintable(path));
    }
    auto* box = f.find<QDoubleSpinBox>("spin_invariants.eos_drop");
    QVERIFY(!box->isVisible());
    QTest::mouseClick(f.find<QToolButton>("furtherThresholds"), Qt::LeftButton);
    QVERIFY(box->isVisible());
    box->setValue(0.2);
    QVERIFY(gate->draftDiffers());
    QTest::mouseClick(f.find<QPushButton>("applyGate"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    const auto sent = gate_settings_from_json(f.engine->commandsOf<PutGateSettings>()[0].settings_json, GateSettings());
    QVERIFY(sent.ok());
    QCOMPARE(sent->invariants.eos_drop, 0.2);
  }

  void aDraftThatLoosensAsksOnce() {
    FakeWindow f([](FakeEngine& engine) { engine.looser = true; });
    f.window.setMode(MainWindow::Mode::kOperate);
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->draftValue(QStringLiteral("alpha")), 0.1);
    gate->setDraftValue(QStringLiteral("alpha"), 0.2);
    const auto ask = [&] {
      QTest::mouseClick(f.find<QPushButton>("applyGate"), Qt::LeftButton);
      QTRY_VERIFY(f.find<QDialog>("loosenSheet"));
    };
    ask();
    QVERIFY(f.find<QLabel>("changes")->text().contains(QStringLiteral("0.2 instead of 0.1")));
    f.find<QDialog>("loosenSheet")->reject();
    QTRY_VERIFY(!f.find<QDialog>("loosenSheet"));
    QVERIFY(f.engine->commandsOf<PutGateSettings>().empty());
    QVERIFY(gate->draftDiffers() && f.find<QPushButton>("applyGate")->isEnabled());  // the draft is kept
    ask();
    QTest::mouseClick(f.find<QPushButton>("confirmLoosen"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    QTRY_VERIFY(!gate->draftDiffers());
    QCOMPARE(gate->draftValue(QStringLiteral("alpha")), 0.2);
    QTRY_COMPARE(f.find<QPushButton>("applyGate")->text(), QStringLiteral("Apply"));
    f.engine->looser = false;
    gate->setDraftValue(QStringLiteral("alpha"), 0.02);
    QTest::mouseClick(f.find<QPushButton>("applyGate"), Qt::LeftButton);
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{2});
  }

  void aRunThatDoesNotStartFromTheBaseSaysSo() {
    FakeWindow f([](FakeEngine& engine) {
      QVERIFY(addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.").valid());
      engine.setState([](EngineState& s) {
        s.serving = VersionId(1);
        s.serving_name = "be-brief@1";
      });
    });
    auto* line = f.find<QLabel>("startsFrom");
    QTRY_VERIFY(line->isVisible() && line->text().contains(QStringLiteral("be-brief@1 of an earlier run serves")));
    QTRY_COMPARE(f.window.timeline()->rowTexts().size(), 2);
    QTest::mouseClick(f.find<QPushButton>("rollBackToBase"), Qt::LeftButton);
    auto* sheet = f.window.findChild<QDialog*>(QStringLiteral("rollBackSheet"));
    QVERIFY(sheet && sheet->isVisible());
    sheet->reject();

    const QString id = QStringLiteral("startsFrom");
    QTest::mouseClick(f.find<QPushButton>("runDemo"), Qt::LeftButton);
    QTRY_VERIFY(f.window.infoBar()->text(id).contains(QStringLiteral("be-brief@1 of an earlier run serves: this run starts from it")));
    QTRY_VERIFY(!f.find<QDialog>("rollBackSheet"));
    QVERIFY(f.window.infoBar()->trigger(id));
    QTRY_VERIFY(f.find<QDialog>("rollBackSheet"));
    f.find<QDialog>("rollBackSheet")->accept();
    QTRY_COMPARE(f.engine->commandsOf<Decide>().size(), std::size_t{1});
    QCOMPARE(f.engine->commandsOf<Decide>().front().version, kBaseVersion);
    QTRY_VERIFY(!f.window.infoBar()->has(id));
  }

  void aRunFromTheBaseHasNothingToExplain() {
    FakeWindow f;
    QTRY_VERIFY(f.find<QPushButton>("runDemo")->isEnabled());
    QVERIFY(!f.find<QLabel>("startsFrom")->isVisible());
    QTest::mouseClick(f.find<QPushButton>("runDemo"), Qt::LeftButton);
    QTRY_VERIFY(f.window.infoBar()->has(QStringLiteral("command")));
    QVERIFY(!f.window.infoBar()->has(QStringLiteral("startsFrom")));
  }

  void whatArrivesWhileLabellingIsNextAndTheShownReplyStays() {
    FakeWindow f([](FakeEngine& engine) {
      for (int i = 1; i <= 3; ++i) QVERIFY(engine.writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    auto* prompt = f.find<QLabel>("labelPrompt");
    auto* progress = f.find<QLabel>("labelProgress");
    QTRY_COMPARE(prompt->text(), QStringLiteral("p3"));
    for (int i = 4; i <= 5; ++i) QVERIFY(f.engine->writableStore().add_record(makeRecord("p" + std::to_string(i), "r")).ok());
    QTRY_VERIFY(progress->text().startsWith(QLatin1Char('5')));
    QStringList order;
    for (int i = 0; i < 5; ++i) {
      order << prompt->text();
      const QString before = page->currentRecord();
      QTest::keyClick(page, Qt::Key_A);
      QTRY_VERIFY(page->currentRecord() != before);
    }
    QCOMPARE(order.join(QLatin1Char(' ')), QStringLiteral("p3 p5 p4 p2 p1"));
  }

  void whatAStepUsedMeanwhileLeavesTheQueue() {
    std::vector<RecordRow> rows;
    for (int i = 1; i <= 4; ++i) rows.push_back(makeRecord("p" + std::to_string(i), "r"));
    FakeWindow f([&](FakeEngine& engine) {
      const SessionId session = *engine.writableStore().add_session(SessionRow());
      for (RecordRow& row : rows) {
        row.session = session;
        row.received_us = row.served_us = nowUs();
        QVERIFY(engine.writableStore().add_record(row).ok());
      }
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    auto* progress = f.find<QLabel>("labelProgress");
    QTRY_VERIFY(progress->text().startsWith(QLatin1Char('4')));
    train(f.engine->writableStore(), rows[1].id);
    QTRY_VERIFY2(progress->text().startsWith(QLatin1Char('3')), qPrintable(progress->text()));
    // The one that is being read stays, and says what its verdict is good for now.
    train(f.engine->writableStore(), rows[3].id);
    QTRY_VERIFY(page->statusText().contains(QStringLiteral("used this reply meanwhile")));
    QCOMPARE(f.find<QLabel>("labelPrompt")->text(), QStringLiteral("p4"));
    QTest::keyClick(page, Qt::Key_S);
    QCOMPARE(f.find<QLabel>("labelPrompt")->text(), QStringLiteral("p3"));
    QCOMPARE(page->statusText(), QString());
    QTest::keyClick(page, Qt::Key_S);
    QCOMPARE(f.find<QLabel>("labelPrompt")->text(), QStringLiteral("p1"));
  }

  void aRollBackHasItsMarkInTheCurves() {
    VersionId promoted;
    SessionId session;
    FakeWindow f([&](FakeEngine& engine) {
      SessionRow row;
      row.name = "s";
      session = *engine.writableStore().add_session(row);
      promoted = addVersion(engine.writableStore(), Verdict::kPromote, "Promoted v1.", session);
    });
    QTRY_COMPARE(f.window.curves()->session(), session);
    DecisionWrite back;
    back.row.version = kBaseVersion;
    back.row.incumbent = promoted;
    back.row.session = session;
    back.row.verdict = Verdict::kPromote;
    back.row.kind = "rollback";
    back.row.scope = "full";
    back.row.actor = "Ada";
    back.row.reason_text = "Rolled back.";
    back.states = {{promoted, VersionState::kRetired}, {kBaseVersion, VersionState::kServing}};
    back.serving = kBaseVersion;
    QVERIFY(f.engine->writableStore().commit_decision(back).ok());
    const auto marks = [&] { return f.window.curves()->card(QStringLiteral("accept"))->drawnMarks(); };
    QTRY_COMPARE(marks().size(), std::size_t{2});
    QVERIFY(marks().front().kind == CurveMark::Kind::kPromote);
    QVERIFY(marks().back().kind == CurveMark::Kind::kRollback);
    QCOMPARE(marks().back().text, QStringLiteral("Rolled back."));
    QVERIFY(marks().back().glyph != marks().front().glyph);
  }

  void oneSinglePointIsSeen() {
    CurveView view;
    view.resize(400, 240);
    view.setYRange(Range{0, 1});
    const std::vector<CurvePoint> points{{12, 0.5}}, none;
    view.show();
    QVERIFY(QTest::qWaitForWindowExposed(&view));
    const auto inked = [&](const std::vector<CurvePoint>* shown) {
      view.setSeries({{QStringLiteral("rejected"), nullptr, shown, 0}});
      const QImage image = view.grab().toImage();
      const QColor ink = Theme(view.palette()).series(0);
      int count = 0;
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) count += image.pixelColor(x, y) == ink;
      }
      return count;
    };
    QCOMPARE(inked(&none), 0);
    QVERIFY(inked(&points) >= 8);
    // A gap among few points has no dot: it lies nowhere.
    QTest::failOnWarning(QRegularExpression(QStringLiteral("NaN")));
    const std::vector<CurvePoint> gap{{11, std::nan("")}, {12, 0.5}, {13, 0.5}};
    QVERIFY(inked(&gap) > inked(&none));
    std::vector<CurvePoint> many;
    for (int i = 0; i < 400; ++i) many.push_back({static_cast<double>(i), 0.5});
    QVERIFY(inked(&many) > 0);
  }
};

QTEST_MAIN(WindowAskTest)
#include "window_ask_test.moc"
