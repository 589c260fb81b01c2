// SPDX-License-Identifier: GPL-3.0-or-later
// The window: mode bar, pages, docks, menus, status. Exists before the engine does; setEngine() brings one in. GUI thread.
#pragma once

#include <QMainWindow>
#include <memory>
#include <thread>

#include "bridge/engine_bridge.h"

class QDockWidget;
class QLabel;
class QStackedWidget;
class QToolBar;

namespace sluice::gui {

class Actions;
class CurvesPage;
class GatePanel;
class InfoBar;
class InspectPage;
class IntakeCard;
class LabelPage;
class LogPage;
class StartPage;
class TimelinePage;

class MainWindow : public QMainWindow {
  Q_OBJECT
 public:
  explicit MainWindow(QWidget* parent = nullptr);
  ~MainWindow() override;

  // Takes an engine: pages are built and filled. Once per window.
  void setEngine(std::unique_ptr<EngineApi> api);
  // The engine could not be opened: the start page says why, and offers to try again. Empty: it is being opened.
  void showOpenProblem(const QString& text);
  void setRecentWorkspaces(const QStringList& folders);
  // Starts the demo as soon as the engine is ready.
  void startDemoWhenReady(const QString& recipe);

  enum class Mode { kStart, kOperate, kInspect, kLabel };
  void setMode(Mode mode);
  Mode mode() const { return m_mode; }

  EngineBridge* bridge() const { return m_bridge.get(); }
  CurvesPage* curves() const { return m_curves; }
  GatePanel* gate() const { return m_gate; }
  TimelinePage* timeline() const { return m_timeline; }
  LabelPage* labels() const { return m_labels; }
  InspectPage* inspect() const { return m_inspect; }
  LogPage* log() const { return m_log; }
  StartPage* startPage() const { return m_start; }
  InfoBar* infoBar() const { return m_info; }
  QString statusText() const;

 Q_SIGNALS:
  void workspaceRequested(const QString& folder);
  void retryRequested();  // of the workspace that could not be opened
  // While the window says goodbye: the user will not wait for the step in hand. Every answer and verdict is on disk.
  void stopNowRequested();

 protected:
  void closeEvent(QCloseEvent* event) override;

 private:
  void buildActions();
  void buildMenus();
  void buildModeBar();
  void buildPages();
  void connectPages();
  void showState();
  void showStanding(const EngineState& state);
  void showPlateau(const EngineState& state);
  void showThrough(const EngineState& state);
  void showWarnings(const Rows<LogRow>& rows);
  void updateActions();
  void send(const Command& command, const QString& doing);
  void startDemo();
  void tellStart(const QString& serves);
  void rollBackToBase();
  void newSession();
  void chooseModel();
  Q_INVOKABLE void loadIfItFits(const QString& path);
  void chooseWorkspace();
  void choosePort();
  void chooseName();
  void freezeServing();
  void serveBaseAndFreeze();
  void exportVersion(qint64 version);
  void exportCurves();
  void writeCurves(const QString& path);
  void stopEngine();
  void saveLayout();
  void restoreLayout();
  void offerUndo(const QString& text, qint64 now, qint64 before);

  std::unique_ptr<EngineBridge> m_bridge;
  Actions* m_actions;
  InfoBar* m_info;
  QStackedWidget* m_pages;
  StartPage* m_start;
  CurvesPage* m_curves = nullptr;
  GatePanel* m_gate = nullptr;
  TimelinePage* m_timeline = nullptr;
  LabelPage* m_labels = nullptr;
  InspectPage* m_inspect = nullptr;
  LogPage* m_log = nullptr;
  IntakeCard* m_intake = nullptr;
  QDockWidget* m_logDock = nullptr;
  QDockWidget* m_sessionsDock = nullptr;
  QLabel* m_banner;
  QLabel* m_status;
  Mode m_mode = Mode::kStart;
  QString m_openProblem;     // empty: the workspace is open, or opening
  bool m_demoPending = false;
  QString m_demoRecipe = QStringLiteral("be-brief");
  QString m_lastServerError, m_lastBrake, m_lastPlateau, m_lastThrough, m_lastStoreError;  // as the notices tell them
  std::int64_t m_openedUs = 0;  // when the engine came: what was logged before is history
  int m_warnings = 0;        // that the notice of them counts
  std::thread m_closer;      // waits for the engine while the window says goodbye
  bool m_closing = false;
  bool m_closed = false;
};

}  // namespace sluice::gui
