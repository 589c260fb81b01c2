// SPDX-License-Identifier: GPL-3.0-or-later
// Timeline, table of every adapter version, the card of the selected one, and rolling back. GUI thread.
#pragma once

#include <QWidget>
#include <vector>

#include "bridge/engine_bridge.h"

class QLabel;
class QPushButton;
class QTableWidget;

namespace sluice::gui {

class LaneView;

class TimelinePage : public QWidget {
  Q_OBJECT
 public:
  explicit TimelinePage(EngineBridge& bridge, QWidget* parent = nullptr);

  void select(VersionId version);
  VersionId selected() const { return m_selected; }
  // Opens the sheet that asks before rolling back to the selected version; "" or the reason it can't.
  QString rollBackReason() const;
  QStringList rowTexts() const;   // a line a version, for tests and the clipboard

 public Q_SLOTS:
  void rollBack();

 Q_SIGNALS:
  void rolledBack(const QString& text, qint64 now, qint64 before);
  void refused(const QString& reason);
  void compareRequested(qint64 version);
  void exportRequested(qint64 version);

 private:
  QWidget* makeCard();
  void takeVersions(const Rows<VersionRow>& rows);
  void takeDecisions(const Rows<DecisionRow>& rows);
  void rebuild();
  void showCard();
  const VersionRow* row(VersionId version) const;
  const DecisionRow* lastDecision(VersionId version) const;

  EngineBridge& m_bridge;
  std::vector<VersionRow> m_versions;     // ascending
  std::vector<DecisionRow> m_decisions;   // ascending
  VersionId m_selected;
  LaneView* m_lanes;
  QTableWidget* m_table;
  QLabel* m_card;
  QPushButton* m_rollBack;
  QPushButton* m_compare;
  QPushButton* m_export;
};

}  // namespace sluice::gui
