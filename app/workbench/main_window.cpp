// SPDX-License-Identifier: GPL-3.0-or-later
#include "workbench/main_window.h"

#include <QActionGroup>
#include <QCoreApplication>
#include <QDockWidget>
#include <QFrame>
#include <QLabel>
#include <QLocale>
#include <QMenuBar>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QStatusBar>
#include <QToolBar>
#include <QVBoxLayout>
#include <utility>

#include "compare/inspect_page.h"
#include "curves/curves_page.h"
#include "gate/gate_panel.h"
#include "labelling/label_page.h"
#include "log/log_page.h"
#include "session/intake_card.h"
#include "session/session_list.h"
#include "shell/actions.h"
#include "shell/command_palette.h"
#include "shell/format.h"
#include "shell/info_bar.h"
#include "shell/user_name.h"
#include "shell/words.h"
#include "start/start_page.h"
#include "timeline/timeline_page.h"

namespace sluice::gui {
namespace {

using Severity = InfoBar::Severity;
constexpr int kLayoutVersion = 1;  // of docks and tool bars: another number forgets what was saved

void bringForward(QDockWidget* dock) {
  dock->show();
  dock->raise();
}

}  // namespace

MainWindow::MainWindow(QWidget* parent)
    : QMainWindow(parent), m_actions(new Actions(this)), m_info(new InfoBar(this)), m_pages(new QStackedWidget(this)),
      m_start(new StartPage(this)), m_banner(new QLabel(this)), m_status(new QLabel(this)) {
  setWindowTitle(tr("Sluice"));
  setObjectName(QStringLiteral("MainWindow"));
  auto* centre = new QWidget(this);
  auto* layout = new QVBoxLayout(centre);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(0);
  m_banner->setFrameShape(QFrame::Box);
  m_banner->setAlignment(Qt::AlignCenter);
  m_banner->setTextFormat(Qt::PlainText);
  m_banner->setWordWrap(true);
  m_banner->setObjectName(QStringLiteral("banner"));
  m_banner->hide();
  layout->addWidget(m_banner);
  layout->addWidget(m_info);
  layout->addWidget(m_pages, 1);
  setCentralWidget(centre);
  m_pages->addWidget(m_start);
  statusBar()->addWidget(m_status, 1);
  m_status->setTextFormat(Qt::PlainText);
  m_status->setObjectName(QStringLiteral("status"));
  buildActions();
  buildMenus();
  buildModeBar();
  connect(m_start, &StartPage::demoRequested, this, &MainWindow::startDemo);
  connect(m_start, &StartPage::sessionRequested, this, &MainWindow::newSession);
  connect(m_start, &StartPage::resumeRequested, this, [this] { send(ResumeSession{}, tr("Resuming …")); });
  connect(m_start, &StartPage::endRequested, this, [this] { send(EndSession{}, tr("Ending the session …")); });
  connect(m_start, &StartPage::modelRequested, this, &MainWindow::chooseModel);
  connect(m_start, &StartPage::portRequested, this, &MainWindow::choosePort);
  connect(m_start, &StartPage::baseRequested, this, &MainWindow::rollBackToBase);
  connect(m_start, &StartPage::retryRequested, this, [this] {
    showOpenProblem(QString());
    Q_EMIT retryRequested();
  });
  connect(m_start, &StartPage::workspaceRequested, this, [this](const QString& folder) {
    if (folder.isEmpty()) chooseWorkspace();
    else Q_EMIT workspaceRequested(folder);
  });
  showOpenProblem(QString());
  resize(1360, 860);
}

// What the user arranged comes back at the next start. A program without a name (a test) keeps nothing.
void MainWindow::saveLayout() {
  if (!m_bridge || m_closing || QCoreApplication::organizationName().isEmpty()) return;
  QSettings settings;
  settings.setValue(QStringLiteral("window/geometry"), saveGeometry());
  settings.setValue(QStringLiteral("window/docks"), saveState(kLayoutVersion));
  for (const QSplitter* split : findChildren<QSplitter*>()) {
    if (!split->objectName().isEmpty()) settings.setValue(QStringLiteral("window/") + split->objectName(), split->saveState());
  }
}

void MainWindow::restoreLayout() {
  if (QCoreApplication::organizationName().isEmpty()) return;
  const QSettings settings;
  restoreGeometry(settings.value(QStringLiteral("window/geometry")).toByteArray());
  restoreState(settings.value(QStringLiteral("window/docks")).toByteArray(), kLayoutVersion);
  for (QSplitter* split : findChildren<QSplitter*>()) {
    const QVariant saved = settings.value(QStringLiteral("window/") + split->objectName());
    if (saved.isValid()) split->restoreState(saved.toByteArray());
  }
}

void MainWindow::buildActions() {
  const auto act = [this](const char* id, const QString& group, const QString& text, const QKeySequence& key, auto run) {
    m_actions->add(QString::fromLatin1(id), group, text, key, run);
  };
  const QString view = tr("View"), session = tr("Session"), serving = tr("Serving"), file = tr("File");
  act("start", view, tr("&Start page"), QKeySequence(Qt::CTRL | Qt::Key_0), [this] { setMode(Mode::kStart); });
  act("operate", view, tr("&Operate"), QKeySequence(Qt::CTRL | Qt::Key_1), [this] { setMode(Mode::kOperate); });
  act("inspect", view, tr("&Inspect"), QKeySequence(Qt::CTRL | Qt::Key_2), [this] { setMode(Mode::kInspect); });
  act("label", view, tr("&Label"), QKeySequence(Qt::CTRL | Qt::Key_3), [this] { setMode(Mode::kLabel); });
  act("demo", session, tr("Run the &demo"), QKeySequence(), [this] { startDemo(); });
  act("new", session, tr("&New session …"), QKeySequence(Qt::CTRL | Qt::Key_N), [this] { newSession(); });
  act("pause", session, tr("&Pause session"), QKeySequence(Qt::Key_F8), [this] {
    const auto& running = m_bridge->state().session;
    if (running && running->state == SessionState::kPaused) {
      send(ResumeSession{}, tr("Resuming …"));
    } else {
      send(PauseSession{}, tr("Pausing …"));
    }
  });
  act("end", session, tr("&End session"), QKeySequence(Qt::SHIFT | Qt::Key_F5), [this] { send(EndSession{}, tr("Ending the session …")); });
  act("freeze", serving, tr("&Freeze serving"), QKeySequence(Qt::Key_F9), [this] { freezeServing(); });
  act("base", serving, tr("Serve the &base and freeze learning"), QKeySequence(), [this] { serveBaseAndFreeze(); });
  act("rollback", serving, tr("&Roll back to the selected version …"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_B), [this] {
    setMode(Mode::kOperate);
    m_timeline->rollBack();
  });
  act("apply", serving, tr("&Apply the gate draft"), QKeySequence(Qt::CTRL | Qt::Key_Return), [this] { m_gate->apply(); });
  act("log", view, tr("Show &log"), QKeySequence(Qt::CTRL | Qt::Key_L), [this] { bringForward(m_logDock); });
  act("sessions", view, tr("Show &sessions"), QKeySequence(), [this] {
    setMode(Mode::kOperate);
    bringForward(m_sessionsDock);
  });
  act("palette", view, tr("&Commands …"), QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P), [this] {
    auto* palette = new CommandPalette(*m_actions, this);
    palette->setAttribute(Qt::WA_DeleteOnClose);
    palette->open();
  });
  act("model", file, tr("Use &model …"), QKeySequence(), [this] { chooseModel(); });
  act("port", file, tr("Choose &port …"), QKeySequence(), [this] { choosePort(); });
  act("name", file, tr("Your &name …"), QKeySequence(), [this] { chooseName(); });
  act("csv", file, tr("Export &curves …"), QKeySequence(), [this] { exportCurves(); });
  act("quit", file, tr("&Quit"), QKeySequence(Qt::CTRL | Qt::Key_Q), [this] { close(); });
}

