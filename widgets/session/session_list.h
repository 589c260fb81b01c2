// SPDX-License-Identifier: GPL-3.0-or-later
// Every session of the workspace, newest first: name, recipe, seed, phase, steps, last reward with its count, start. The
// chosen one is drawn in the curves; without a choice the newest is. GUI thread.
#pragma once

#include <QHash>
#include <QWidget>

#include "bridge/engine_bridge.h"

class QPushButton;
class QTreeWidget;

namespace sluice::gui {

class SessionList : public QWidget {
  Q_OBJECT
 public:
  explicit SessionList(EngineBridge& bridge, QWidget* parent = nullptr);
  QStringList rowTexts() const;   // a line a session, as shown

 Q_SIGNALS:
  void chosen(sluice::SessionId session);  // invalid = the newest, whichever that is

 private:
  struct Learnt {
    qint64 steps = 0;
    double reward = 0;            // of the last step
  };

  void takeSessions(const Rows<SessionRow>& rows);
  void takeMetrics(const Rows<MetricRow>& rows);
  void showRows();
  void choose();

  std::vector<SessionRow> m_sessions;      // ascending
  QHash<qint64, Learnt> m_learnt;          // by session
  qint64 m_chosen = 0;                     // 0 = follows the newest
  QTreeWidget* m_tree;
  QPushButton* m_newest;
};

}  // namespace sluice::gui
