// SPDX-License-Identifier: GPL-3.0-or-later
// The whole window on the whole engine (tiny random model, real store, HTTP, trainer, gate): what a person does, asserted
// through what the window shows and the rows in the store.
#include <QCheckBox>
#include <QDialog>
#include <QDoubleSpinBox>
#include <QInputDialog>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QTableWidget>
#include <QtTest>
#include <algorithm>

#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "labelling/label_page.h"
#include "shell/info_bar.h"
#include "start/start_page.h"
#include "timeline/timeline_page.h"
#include "widgets/support/real_engine.h"

using namespace sluice;
using namespace sluice::gui;
using namespace sluice::gui::testing;

namespace {

constexpr int kWait = 120'000;  // ms: ends a test that hangs, decides nothing
constexpr int kBatch = 16;

void press(MainWindow& window, const char* action) {
  auto* found = window.findChild<QAction*>(QString::fromLatin1(action));
  QVERIFY2(found && found->isEnabled(), action);
  found->trigger();
}

// Decisions of the gate itself, oldest first.
std::vector<DecisionRow> gateDecisions(const Store& store, DecisionId after = DecisionId(0)) {
  std::vector<DecisionRow> out;
  for (const DecisionRow& row : store.decisions(after.value, 10'000)) {
    if (row.kind == "gate") out.push_back(row);
  }
  return out;
}

// What sixteen verdicts by keyboard made of the policy.
struct LabelRun {
  std::vector<std::vector<TokenId>> answers;  // in serving order
  double before = 0, after = 0;               // mean log-prob of their tokens: base, first candidate
};

}  // namespace

class RealRuntimeTest : public QObject {
  Q_OBJECT