void MainWindow::buildMenus() {
  QHash<QString, QMenu*> menus;
  for (const QString& title : {tr("File"), tr("Session"), tr("Serving"), tr("View")}) menus.insert(title, menuBar()->addMenu(title));
  for (const Actions::Entry& entry : m_actions->entries()) menus.value(entry.group)->addAction(entry.action);
}

void MainWindow::buildModeBar() {
  auto* bar = new QToolBar(tr("Modes"), this);
  bar->setObjectName(QStringLiteral("modes"));
  bar->setMovable(false);
  bar->setToolButtonStyle(Qt::ToolButtonTextOnly);
  auto* group = new QActionGroup(this);
  for (const char* id : {"start", "operate", "inspect", "label"}) {
    QAction* action = (*m_actions)[QString::fromLatin1(id)];
    action->setCheckable(true);
    group->addAction(action);
    bar->addAction(action);
  }
  (*m_actions)[QStringLiteral("start")]->setChecked(true);
  bar->addSeparator();
  for (const char* id : {"demo", "pause", "end", "freeze", "base"}) bar->addAction((*m_actions)[QString::fromLatin1(id)]);
  addToolBar(Qt::TopToolBarArea, bar);
}

void MainWindow::setEngine(std::unique_ptr<EngineApi> api) {
  m_bridge = std::make_unique<EngineBridge>(std::move(api));
  m_bridge->setUser(userName());
  m_openedUs = nowUs();
  buildPages();
  connectPages();
  restoreLayout();
  setMode(m_mode);
  m_bridge->start();
  setWindowTitle(tr("Sluice – %1").arg(QString::fromStdString(m_bridge->state().data_folder)));
}

