// SPDX-License-Identifier: GPL-3.0-or-later
// What the window's actions do: commands to the engine, the dialogs that ask for more, and the way out.
#include <QCloseEvent>
#include <QDockWidget>
#include <QFileDialog>
#include <QInputDialog>
#include <QLabel>
#include <QMenuBar>
#include <QProgressBar>
#include <QPushButton>
#include <QSaveFile>
#include <QStatusBar>
#include <QThreadPool>
#include <QToolBar>
#include <QVBoxLayout>
#include <utility>
#include <variant>

#include "curves/curves_page.h"
#include "session/session_dialog.h"
#include "shell/actions.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "shell/outcome_text.h"
#include "shell/user_name.h"
#include "shell/words.h"
#include "start/start_page.h"
#include "timeline/timeline_page.h"
#include "workbench/main_window.h"

namespace sluice::gui {
namespace {

using Severity = InfoBar::Severity;

// A dialog that is opened, never executed: the event loop goes on below it.
QFileDialog* makeFileDialog(QWidget* parent, const QString& title, QFileDialog::FileMode mode) {
  auto* dialog = new QFileDialog(parent, title);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setFileMode(mode);
  if (mode == QFileDialog::Directory) dialog->setOption(QFileDialog::ShowDirsOnly);
  return dialog;
}

QString fitText(const ModelFit& fit) {
  const QString needs = bytesText(fit.needed_bytes);
  if (fit.free_bytes == 0) return MainWindow::tr("This model needs %1.").arg(needs);
  return MainWindow::tr("This model needs %1; %2 are free.").arg(needs, bytesText(fit.free_bytes));
}

}  // namespace

void MainWindow::send(const Command& command, const QString& doing) {
  if (!m_bridge || m_closing) return;
  statusBar()->showMessage(doing);
  const QString serves = m_bridge->state().serving == kBaseVersion ? QString() : adapterText(m_bridge->state().serving_name);
  m_bridge->submit(command, this, [this, command, serves](const CommandOutcome& outcome) {
    statusBar()->clearMessage();
    if (!outcome.ok() && std::holds_alternative<ResumeSession>(command)) {
      m_info->dismiss(QStringLiteral("brake"));
      m_lastBrake.clear();  // a brake that still holds is told again, with the way on
    } else if (!outcome.ok() && (std::holds_alternative<TrainOn>(command) || std::holds_alternative<DiscardTraining>(command))) {
      m_lastPlateau.clear();  // as is a question without an answer
    } else if (!outcome.ok()) {
      // Only said, below.
    } else if (std::holds_alternative<StartSession>(command)) {
      tellStart(serves);
    } else if (std::holds_alternative<EndSession>(command)) {
      m_info->dismiss(QStringLiteral("startsFrom"));
    }
    m_info->show(QStringLiteral("command"), outcome.ok() ? Severity::kInformation : Severity::kWarning,
                 outcomeText(command, outcome, m_bridge->state()));
  });
}

void MainWindow::startDemo() {
  setMode(Mode::kOperate);
  StartSession command;
  command.recipe = m_demoRecipe.toStdString();
  m_info->show(QStringLiteral("tour"), Severity::kNotice,
               tr("The curve at the top left should rise within minutes. On the right: move a threshold and apply it. Below: choose a version that served and roll back. "
                  "In “Label” (Ctrl+3) your own verdicts train the next update."));
  if (m_bridge->state().server_error.empty()) return send(command, tr("Starting the demo …"));
  // The demo's requests go through the HTTP server; it cares for no particular port, and clients keep the one they know.
  m_bridge->submit(StartServer{std::string(), 0, false}, this, [this, command](const CommandOutcome& outcome) {
    if (outcome.ok()) return send(command, tr("Starting the demo …"));
    m_info->show(QStringLiteral("command"), Severity::kWarning, QString::fromStdString(outcome.text));
  });
}

// A curve that starts high needs its reason: `serves` is what the session starts from, empty for the base.
void MainWindow::tellStart(const QString& serves) {
  m_info->dismiss(QStringLiteral("startsFrom"));
  if (serves.isEmpty()) return;
  m_info->show(QStringLiteral("startsFrom"), Severity::kNotice,
               tr("%1 of an earlier run serves: this run starts from it, and its curve where that one ended. To see it learn from nothing, "
                  "roll back to the base or open a new workspace.").arg(serves),
               {{tr("Roll back to the base …"), [this] { rollBackToBase(); }, true}});
}

void MainWindow::rollBackToBase() {
  m_timeline->select(kBaseVersion);
  m_timeline->rollBack();
}

void MainWindow::newSession() {
  auto* dialog = new SessionDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  m_bridge->job(dialog, [](const EngineApi& api) { return api.recipes(); },
                [dialog](const std::vector<RecipeSummary>& recipes) { dialog->setRecipes(recipes); });
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    setMode(Mode::kOperate);
    send(dialog->command(), tr("Starting the session …"));
  });
  dialog->open();
}

