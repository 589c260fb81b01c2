// SPDX-License-Identifier: GPL-3.0-or-later
// What the window shows stays true while things change around it: a draft under other people's settings, labels taken back,
// errors that stand and pass, decisions after a session, and text of models and clients as it is.
#include <QLabel>
#include <QPointer>
#include <QPushButton>
#include <QSlider>
#include <QTableView>
#include <QtTest>

#include "compare/inspect_page.h"
#include "compare/record_model.h"
#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "labelling/label_page.h"
#include "shell/info_bar.h"
#include "timeline/timeline_page.h"
#include "widgets/support/fake_window.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;

class WindowStateTest : public QObject {
  Q_OBJECT

 private:
  static FeedbackRow label(const RecordId& record, FeedbackKind kind, FeedbackSource source) {
    FeedbackRow row;
    row.record = record;
    row.kind = kind;
    row.source = source;
    return row;
  }
  static SessionId addSession(Store& store, const std::string& name) {
    SessionRow row;
    row.name = name;
    row.recipe_name = "be-brief";
    return *store.add_session(row);
  }
  // Verdicts of requests 1 to n: two accepted, two rejected, and so on.
  static void addVerdicts(Store& store, SessionId session, int n) {
    std::vector<MetricRow> rows(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
      auto& row = rows[static_cast<std::size_t>(i)];
      row.session = session;
      row.name = "accept";
      row.x = i + 1;
      row.value = i / 2 % 2;
    }
    QVERIFY(store.add_metrics(rows).ok());
  }

 private Q_SLOTS:
  void aDraftKeepsWhatOthersChangedMeanwhile() {
    FakeWindow f;
    f.window.setMode(MainWindow::Mode::kOperate);
    GatePanel* gate = f.window.gate();
    QTRY_COMPARE(gate->draftValue(QStringLiteral("alpha")), 0.1);
    gate->setDraftValue(QStringLiteral("alpha"), 0.02);
    gate->setDraftValue(QStringLiteral("invariants.kl_base"), 2);
    GateSettingsRow row;
    row.who = "session";
    row.settings_json =
        R"({"profile":"standard","alpha":0.05,"beta":0.2,"delta":0.03,"n_min":32,"cap":256,"protected_delta":0.02,"invariants":{"kl_base":1.5,"kl_incumbent":0.5}})";
    const auto id = f.engine->writableStore().add_gate_settings(row);
    QVERIFY(id.ok());
    QTRY_COMPARE(gate->draftValue(QStringLiteral("beta")), 0.2);
    QCOMPARE(gate->draftValue(QStringLiteral("alpha")), 0.02);
    gate->apply();
    QTRY_COMPARE(f.engine->commandsOf<PutGateSettings>().size(), std::size_t{1});
    const PutGateSettings sent = f.engine->commandsOf<PutGateSettings>().front();
    QCOMPARE(sent.if_match, *id);
    const QJsonObject settings = QJsonDocument::fromJson(QByteArray::fromStdString(sent.settings_json)).object();
    QCOMPARE(settings.value(QStringLiteral("profile")).toString(), QStringLiteral("standard"));
    QCOMPARE(settings.value(QStringLiteral("alpha")).toDouble(), 0.02);
    QCOMPARE(settings.value(QStringLiteral("delta")).toDouble(), 0.03);
    QCOMPARE(settings.value(QStringLiteral("n_min")).toInt(), 32);
    const QJsonObject invariants = settings.value(QStringLiteral("invariants")).toObject();
    QCOMPARE(invariants.value(QStringLiteral("kl_base")).toDouble(), 2.0);
    QCOMPARE(invariants.value(QStringLiteral("kl_incumbent")).toDouble(), 0.5);
  }

