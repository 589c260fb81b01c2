// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/record_model.h"

#include <algorithm>

#include "shell/format.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

QString oneLine(const std::string& text, int characters) {
  QString line = QString::fromStdString(text).simplified();
  if (line.size() > characters) line = line.left(characters - 1) + QStringLiteral("…");
  return line;
}

QString verdictOf(const FeedbackRow& row) {
  const QString source = sourceText(row.source);
  switch (row.kind) {
    case FeedbackKind::kAccept: return RecordModel::tr("✓ accepted (%1)").arg(source);
    case FeedbackKind::kReject:
      return row.reason.empty() ? RecordModel::tr("✕ rejected (%1)").arg(source)
                                : RecordModel::tr("✕ rejected (%1: %2)").arg(source, ruleText(row.reason));
    case FeedbackKind::kScore: return RecordModel::tr("score %1 (%2)").arg(row.score).arg(source);
    case FeedbackKind::kSilent: return RecordModel::tr("– silent (%1)").arg(source);
  }
  return {};
}

}  // namespace

void RecordModel::prepend(const std::vector<RecordRow>& rows) {
  if (rows.empty()) return;
  const std::size_t n = std::min(rows.size(), kWindow);
  beginInsertRows({}, 0, static_cast<int>(n) - 1);
  for (std::size_t i = rows.size() - n; i < rows.size(); ++i) m_rows.push_front(rows[i]);
  endInsertRows();
  if (m_rows.size() <= kWindow) return;
  beginRemoveRows({}, static_cast<int>(kWindow), static_cast<int>(m_rows.size()) - 1);
  m_rows.resize(kWindow);
  endRemoveRows();
}

void RecordModel::append(const std::vector<RecordRow>& rows) {
  if (rows.empty()) return;
  const int at = static_cast<int>(m_rows.size());
  beginInsertRows({}, at, at + static_cast<int>(rows.size()) - 1);
  m_rows.insert(m_rows.end(), rows.begin(), rows.end());
  endInsertRows();
}

void RecordModel::clear() {
  beginResetModel();
  m_rows.clear();
  endResetModel();
}

int RecordModel::rowOf(std::int64_t seq) const {
  const auto found = std::lower_bound(m_rows.begin(), m_rows.end(), seq, [](const RecordRow& row, std::int64_t s) { return row.seq > s; });
  return found != m_rows.end() && found->seq == seq ? static_cast<int>(found - m_rows.begin()) : -1;
}

void RecordModel::update(const std::vector<RecordRow>& rows) {
  int first = -1, last = -1;
  for (const RecordRow& row : rows) {
    const int at = rowOf(row.seq);
    if (at < 0) continue;
    RecordRow& mine = m_rows[static_cast<std::size_t>(at)];
    if (mine.fate == row.fate && mine.used_in_step == row.used_in_step) continue;
    mine.fate = row.fate;
    mine.used_in_step = row.used_in_step;
    first = first < 0 ? at : std::min(first, at);
    last = std::max(last, at);
  }
  if (first >= 0) Q_EMIT dataChanged(index(first, kFate), index(last, kFate));
}

void RecordModel::setVerdicts(const std::vector<FeedbackRow>& rows) {
  for (const FeedbackRow& row : rows) {
    if (!row.record.valid()) continue;  // names no record, or none was found
    const QString id = QString::fromStdString(row.record.text);
    if (!row.retracted) m_verdicts[id].insert(row.id.value, verdictOf(row));
    else if (const auto labels = m_verdicts.find(id); labels != m_verdicts.end()) labels->remove(row.id.value);
  }
  if (!m_rows.empty()) Q_EMIT dataChanged(index(0, kVerdict), index(rowCount() - 1, kVerdict));
}

int RecordModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_rows.size()); }
int RecordModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant RecordModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  if (role == Qt::DisplayRole) return cell(record(index.row()), index.column(), 120);
  if (role == Qt::ToolTipRole) return plainToolTip(cell(record(index.row()), index.column(), 600));
  return {};
}

QString RecordModel::cell(const RecordRow& row, int column, int characters) const {
  switch (column) {
    case kWhen: return timeText(row.served_us);
    case kPrompt: return oneLine(row.prompt_text, characters);
    case kReply: return oneLine(row.completion_text, 2 * characters);
    case kAdapter: return adapterText(row.adapter_name);
    case kVerdict: {
      const auto labels = m_verdicts.constFind(QString::fromStdString(row.id.text));
      return labels == m_verdicts.constEnd() || labels->isEmpty() ? QString() : labels->last();
    }
    default: return row.used_in_step.valid() ? tr("trained in step %1").arg(row.used_in_step.value) : fateText(row.fate);
  }
}

QVariant RecordModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString titles[kColumns] = {tr("When"), tr("Prompt"), tr("Answer"), tr("Adapter"), tr("Verdict"), tr("Fate")};
  return titles[section];
}

}  // namespace sluice::gui