void MainWindow::chooseModel() {
  auto* dialog = makeFileDialog(this, tr("Use a model"), QFileDialog::ExistingFile);
  dialog->setNameFilter(tr("Models (*.gguf *.safetensors *.safetensors.index.json)"));
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::loadIfItFits);
  dialog->open();
}

void MainWindow::loadIfItFits(const QString& path) {
  m_start->showModelFit(tr("Reading the header of %1 …").arg(path));
  const auto work = [path](const EngineApi& api) { return api.model_fit(path.toStdString()); };
  m_bridge->job(this, work, [this, path](const Result<ModelFit>& fit) {
    if (m_closing) return;
    const QString text = fit.ok() ? fitText(*fit) : QString::fromStdString(fit.status().message());
    const bool fits = fit.ok() && fit->fits;
    m_start->showModelFit(fits ? text : tr("%1 Nothing was loaded.").arg(text));
    if (fits) send(LoadModel{path.toStdString()}, tr("Loading %1 …").arg(path));
  });
}

void MainWindow::chooseWorkspace() {
  auto* dialog = makeFileDialog(this, tr("Open workspace"), QFileDialog::Directory);
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::workspaceRequested);
  dialog->open();
}

void MainWindow::choosePort() {
  auto* dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName(QStringLiteral("portDialog"));
  dialog->setWindowTitle(tr("Port"));
  dialog->setLabelText(tr("Port of the HTTP server on this machine (0 = any free one):"));
  dialog->setInputMode(QInputDialog::IntInput);
  dialog->setIntRange(0, 65535);
  dialog->setIntValue(8080);
  connect(dialog, &QInputDialog::intValueSelected, this, [this](int port) { send(StartServer{std::string(), port}, tr("Starting the server …")); });
  dialog->open();
}

void MainWindow::chooseName() {
  auto* dialog = new QInputDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  dialog->setObjectName(QStringLiteral("nameDialog"));
  dialog->setWindowTitle(tr("Your name"));
  dialog->setLabelText(tr("Your decisions and labels are kept with this name (empty = your login name):"));
  dialog->setInputMode(QInputDialog::TextInput);
  dialog->setTextValue(QString::fromStdString(m_bridge->user()));
  connect(dialog, &QInputDialog::textValueSelected, this, [this](const QString& name) {
    const QString chosen = name.trimmed();
    setUserName(chosen);
    m_bridge->setUser(chosen.isEmpty() ? loginName() : chosen);
  });
  dialog->open();
}

void MainWindow::freezeServing() {
  const bool frozen = m_bridge->state().frozen;
  const QString note = frozen ? tr("unfrozen in the workbench") : tr("frozen in the workbench");
  send(Decide{frozen ? "unfreeze" : "freeze", VersionId(), m_bridge->user(), note.toStdString()}, frozen ? tr("Unfreezing …") : tr("Freezing …"));
}

void MainWindow::serveBaseAndFreeze() {
  send(ServeBaseAndFreeze{m_bridge->user(), tr("base served and learning frozen in the workbench").toStdString()}, tr("Going back to the base …"));
}

void MainWindow::offerUndo(const QString& text, qint64 now, qint64 before) {
  m_info->dismiss(QStringLiteral("startsFrom"));
  const auto undo = [this, now, before] {
    send(Decide{"rollback", VersionId(before), m_bridge->user(), tr("Undo of the roll-back to %1").arg(versionText(now)).toStdString()}, tr("Undoing …"));
  };
  m_info->show(QStringLiteral("rollback"), Severity::kNotice, text, {{tr("Undo (serve %1)").arg(versionText(before)), undo}});
}