  void aLabelTakenBackIsNoVerdictAndLeavesTheOthers() {
    const RecordRow first = makeRecord("p1", "r"), second = makeRecord("p2", "r");
    FeedbackId given;
    FakeWindow f([&](FakeEngine& engine) {
      Store& store = engine.writableStore();
      for (const RecordRow& record : {first, second}) {
        QVERIFY(store.add_record(record).ok());
        QVERIFY(store.add_feedback(label(record.id, FeedbackKind::kAccept, FeedbackSource::kPersona)).ok());
      }
      const auto wrong = store.add_feedback(label(first.id, FeedbackKind::kReject, FeedbackSource::kHuman));
      QVERIFY(wrong.ok() && store.retract_feedback(wrong->row.id, true).ok());  // before the window opened
      given = store.add_feedback(label(second.id, FeedbackKind::kReject, FeedbackSource::kHuman))->row.id;
    });
    f.window.setMode(MainWindow::Mode::kInspect);
    QTRY_COMPARE(f.window.inspect()->recordCount(), 2);
    const auto* model = f.find<QTableView>("records")->model();
    const auto verdict = [&](int row) { return model->index(row, RecordModel::kVerdict).data().toString(); };
    QTRY_VERIFY(verdict(0).contains(QStringLiteral("rejected")));  // the newest record stands first
    QVERIFY(verdict(1).contains(QStringLiteral("accepted")));
    QVERIFY(f.engine->writableStore().retract_feedback(given, true).ok());
    QTRY_VERIFY(verdict(0).contains(QStringLiteral("accepted")));
  }

  void textOfModelsAndClientsIsShownAsItIs() {
    const std::string prompt = "What does <br> do, and <b>why</b>?";
    FakeWindow f([&](FakeEngine& engine) {
      QVERIFY(engine.writableStore().add_record(makeRecord(prompt, "It breaks the <i>line</i>.")).ok());
      QVERIFY(addVersion(engine.writableStore(), Verdict::kHold, "Held v1: <b>no</b> evidence.").valid());
    });
    f.window.setMode(MainWindow::Mode::kLabel);
    QTRY_VERIFY(!f.window.labels()->currentRecord().isEmpty());
    QCOMPARE(f.find<QLabel>("labelPrompt")->text(), QString::fromStdString(prompt));
    f.window.infoBar()->show(QStringLiteral("told"), InfoBar::Severity::kWarning, QStringLiteral("<b>x</b>"));
    f.window.setMode(MainWindow::Mode::kOperate);
    QTRY_COMPARE(f.window.gate()->verdictTexts().size(), 1);
    // What the engine, a recipe, a model or a client wrote is never read as markup.
    for (const char* name : {"labelPrompt", "labelStatus", "reason", "receipt", "leftHead", "rightHead", "banner", "status", "gateProgress",
                             "whatIf", "conditions", "text", "problem", "modelLine", "sessionLine", "modelFit", "serverLine", "startsFrom", "sessionNow"}) {
      const auto* shown = f.find<QLabel>(name);
      QVERIFY2(shown, name);
      QVERIFY2(shown->textFormat() == Qt::PlainText, name);
    }
    const auto* model = f.find<QTableView>("records")->model();
    QTRY_COMPARE(model->rowCount(), 1);
    const QString tip = model->index(0, RecordModel::kPrompt).data(Qt::ToolTipRole).toString();
    QVERIFY2(tip.contains(QStringLiteral("&lt;br&gt;")) && !tip.contains(QStringLiteral("<b>")), qPrintable(tip));
  }

  void theLearningCurveIsRawAndSmoothed() {
    FakeWindow f([&](FakeEngine& engine) { addVerdicts(engine.writableStore(), addSession(engine.writableStore(), "s"), 200); });
    f.window.setMode(MainWindow::Mode::kOperate);
    const CurveView* view = f.window.curves()->card(QStringLiteral("accept"));
    auto* slider = f.find<QSlider>("smoothing");
    slider->setValue(0);
    QTRY_VERIFY(!view->drawnLine(0).empty());
    const auto before = view->drawnLine(0);
    QVERIFY(view->drawnPoints() > static_cast<int>(before.size()));  // the pale line
    slider->setValue(95);
    QTRY_VERIFY(view->drawnLine(0) != before);
    QVERIFY(f.window.curves()->cardHead(QStringLiteral("accept")).contains(QStringLiteral("0.5")));  // of the last 32, whatever is smoothed
  }

