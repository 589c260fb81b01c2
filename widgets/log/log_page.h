// SPDX-License-Identifier: GPL-3.0-or-later
// The event log: time, severity, category, text; follows until scrolled. A ring of 10,000 lines over the store. GUI thread.
#pragma once

#include <QWidget>

#include "bridge/engine_bridge.h"

class QComboBox;
class QTableWidget;

namespace sluice::gui {

class LogPage : public QWidget {
  Q_OBJECT
 public:
  explicit LogPage(EngineBridge& bridge, QWidget* parent = nullptr);
  int lines() const;
  QString lineText(int row) const;

 private:
  void takeLog(const Rows<LogRow>& rows);
  void applyFilter();

  QComboBox* m_least;
  QTableWidget* m_table;
};

}  // namespace sluice::gui
