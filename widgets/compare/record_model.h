// SPDX-License-Identifier: GPL-3.0-or-later
// Records as a table, newest first: a window over the store, with the verdict each one got and what became of it. Batches go
// in whole, nothing is reset while live. GUI thread.
#pragma once

#include <QAbstractTableModel>
#include <QHash>
#include <QMap>
#include <deque>
#include <vector>

#include "bridge/engine_types.h"

namespace sluice::gui {

class RecordModel : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kWhen, kPrompt, kReply, kAdapter, kVerdict, kFate, kColumns };
  static constexpr std::size_t kWindow = 5000;   // older ones are one search away

  using QAbstractTableModel::QAbstractTableModel;
  void prepend(const std::vector<RecordRow>& rows);   // above newestSeq(), oldest first
  void append(const std::vector<RecordRow>& rows);    // below oldestSeq(), newest first
  void clear();
  // Fates change when a step trains: takes what the store says now of rows that are here.
  void update(const std::vector<RecordRow>& rows);
  // Rows that are here already may come again: what is taken back goes, and the newest of the others is shown.
  void setVerdicts(const std::vector<FeedbackRow>& rows);

  const RecordRow& record(int row) const { return m_rows[static_cast<std::size_t>(row)]; }
  bool empty() const { return m_rows.empty(); }
  std::int64_t newestSeq() const { return m_rows.empty() ? 0 : m_rows.front().seq; }
  std::int64_t oldestSeq() const { return m_rows.empty() ? 0 : m_rows.back().seq; }

  int rowCount(const QModelIndex& parent = QModelIndex()) const override;
  int columnCount(const QModelIndex& parent = QModelIndex()) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  int rowOf(std::int64_t seq) const;  // -1 = not here
  QString cell(const RecordRow& row, int column, int characters) const;  // at most so many of a prompt, twice of an answer

  std::deque<RecordRow> m_rows;       // descending seq
  QHash<QString, QMap<std::int64_t, QString>> m_verdicts;  // by record id; of each label, by its id, that stands
};

}  // namespace sluice::gui