  void aDecisionAfterTheSessionHasItsMark() {
    SessionId first, second;
    FakeWindow f([&](FakeEngine& engine) {
      Store& store = engine.writableStore();
      QVERIFY(addVersion(store, Verdict::kReject, "Before any.").valid());
      first = addSession(store, "first");
      addVerdicts(store, first, 10);
      QVERIFY(addVersion(store, Verdict::kReject, "After the first.").valid());
      second = addSession(store, "second");
      addVerdicts(store, second, 10);
    });
    CurvesPage* curves = f.window.curves();
    QTRY_COMPARE(curves->session(), second);
    QVERIFY(addVersion(f.engine->writableStore(), Verdict::kReject, "After the second.").valid());
    const auto marks = [&] {
      QStringList texts;
      for (const CurveMark& mark : curves->card(QStringLiteral("accept"))->drawnMarks()) texts << mark.text;
      return texts.join(QLatin1Char('|'));
    };
    QTRY_COMPARE(marks(), QStringLiteral("After the second."));
    curves->setXAxis(CurvesPage::XAxis::kMinutes);
    // Where the curve ends: beyond it nobody would see the mark.
    QVERIFY(curves->card(QStringLiteral("accept"))->drawnMarks().front().x <= curves->series(QStringLiteral("accept")).maxX());
    curves->showSession(first);
    QCOMPARE(marks(), QStringLiteral("After the first."));
  }

  void aStandingErrorIsToldOnceAndGoesWhenItIsOver() {
    FakeWindow f;
    const auto set = [&](const std::function<void(EngineState&)>& change) {
      f.engine->setState(change);
      f.window.bridge()->pollNow();
    };
    InfoBar* info = f.window.infoBar();
    set([](EngineState& s) { s.store_error = "The disk is full."; });
    QCOMPARE(info->text(QStringLiteral("store")), QStringLiteral("The disk is full."));
    const QPointer<QWidget> bar = f.find<QWidget>("store");
    f.window.bridge()->pollNow();
    QVERIFY(bar && bar->isVisible());  // the same one: its text can be selected
    set([](EngineState& s) { s.store_error = "The disk is gone."; });
    QCOMPARE(info->text(QStringLiteral("store")), QStringLiteral("The disk is gone."));
    set([](EngineState& s) { s.store_error.clear(); });
    QVERIFY(!info->has(QStringLiteral("store")));
  }

  void aBrakeThatWasDismissedStaysAwayAndOneThatWasReleasedGoes() {
    FakeWindow f;
    const auto brake = [&](const std::string& text) {
      f.engine->setState([&](EngineState& s) { s.train.brake = text; });
      f.window.bridge()->pollNow();
    };
    InfoBar* info = f.window.infoBar();
    brake("answers got too long");
    QVERIFY(info->text(QStringLiteral("brake")).contains(QStringLiteral("answers got too long")));
    info->dismiss(QStringLiteral("brake"));
    f.window.bridge()->pollNow();
    QVERIFY(!info->has(QStringLiteral("brake")));
    brake("");
    brake("answers got too long");  // once more is news
    QVERIFY(info->has(QStringLiteral("brake")));
    brake("");
    QVERIFY(!info->has(QStringLiteral("brake")));
    // "Go on" that was refused: training stands still as before, and the way out is offered again.
    f.engine->script = [](const Command& command) -> std::optional<CommandOutcome> {
      if (!std::holds_alternative<ResumeSession>(command)) return std::nullopt;
      CommandOutcome out;
      out.status = unavailable("Not now.");
      out.text = "Not now.";
      return out;
    };
    brake("answers got too long");
    QVERIFY(info->trigger(QStringLiteral("brake")));
    QTRY_COMPARE(info->text(QStringLiteral("command")), QStringLiteral("Not now."));
    QTRY_VERIFY(info->has(QStringLiteral("brake")));
  }

  void aVersionTakenOutForHarmCantBeRolledBackTo() {
    VersionId harmful;
    FakeWindow f([&](FakeEngine& engine) {
      Store& store = engine.writableStore();
      harmful = addVersion(store, Verdict::kPromote, "Promoted v1.");
      DecisionWrite back;
      back.row.version = kBaseVersion;
      back.row.incumbent = harmful;
      back.row.verdict = Verdict::kPromote;
      back.row.kind = "rollback";
      back.row.scope = "full";
      back.row.actor = "gate";
      back.row.reason_text = "Rolled back.";
      back.states = {{harmful, VersionState::kQuarantined}};
      back.serving = kBaseVersion;
      QVERIFY(store.commit_decision(back).ok());
    });
    f.window.setMode(MainWindow::Mode::kOperate);
    TimelinePage* timeline = f.window.timeline();
    QTRY_COMPARE(timeline->rowTexts().size(), 2);
    timeline->select(harmful);
    QVERIFY(timeline->rollBackReason().contains(QStringLiteral("taken out")));
    QVERIFY(!f.find<QPushButton>("rollBack")->isEnabled());
  }
};

QTEST_MAIN(WindowStateTest)
#include "window_state_test.moc"
