// SPDX-License-Identifier: GPL-3.0-or-later
#include "log/log_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QTableWidget>
#include <QVBoxLayout>

#include "shell/format.h"
#include "shell/theme.h"

namespace sluice::gui {
namespace {

constexpr int kRing = 10000;
enum Column { kTime, kLevel, kCategory, kText, kColumns };

int severity(const QString& level) {
  return level == QLatin1String("error") ? 2 : level == QLatin1String("warning") ? 1 : 0;
}

}  // namespace

LogPage::LogPage(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_least(new QComboBox(this)), m_table(new QTableWidget(0, kColumns, this)) {
  m_least->addItems({tr("Everything"), tr("Warnings and errors"), tr("Errors")});
  m_least->setAccessibleName(tr("Least severity"));
  m_table->setObjectName(QStringLiteral("log"));
  m_table->setHorizontalHeaderLabels({tr("Time"), tr("Severity"), tr("Part"), tr("What happened")});
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_table->verticalHeader()->hide();
  m_table->horizontalHeader()->setStretchLastSection(true);
  m_table->setWordWrap(false);
  m_table->setAccessibleName(tr("Log"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  auto* row = new QHBoxLayout;
  row->addWidget(new QLabel(tr("Show"), this));
  row->addWidget(m_least);
  row->addStretch(1);
  layout->addLayout(row);
  layout->addWidget(m_table, 1);
  connect(&bridge, &EngineBridge::logArrived, this, &LogPage::takeLog);
  connect(m_least, &QComboBox::currentIndexChanged, this, &LogPage::applyFilter);
}

void LogPage::takeLog(const Rows<LogRow>& rows) {
  const Theme theme(palette());
  const QScrollBar* bar = m_table->verticalScrollBar();
  const bool follow = bar->value() == bar->maximum();
  for (const LogRow& line : *rows) {
    const int at = m_table->rowCount();
    m_table->insertRow(at);
    const QString level = QString::fromStdString(line.level);
    const QString cells[kColumns] = {timeText(line.time_us), level, QString::fromStdString(line.category), QString::fromStdString(line.text)};
    for (int column = 0; column < kColumns; ++column) {
      auto* item = new QTableWidgetItem(cells[column]);
      if (severity(level) == 2) item->setForeground(theme.fail());
      if (severity(level) == 1) item->setForeground(theme.wait());
      if (column == kText) item->setToolTip(cells[column]);
      m_table->setItem(at, column, item);
    }
    m_table->setRowHidden(at, severity(level) < m_least->currentIndex());
  }
  while (m_table->rowCount() > kRing) m_table->removeRow(0);
  if (follow) m_table->scrollToBottom();
}

void LogPage::applyFilter() {
  for (int row = 0; row < m_table->rowCount(); ++row) {
    m_table->setRowHidden(row, severity(m_table->item(row, kLevel)->text()) < m_least->currentIndex());
  }
}

int LogPage::lines() const { return m_table->rowCount(); }
QString LogPage::lineText(int row) const { return m_table->item(row, kText)->text(); }

}  // namespace sluice::gui
