// SPDX-License-Identifier: GPL-3.0-or-later
#include "log/log_model.h"

#include <QGuiApplication>
#include <algorithm>

#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

int severity(const std::string& level) { return level == "error" ? 2 : level == "warning" ? 1 : 0; }

QString levelText(const std::string& level) {
  if (level == "error") return LogModel::tr("✕ error");
  if (level == "warning") return LogModel::tr("! warning");
  if (level == "info") return LogModel::tr("note");
  return QString::fromStdString(level);
}

}  // namespace

bool LogModel::passes(const LogRow& row) const { return severity(row.level) >= m_least; }

void LogModel::append(const std::vector<LogRow>& rows) {
  // Of a long history only the end can stay: what would scroll out at once is never put in.
  const std::size_t first = rows.size() > kRing ? rows.size() - kRing : 0;
  std::vector<const LogRow*> shown;
  for (std::size_t i = first; i < rows.size(); ++i) {
    m_all.push_back(rows[i]);
    if (passes(rows[i])) shown.push_back(&rows[i]);
  }
  while (m_all.size() > kRing) m_all.pop_front();
  if (shown.empty()) return;
  const std::size_t total = m_shown.size() + shown.size();
  if (total > kRing) {
    const std::size_t gone = std::min(total - kRing, m_shown.size());
    if (gone > 0) {
      beginRemoveRows({}, 0, static_cast<int>(gone) - 1);
      m_shown.erase(m_shown.begin(), m_shown.begin() + static_cast<std::ptrdiff_t>(gone));
      endRemoveRows();
    }
  }
  const int at = static_cast<int>(m_shown.size());
  beginInsertRows({}, at, at + static_cast<int>(shown.size()) - 1);
  for (const LogRow* row : shown) m_shown.push_back(*row);
  endInsertRows();
}

void LogModel::setLeast(int least) {
  if (least == m_least) return;
  beginResetModel();
  m_least = least;
  m_shown.clear();
  for (const LogRow& row : m_all) {
    if (passes(row)) m_shown.push_back(row);
  }
  endResetModel();
}

int LogModel::rowCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : static_cast<int>(m_shown.size()); }
int LogModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant LogModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const LogRow& row = m_shown[static_cast<std::size_t>(index.row())];
  if (role == Qt::ToolTipRole && index.column() == kText) return plainToolTip(QString::fromStdString(row.text));
  if (role == Qt::DisplayRole) {
    switch (index.column()) {
      case kTime: return timeText(row.time_us);
      case kLevel: return levelText(row.level);
      case kPart: return partText(row.category);
      default: return QString::fromStdString(row.text);
    }
  }
  if (role == Qt::ForegroundRole && severity(row.level) > 0) {
    const Theme theme(QGuiApplication::palette());
    return severity(row.level) == 2 ? theme.fail() : theme.wait();
  }
  return {};
}

QVariant LogModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  const QString titles[kColumns] = {tr("Time"), tr("Severity"), tr("Part"), tr("What happened")};
  return titles[section];
}

}  // namespace sluice::gui
