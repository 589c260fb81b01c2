// SPDX-License-Identifier: GPL-3.0-or-later
// The last lines of the event log as a table, filtered by severity. Batches are appended whole; the oldest lines go when the
// ring is full. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <deque>
#include <vector>

#include "bridge/engine_types.h"

namespace sluice::gui {

class LogModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kTime, kLevel, kPart, kText, kColumns };
  static constexpr std::size_t kRing = 10000;

  using QAbstractTableModel::QAbstractTableModel;
  void append(const std::vector<LogRow>& rows);
  // 0 everything, 1 warnings and errors, 2 errors.
  void setLeast(int severity);

  int rowCount(const QModelIndex& parent = QModelIndex()) const override;
  int columnCount(const QModelIndex& parent = QModelIndex()) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  bool passes(const LogRow& row) const;

  std::deque<LogRow> m_all;
  std::deque<LogRow> m_shown;
  int m_least = 0;
};

}  // namespace sluice::gui
