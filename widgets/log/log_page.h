// SPDX-License-Identifier: GPL-3.0-or-later
// The event log: time, severity, part, text; follows until scrolled. GUI thread.
#pragma once

#include <QWidget>

#include "bridge/engine_bridge.h"

class QComboBox;
class QTableView;

namespace sluice::gui {

class LogModel;

class LogPage : public QWidget {
  Q_OBJECT
 public:
  explicit LogPage(EngineBridge& bridge, QWidget* parent = nullptr);
  int lines() const;
  QString lineText(int row) const;

 private:
  void takeLog(const Rows<LogRow>& rows);

  LogModel* m_model;
  QComboBox* m_least;
  QTableView* m_table;
};

}  // namespace sluice::gui
