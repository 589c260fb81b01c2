// SPDX-License-Identifier: GPL-3.0-or-later
// The first page: run the demo, start a session, open a workspace or a model of one's own, where the server listens.
// GUI thread. What it asks for goes out as signals; MainWindow acts on them.
#pragma once

#include <QStringList>
#include <QWidget>

class QLabel;
class QListWidget;
class QPushButton;

namespace sluice {
struct EngineState;
}

namespace sluice::gui {

class StartPage : public QWidget {
  Q_OBJECT
 public:
  explicit StartPage(QWidget* parent = nullptr);

  // Null: the workspace is opening still.
  void showState(const EngineState* state);
  void setRecentWorkspaces(const QStringList& folders);
  // A workspace that could not be opened; empty = it is being tried again.
  void showProblem(const QString& text);
  // Does the chosen model file fit in memory?
  void showModelFit(const QString& text);
  QString clientSnippet() const;

 Q_SIGNALS:
  void demoRequested();
  void sessionRequested();
  void resumeRequested();
  void endRequested();
  void workspaceRequested(const QString& folder);  // empty = ask for one
  void modelRequested();
  void portRequested();
  void baseRequested();   // roll back to it
  void retryRequested();  // open the workspace again that could not be opened

 private:
  QWidget* makeActions();
  QWidget* makeServer();
  QWidget* makeRecent();

  QPushButton* m_demo;
  QPushButton* m_session;
  QPushButton* m_resume;
  QPushButton* m_end;
  QPushButton* m_model;
  QPushButton* m_port;
  QPushButton* m_copy;
  QPushButton* m_base;
  QPushButton* m_retry;
  QLabel* m_modelLine;
  QLabel* m_sessionLine;
  QLabel* m_startsFrom;
  QLabel* m_fit;
  QLabel* m_serverLine;
  QLabel* m_snippet;
  QLabel* m_problem;
  QListWidget* m_recent;
  QString m_url;
};

}  // namespace sluice::gui
