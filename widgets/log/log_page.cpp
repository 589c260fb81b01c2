// SPDX-License-Identifier: GPL-3.0-or-later
#include "log/log_page.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QScrollBar>
#include <QTableView>
#include <QVBoxLayout>

#include "log/log_model.h"

namespace sluice::gui {

LogPage::LogPage(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_model(new LogModel(this)), m_least(new QComboBox(this)), m_table(new QTableView(this)) {
  m_least->addItems({tr("Everything"), tr("Warnings and errors"), tr("Errors")});
  m_least->setAccessibleName(tr("Least severity"));
  m_table->setObjectName(QStringLiteral("log"));
  m_table->setModel(m_model);
  m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
  m_table->verticalHeader()->hide();
  m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 4);
  m_table->horizontalHeader()->setStretchLastSection(true);
  m_table->setShowGrid(false);
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
  connect(m_least, &QComboBox::currentIndexChanged, m_model, &LogModel::setLeast);
}

void LogPage::takeLog(const Rows<LogRow>& rows) {
  const QScrollBar* bar = m_table->verticalScrollBar();
  const bool follow = bar->value() == bar->maximum();
  m_model->append(*rows);
  if (follow) m_table->scrollToBottom();
}

int LogPage::lines() const { return m_model->rowCount(); }
QString LogPage::lineText(int row) const { return m_model->index(row, LogModel::kText).data().toString(); }

}  // namespace sluice::gui