 private:
  // A live-only session through its dialog, sixteen answers to a client, sixteen key presses, one step.
  static void labelSixteen(Qt::Key key, LabelRun& run) {
    RealFixture f;
    QCOMPARE(f.open(), std::string());
    QTRY_VERIFY_WITH_TIMEOUT(f.find<QPushButton>("runDemo")->isEnabled(), kWait);
    press(f.window, "new");
    auto* dialog = f.window.findChild<QDialog*>();
    QVERIFY(dialog);
    dialog->findChild<QCheckBox*>(QStringLiteral("liveOnly"))->setChecked(true);
    auto* go = dialog->findChild<QPushButton*>(QStringLiteral("start"));
    QTRY_VERIFY_WITH_TIMEOUT(go->isEnabled(), kWait);
    QTest::mouseClick(go, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(f.state().session, kWait);
    const SessionId session = f.state().session->id;
    QVERIFY(f.store().session(session)->live_only);

    for (int i = 0; i < kBatch; ++i) QCOMPARE(askOverHttp(f.state().server_url, "Question " + std::to_string(i), i), std::string());
    f.window.setMode(MainWindow::Mode::kLabel);
    LabelPage* page = f.window.labels();
    QTRY_VERIFY_WITH_TIMEOUT(f.find<QLabel>("labelProgress")->text().startsWith(QString::number(kBatch)), kWait);
    QStringList pressed;
    for (int i = 0; i < kBatch; ++i) {
      const QString id = page->currentRecord();
      QVERIFY2(!id.isEmpty(), qPrintable(page->statusText()));
      QVERIFY(f.store().steps(session, 0, 10).empty());
      pressed << id;
      QTest::keyClick(page, key);
      QTRY_COMPARE_WITH_TIMEOUT(page->decided(), i + 1, kWait);
    }
    QTRY_COMPARE_WITH_TIMEOUT(f.store().steps(session, 0, 10).size(), std::size_t{1}, kWait);

    const StepRow step = f.store().steps(session, 0, 10).front();
    const auto batches = f.store().batches(session, 0, 10);
    QCOMPARE(batches.size(), std::size_t{1});
    QCOMPARE(step.batch, batches.front().id);
    QStringList trained;
    std::vector<RecordRow> records;
    for (const RecordId& id : batches.front().records) {
      trained << QString::fromStdString(id.text);
      records.push_back(*f.store().record(id));
      QCOMPARE(records.back().used_in_step, step.id);
    }
    std::reverse(pressed.begin(), pressed.end());  // shown newest first, trained in serving order
    QCOMPARE(trained, pressed);
    for (const double reward : batches.front().rewards) QCOMPARE(reward, key == Qt::Key_A ? 1.0 : -1.0);
    const QString verdict = key == Qt::Key_A ? QStringLiteral("accepted") : QStringLiteral("rejected");
    const QString used = QStringLiteral("used in step %1").arg(step.id.value);
    const auto told = [&](const QString& decision) { return decision.contains(verdict) && decision.contains(used); };
    const auto allTold = [&] {
      const QStringList history = page->history();
      return history.size() == 10 && std::all_of(history.begin(), history.end(), told);
    };
    QTRY_VERIFY2_WITH_TIMEOUT(allTold(), qPrintable(page->history().join(QLatin1Char('\n'))), kWait);

    QTest::keyClick(page, Qt::Key_U);
    QTRY_VERIFY_WITH_TIMEOUT(page->statusText().contains(QStringLiteral("A step used this label already")), kWait);

    QTRY_VERIFY_WITH_TIMEOUT(f.store().version(step.candidate), kWait);
    const auto system = load_system(tinyModel());
    QVERIFY(system.ok());
    const Scored base = score(*system->model, "", records);
    const Scored candidate = score(*system->model, f.store().adapter_folder(step.candidate), records);
    QCOMPARE(base.error, std::string());
    QCOMPARE(candidate.error, std::string());
    run.before = base.mean();
    run.after = candidate.mean();
    for (const RecordRow& record : records) run.answers.push_back(record.token_ids);
    QVERIFY(f.store().verify().empty());
  }

 private Q_SLOTS:
  void sixteenKeysMoveThePolicyTheirWay() {
    LabelRun accepted, rejected;
    labelSixteen(Qt::Key_A, accepted);
    if (QTest::currentTestFailed()) return;
    labelSixteen(Qt::Key_X, rejected);
    if (QTest::currentTestFailed()) return;
    QCOMPARE(accepted.answers, rejected.answers);  // the same answers, other verdicts
    QCOMPARE(accepted.before, rejected.before);
    qInfo("mean log-prob of the answers: base %.4f, after sixteen accepts %.4f, after sixteen rejects %.4f", accepted.before,
          accepted.after, rejected.after);
    QVERIFY(accepted.after > accepted.before + 1e-4);
    QVERIFY(rejected.after < rejected.before - 1e-4);
  }

  void aSessionBehindABusyPortIsBroughtBackOrEnded_data() {
    QTest::addColumn<bool>("end");
    QTest::newRow("another port") << false;
    QTest::newRow("end it") << true;
  }

  void aSessionBehindABusyPortIsBroughtBackOrEnded() {
    QFETCH(const bool, end);
    RealFixture f, other;
    auto earlier = std::move(Runtime::open(f.options(), f.log)).value();
    QVERIFY(earlier->wait_ready(60).ok());
    StartSession start;
    start.recipe = "be-brief";
    const SessionId session = *earlier->run(start).session;
    earlier.reset();  // in the midst of it, as at a crash
    const auto holder = std::move(Runtime::open(other.options(), other.log)).value();
    QVERIFY(holder->wait_ready(60).ok());
    const std::string url = holder->snapshot()->server_url;
    RuntimeOptions options = f.options();
    options.port = std::stoi(url.substr(url.rfind(':') + 1));
    QCOMPARE(f.open(options), std::string());

    const auto* line = f.find<QLabel>("sessionLine");
    QTRY_VERIFY_WITH_TIMEOUT(line->isVisible(), kWait);
    QVERIFY2(line->text().contains(QString::number(options.port)) && line->text().contains(QStringLiteral("free port")), qPrintable(line->text()));
    QVERIFY(f.find<QLabel>("banner")->isVisible());
    QVERIFY(!f.find<QPushButton>("runDemo")->isEnabled());
    QVERIFY(f.find<QPushButton>("choosePort")->isVisible());
    // Resuming says what is in the way and leaves everything as it was.
    QTest::mouseClick(f.find<QPushButton>("resumeSession"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(f.window.infoBar()->text(QStringLiteral("command")).contains(QStringLiteral("free port")), kWait);
    if (end) {
      QTest::mouseClick(f.find<QPushButton>("endOpenSession"), Qt::LeftButton);
      QTRY_VERIFY_WITH_TIMEOUT(f.find<QPushButton>("runDemo")->isEnabled(), kWait);
      QCOMPARE(f.store().session(session)->state, SessionState::kEnded);
      QTRY_VERIFY(!f.find<QPushButton>("resumeSession")->isVisible());
      return;
    }
    QTest::mouseClick(f.find<QPushButton>("choosePort"), Qt::LeftButton);
    auto* dialog = f.find<QInputDialog>("portDialog");
    QVERIFY(dialog);
    dialog->setIntValue(0);
    dialog->accept();
    QTRY_VERIFY_WITH_TIMEOUT(!line->isVisible(), kWait);
    QTest::mouseClick(f.find<QPushButton>("resumeSession"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(f.state().session->state == SessionState::kRunning, kWait);
    QCOMPARE(f.state().session->id, session);
    QTRY_VERIFY_WITH_TIMEOUT(f.state().stream.requests > 0, kWait);
  }

  void theDemoRunsIsSteeredAndRolledBack() {
    RealFixture f;
    QCOMPARE(f.open(), std::string());
    auto* demo = f.find<QPushButton>("runDemo");
    QTRY_VERIFY_WITH_TIMEOUT(demo->isEnabled(), kWait);
    QTest::mouseClick(demo, Qt::LeftButton);
    QCOMPARE(f.window.mode(), MainWindow::Mode::kOperate);
    GatePanel* gate = f.window.gate();
    QTRY_VERIFY_WITH_TIMEOUT(!gate->verdictTexts().isEmpty(), kWait);
    const SessionId session = f.state().session->id;
    QCOMPARE(f.store().session(session)->recipe_name, std::string("be-brief"));
    QVERIFY(f.state().stream.simulated);
    const DecisionRow first = gateDecisions(f.store()).front();
    QCOMPARE(gate->verdictTexts().back(), QString::fromStdString(first.reason_text));
    QVERIFY(f.window.timeline()->rowTexts().join(QLatin1Char('\n')).contains(QString::fromStdString(first.reason_text)));
    QTRY_VERIFY_WITH_TIMEOUT(!f.window.curves()->series(QStringLiteral("accept")).points().empty(), kWait);
    QTRY_VERIFY_WITH_TIMEOUT(!f.window.curves()->series(QStringLiteral("loss")).points().empty(), kWait);

    moveThreshold(f, first.settings);
    if (!QTest::currentTestFailed()) promoteByHand(f);
    if (!QTest::currentTestFailed()) rollBackByHand(f);
    if (QTest::currentTestFailed()) return;

    press(f.window, "end");
    QTRY_VERIFY_WITH_TIMEOUT(!f.state().session, kWait);
    QTRY_COMPARE_WITH_TIMEOUT(f.store().session(session)->state, SessionState::kEnded, kWait);  // written when it has stopped
    QTRY_VERIFY(f.window.statusText().contains(QStringLiteral("Ready")));
    QVERIFY(f.store().verify().empty());
  }

 private:
  // While it runs: the box of one threshold, the button, and the next verdict.
  static void moveThreshold(RealFixture& f, SettingsId before) {
    GatePanel* gate = f.window.gate();
    auto* box = f.find<QDoubleSpinBox>("spin_alpha");
    box->setValue(0.005);
    QVERIFY(gate->draftDiffers());
    QTest::mouseClick(f.find<QPushButton>("applyGate"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!gate->draftDiffers(), kWait);
    const GateSettingsRow row = *f.store().gate_settings();
    QVERIFY(row.id > before);
    QCOMPARE(row.who, f.window.bridge()->user());
    QVERIFY2(row.settings_json.find("0.005") != std::string::npos, row.settings_json.c_str());
    QCOMPARE(gate->draftValue(QStringLiteral("alpha")), 0.005);
    // A verdict that was being written at that very moment may still carry the row before; the next one can't.
    const auto since = [&] {
      auto rows = gateDecisions(f.store());
      rows.erase(std::remove_if(rows.begin(), rows.end(), [&](const DecisionRow& d) { return d.time_us <= row.time_us; }), rows.end());
      if (!rows.empty() && rows.front().settings == before) rows.erase(rows.begin());
      return rows;
    };
    QTRY_VERIFY_WITH_TIMEOUT(!since().empty(), kWait);
    QCOMPARE(since().front().settings, row.id);
    const QString reason = QString::fromStdString(since().front().reason_text);
    QTRY_VERIFY_WITH_TIMEOUT(gate->verdictTexts().contains(reason), kWait);
  }

  // Paused, so that the card under the hand stays the newest; then the loop goes on.
  static void promoteByHand(RealFixture& f) {
    press(f.window, "pause");
    QTRY_VERIFY_WITH_TIMEOUT(f.state().session->state == SessionState::kPaused && f.state().gate.note == "paused", kWait);
    QTRY_VERIFY(f.find<QLabel>("banner")->text().contains(QStringLiteral("paused")));
    const DecisionRow held = gateDecisions(f.store()).back();
    QCOMPARE(held.verdict, Verdict::kHold);
    QTRY_COMPARE_WITH_TIMEOUT(f.window.gate()->verdictTexts().front(), QString::fromStdString(held.reason_text), kWait);
    QPushButton* promote = nullptr;
    QLineEdit* note = nullptr;
    const auto openCard = [&] {
      for (auto* button : f.window.gate()->findChildren<QPushButton*>(QStringLiteral("handPromote"))) {
        if (!button->isVisibleTo(f.window.gate())) continue;
        promote = button;
        note = button->parentWidget()->findChild<QLineEdit*>(QStringLiteral("handNote"));
      }
      return promote && note;
    };
    QTRY_VERIFY_WITH_TIMEOUT(openCard(), kWait);
    QTest::keyClicks(note, QStringLiteral("good enough for a test"));
    QTest::mouseClick(promote, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(f.store().serving_version() != kBaseVersion, kWait);
    const DecisionRow by = f.store().decisions(0, 10'000).back();
    QCOMPARE(by.kind, std::string("manual"));
    QCOMPARE(by.verdict, Verdict::kPromote);
    QCOMPARE(by.actor, f.window.bridge()->user());
    QCOMPARE(by.note, std::string("good enough for a test"));
    const QString name = QStringLiteral("be-brief@%1 serves").arg(f.store().serving_version().value);
    QTRY_VERIFY2_WITH_TIMEOUT(f.window.statusText().contains(name), qPrintable(f.window.statusText()), kWait);
    press(f.window, "pause");  // is Resume now
    QTRY_VERIFY_WITH_TIMEOUT(f.state().session->state == SessionState::kRunning, kWait);
  }

  // By the table of versions and the button below it, while requests run.
  static void rollBackByHand(RealFixture& f) {
    const VersionId promoted = f.store().serving_version();
    TimelinePage* timeline = f.window.timeline();
    auto* table = f.find<QTableWidget>("versionTable");
    QTRY_VERIFY_WITH_TIMEOUT(table->item(table->rowCount() - 1, 1)->text() != QStringLiteral("in service"), kWait);
    timeline->select(kBaseVersion);
    QCOMPARE(timeline->rollBackReason(), QString());
    QTest::mouseClick(f.find<QPushButton>("rollBack"), Qt::LeftButton);
    auto* sheet = f.window.findChild<QDialog*>(QStringLiteral("rollBackSheet"));
    QVERIFY(sheet && sheet->isVisible());
    QCOMPARE(f.store().serving_version(), promoted);  // asks first
    QTest::mouseClick(sheet->findChild<QPushButton*>(QStringLiteral("confirmRollBack")), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(f.store().serving_version(), kBaseVersion, kWait);
    DecisionRow back;
    for (const DecisionRow& row : f.store().decisions(0, 10'000)) {
      if (row.kind == "rollback") back = row;
    }
    QCOMPARE(back.version, kBaseVersion);
    QCOMPARE(back.incumbent, promoted);
    QCOMPARE(back.actor, f.window.bridge()->user());
    QVERIFY(!back.note.empty());
    QCOMPARE(f.store().version(promoted)->state, VersionState::kRetired);
    QTRY_VERIFY_WITH_TIMEOUT(f.window.infoBar()->has(QStringLiteral("rollback")), kWait);
    QTRY_VERIFY_WITH_TIMEOUT(f.window.statusText().contains(QStringLiteral("base serves")), kWait);
    QTRY_COMPARE_WITH_TIMEOUT(table->item(table->rowCount() - 1, 1)->text(), QStringLiteral("in service"), kWait);
    QTRY_VERIFY_WITH_TIMEOUT(f.window.gate()->verdictTexts().contains(QString::fromStdString(back.reason_text)), kWait);
    // The loop goes on from there: what is answered next is the base's.
    const std::int64_t seq = f.store().records({}, 0, 1).front().seq;
    const auto live = [&] {
      for (const RecordRow& row : f.store().records_after(seq, 100)) {
        if (row.purpose == Purpose::kLive && row.received_us > back.time_us) return row.version;
      }
      return VersionId(-1);
    };
    QTRY_COMPARE_WITH_TIMEOUT(live(), kBaseVersion, kWait);
  }
};

QTEST_MAIN(RealRuntimeTest)
#include "real_runtime_test.moc"