void MainWindow::exportVersion(qint64 version) {
  auto* dialog = makeFileDialog(this, tr("Export %1 into a new folder below").arg(versionText(version)), QFileDialog::Directory);
  connect(dialog, &QFileDialog::fileSelected, this, [this, version](const QString& parent) {
    send(ExportAdapter{VersionId(version), QString(parent + QStringLiteral("/adapter-v%1").arg(version)).toStdString()}, tr("Exporting …"));
  });
  dialog->open();
}

void MainWindow::exportCurves() {
  auto* dialog = makeFileDialog(this, tr("Export curves"), QFileDialog::AnyFile);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Tables (*.csv)"));
  dialog->setDefaultSuffix(QStringLiteral("csv"));
  dialog->selectFile(QStringLiteral("curves.csv"));
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::writeCurves);
  dialog->open();
}

void MainWindow::writeCurves(const QString& path) {
  const auto work = [path, text = m_curves->csv()] {
    QSaveFile file(path);
    const QByteArray bytes = text.toUtf8();
    const bool ok = file.open(QIODevice::WriteOnly) && file.write(bytes) == bytes.size() && file.commit();
    const QString said = ok ? tr("Every point is in %1.").arg(path) : tr("%1 can't be written: %2").arg(path, file.errorString());
    return std::pair(ok ? Severity::kInformation : Severity::kWarning, said);
  };
  runJob(this, work, [this](const std::pair<Severity, QString>& outcome) {
    if (!m_closing) m_info->show(QStringLiteral("csv"), outcome.first, outcome.second);
  });
}

MainWindow::~MainWindow() {
  QThreadPool::globalInstance()->waitForDone();
  if (m_closer.joinable()) m_closer.join();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  saveLayout();
  if (!m_bridge || m_closed) return event->accept();
  event->ignore();
  if (!std::exchange(m_closing, true)) stopEngine();
}

// The engine ends its step in hand, which takes seconds: a thread of its own waits for it, and the window says so meanwhile.
void MainWindow::stopEngine() {
  for (QDialog* dialog : findChildren<QDialog*>(QString(), Qt::FindDirectChildrenOnly)) delete dialog;
  for (QDockWidget* dock : findChildren<QDockWidget*>(QString(), Qt::FindDirectChildrenOnly)) delete dock;
  // Pages read the engine: they go before it does.
  delete takeCentralWidget();
  m_curves = nullptr;
  m_gate = nullptr;
  m_timeline = nullptr;
  m_labels = nullptr;
  m_inspect = nullptr;
  m_log = nullptr;
  m_intake = nullptr;
  m_logDock = nullptr;
  m_sessionsDock = nullptr;
  for (const Actions::Entry& entry : m_actions->entries()) entry.action->setEnabled(false);
  menuBar()->setEnabled(false);
  auto* farewell = new QWidget(this);
  auto* layout = new QVBoxLayout(farewell);
  auto* text = new QLabel(tr("Finishing the current step …\n\nEvery answer and verdict is saved. A session that runs now can be resumed at the next start."), farewell);
  text->setObjectName(QStringLiteral("closing"));
  text->setAlignment(Qt::AlignCenter);
  auto* busy = new QProgressBar(farewell);
  busy->setRange(0, 0);
  busy->setMaximumWidth(fontMetrics().averageCharWidth() * 50);
  layout->addStretch(1);
  layout->addWidget(text);
  layout->addWidget(busy, 0, Qt::AlignHCenter);
  auto* now = new QPushButton(tr("Stop now"), farewell);
  now->setObjectName(QStringLiteral("stopNow"));
  now->setToolTip(tr("The step in hand is lost and made again at the next start; nothing else is."));
  layout->addWidget(now, 0, Qt::AlignHCenter);
  connect(now, &QPushButton::clicked, this, &MainWindow::stopNowRequested);
  layout->addStretch(1);
  setCentralWidget(farewell);
  m_status->setText(tr("Finishing the current step …"));
  m_closer = std::thread([this, stop = m_bridge->shutDown()] {
    QThreadPool::globalInstance()->waitForDone();
    stop();
    QMetaObject::invokeMethod(this, [this] {
      m_closed = true;
      close();
    }, Qt::QueuedConnection);
  });
}

}  // namespace sluice::gui