void MainWindow::buildPages() {
  m_curves = new CurvesPage(*m_bridge, this);
  m_gate = new GatePanel(*m_bridge, this);
  m_timeline = new TimelinePage(*m_bridge, this);
  m_labels = new LabelPage(*m_bridge, this);
  m_inspect = new InspectPage(*m_bridge, this);
  m_log = new LogPage(*m_bridge, this);
  m_intake = new IntakeCard(*m_bridge, this);

  auto* operate = new QWidget(this);
  auto* column = new QVBoxLayout(operate);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(0);
  column->addWidget(m_intake);
  // The gate has the whole height at the right; what it decides appears left of it, above in the curves, below in the timeline.
  auto* across = new QSplitter(Qt::Horizontal, operate);
  across->setObjectName(QStringLiteral("pagesAndGate"));
  auto* down = new QSplitter(Qt::Vertical, across);
  down->setObjectName(QStringLiteral("curvesAndTimeline"));
  down->addWidget(m_curves);
  down->addWidget(m_timeline);
  down->setStretchFactor(0, 3);
  down->setStretchFactor(1, 1);
  down->setSizes({520, 240});
  across->addWidget(down);
  across->addWidget(m_gate);
  across->setStretchFactor(0, 1);
  across->setStretchFactor(1, 0);
  across->setSizes({960, 400});
  column->addWidget(across, 1);
  m_pages->addWidget(operate);
  m_pages->addWidget(m_inspect);
  m_pages->addWidget(m_labels);

  const auto dock = [this](const QString& title, const QString& name, QWidget* widget, Qt::DockWidgetArea area) {
    auto* made = new QDockWidget(title, this);
    made->setObjectName(name);
    made->setWidget(widget);
    addDockWidget(area, made);
    made->hide();
    return made;
  };
  m_logDock = dock(tr("Log"), QStringLiteral("logDock"), m_log, Qt::BottomDockWidgetArea);
  auto* sessions = new SessionList(*m_bridge, this);
  m_sessionsDock = dock(tr("Sessions"), QStringLiteral("sessionsDock"), sessions, Qt::LeftDockWidgetArea);
  connect(sessions, &SessionList::chosen, m_curves, &CurvesPage::showSession);
}

void MainWindow::connectPages() {
  connect(m_bridge.get(), &EngineBridge::stateChanged, this, &MainWindow::showState);
  connect(m_bridge.get(), &EngineBridge::logArrived, this, &MainWindow::showWarnings);
  const auto refuse = [this](const QString& reason) { m_info->show(QStringLiteral("refused"), Severity::kWarning, reason); };
  const auto tell = [this](const QString& text) { m_info->show(QStringLiteral("done"), Severity::kInformation, text); };
  connect(m_gate, &GatePanel::refused, this, refuse);
  connect(m_gate, &GatePanel::applied, this, tell);
  connect(m_timeline, &TimelinePage::refused, this, refuse);
  connect(m_timeline, &TimelinePage::rolledBack, this, &MainWindow::offerUndo);
  connect(m_timeline, &TimelinePage::exportRequested, this, &MainWindow::exportVersion);
  connect(m_timeline, &TimelinePage::compareRequested, this, [this](qint64 version) {
    setMode(Mode::kInspect);
    m_inspect->compareVersions(kBaseVersion, VersionId(version));
  });
  connect(m_inspect, &InspectPage::refused, this, refuse);
}

void MainWindow::setMode(Mode mode) {
  if (mode != Mode::kStart && !m_bridge) return;
  m_mode = mode;
  m_pages->setCurrentIndex(static_cast<int>(mode));
  static constexpr const char* kIds[] = {"start", "operate", "inspect", "label"};
  (*m_actions)[QString::fromLatin1(kIds[static_cast<int>(mode)])]->setChecked(true);
  if (mode == Mode::kLabel) m_labels->setFocus();
  // Two enabled actions on one key fire neither: Ctrl+Return belongs to the page that is shown.
  updateActions();
}

void MainWindow::showOpenProblem(const QString& text) {
  m_openProblem = text;
  m_start->showProblem(text);
  m_status->setText(text.isEmpty() ? tr("Opening the workspace …") : tr("No workspace is open."));
  updateActions();
}

void MainWindow::setRecentWorkspaces(const QStringList& folders) { m_start->setRecentWorkspaces(folders); }

void MainWindow::startDemoWhenReady(const QString& recipe) {
  m_demoPending = true;
  if (!recipe.isEmpty()) m_demoRecipe = recipe;
}

void MainWindow::showState() {
  const EngineState& s = m_bridge->state();
  m_start->showState(&s);
  const QLocale locale;
  QStringList parts;
  switch (s.phase) {
    case EnginePhase::kLoading: parts << tr("Loading the model"); break;
    case EnginePhase::kReady:
      parts << (!s.session ? tr("Ready") : s.session->state == SessionState::kPaused ? tr("Paused") : s.session_through ? tr("Through") : tr("Running"));
      break;
    case EnginePhase::kModelFailed: parts << tr("No model"); break;
    case EnginePhase::kStopping: parts << tr("Stopping"); break;
  }
  parts << tr("%1 serves").arg(adapterText(s.serving_name)) << tr("%1 tokens/s").arg(locale.toString(s.tokens_per_s, 'f', 0));
  if (s.session && !s.session_through) parts << trainText(s.train);
  parts << tr("%n request(s) running", nullptr, static_cast<int>(s.running)) << bytesText(s.rss_bytes);
  if (!s.server_url.empty()) parts << QString::fromStdString(s.server_url);
  if (s.errors > 0) parts << tr("%n error(s)", nullptr, static_cast<int>(s.errors));
  m_status->setText(parts.join(QStringLiteral("  ·  ")));

  QStringList banner;
  if (s.session && !s.session_problem.empty()) {
    banner << tr("“%1” is open and can't go on: %2 Resume (F8) tries again; Shift+F5 ends it.")
                  .arg(QString::fromStdString(s.session->name), QString::fromStdString(s.session_problem));
  } else if (s.session && s.session->state == SessionState::kPaused) {
    banner << tr("Session paused: stream, trainer and gate stand still; serving goes on. F8 resumes.");
  }
  if (s.frozen) banner << tr("Serving frozen: nothing is promoted until you unfreeze (F9).");
  m_banner->setText(banner.join(QLatin1Char('\n')));
  m_banner->setVisible(!banner.isEmpty());

  showStanding(s);
  if (m_demoPending && s.phase == EnginePhase::kReady) {
    m_demoPending = false;
    startDemo();
  }
  updateActions();
}

void MainWindow::updateActions() {
  const EngineState* s = m_bridge ? &m_bridge->state() : nullptr;
  const bool ready = s && s->phase == EnginePhase::kReady;
  const bool open = s && s->session.has_value();
  const bool paused = open && s->session->state == SessionState::kPaused;
  const QString noEngine = m_openProblem.isEmpty() ? tr("The model is not loaded yet.") : m_openProblem;
  const QString noSession = tr("No session runs.");
  for (const char* id : {"operate", "inspect", "label", "log", "sessions", "csv", "name"}) m_actions->setReason(QString::fromLatin1(id), m_bridge ? QString() : tr("No workspace is open."));
  for (const char* id : {"demo", "new"}) m_actions->setReason(QString::fromLatin1(id), !ready ? noEngine : open ? tr("A session is open already: end it first.") : QString());
  for (const char* id : {"pause", "end"}) m_actions->setReason(QString::fromLatin1(id), open ? QString() : noSession);
  for (const char* id : {"freeze", "base", "rollback"}) m_actions->setReason(QString::fromLatin1(id), ready ? QString() : noEngine);
  m_actions->setReason(QStringLiteral("port"), ready || (s && s->phase == EnginePhase::kLoading) ? QString() : noEngine);
  m_actions->setReason(QStringLiteral("model"), !m_bridge ? tr("No workspace is open.") : open ? tr("A session runs on this model: end it first.") : QString());
  m_actions->setReason(QStringLiteral("apply"), m_mode == Mode::kOperate && m_gate && m_gate->draftDiffers() ? QString() : tr("The gate draft holds no change."));
  (*m_actions)[QStringLiteral("pause")]->setText(paused ? tr("&Resume session") : tr("&Pause session"));
  (*m_actions)[QStringLiteral("freeze")]->setText(s && s->frozen ? tr("Un&freeze serving") : tr("&Freeze serving"));
}

QString MainWindow::statusText() const { return m_status->text(); }

}  // namespace sluice::gui
