// SPDX-License-Identifier: GPL-3.0-or-later
#include "session/session_list.h"

#include <QHeaderView>
#include <QLocale>
#include <QPushButton>
#include <QSignalBlocker>
#include <QTreeWidget>
#include <QVBoxLayout>

#include "shell/format.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

enum Column { kName, kSeed, kPhase, kSteps, kReward, kStarted, kColumns };

}  // namespace

SessionList::SessionList(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_tree(new QTreeWidget(this)), m_newest(new QPushButton(tr("Follow the newest"), this)) {
  m_tree->setObjectName(QStringLiteral("sessionList"));
  m_tree->setAccessibleName(tr("Sessions"));
  m_tree->setColumnCount(kColumns);
  m_tree->setHeaderLabels({tr("Session"), tr("Seed"), tr("Phase"), tr("Steps"), tr("Last reward"), tr("Started")});
  m_tree->setRootIsDecorated(false);
  m_tree->setUniformRowHeights(true);
  m_tree->header()->setStretchLastSection(true);
  m_newest->setObjectName(QStringLiteral("followNewest"));
  m_newest->setEnabled(false);
  m_newest->setToolTip(tr("Draw whichever session was started last"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(4, 4, 4, 4);
  layout->addWidget(m_tree, 1);
  layout->addWidget(m_newest, 0, Qt::AlignLeft);
  connect(&bridge, &EngineBridge::sessionsChanged, this, &SessionList::takeSessions);
  connect(&bridge, &EngineBridge::metricsArrived, this, &SessionList::takeMetrics);
  connect(m_tree, &QTreeWidget::itemSelectionChanged, this, &SessionList::choose);
  connect(m_newest, &QPushButton::clicked, this, [this] {
    m_tree->clearSelection();
    m_tree->setCurrentItem(nullptr);
  });
}

void SessionList::takeSessions(const Rows<SessionRow>& rows) {
  m_sessions = *rows;
  showRows();
}

void SessionList::takeMetrics(const Rows<MetricRow>& rows) {
  bool any = false;
  for (const MetricRow& row : *rows) {
    if (row.name != "reward_mean") continue;
    Learnt& learnt = m_learnt[row.session.value];
    ++learnt.steps;
    learnt.reward = row.value;
    any = true;
  }
  if (any) showRows();
}

void SessionList::showRows() {
  const QSignalBlocker block(m_tree);
  const QLocale locale;
  while (m_tree->topLevelItemCount() < static_cast<int>(m_sessions.size())) new QTreeWidgetItem(m_tree);
  for (std::size_t i = 0; i < m_sessions.size(); ++i) {
    const SessionRow& row = m_sessions[m_sessions.size() - 1 - i];  // newest first
    QTreeWidgetItem* item = m_tree->topLevelItem(static_cast<int>(i));
    const Learnt learnt = m_learnt.value(row.id.value);
    item->setData(kName, Qt::UserRole, static_cast<qlonglong>(row.id.value));
    item->setText(kName, QString::fromStdString(row.name));
    const QString about = tr("Session %1, recipe %2%3").arg(row.id.value).arg(QString::fromStdString(row.recipe_name), row.live_only ? tr(", live only") : QString());
    item->setToolTip(kName, plainToolTip(about));
    item->setText(kSeed, locale.toString(static_cast<qulonglong>(row.seed)));
    item->setText(kPhase, sessionStateText(row.state));
    item->setText(kSteps, locale.toString(learnt.steps));
    item->setText(kReward, learnt.steps > 0 ? tr("%1 (step %2)").arg(locale.toString(learnt.reward, 'f', 2)).arg(learnt.steps) : tr("no step yet"));
    item->setText(kStarted, timeText(row.started_us));
    item->setSelected(row.id.value == m_chosen);
  }
  for (int column = 0; column < kStarted; ++column) m_tree->resizeColumnToContents(column);
}

void SessionList::choose() {
  const QList<QTreeWidgetItem*> items = m_tree->selectedItems();
  m_chosen = items.isEmpty() ? 0 : items.front()->data(kName, Qt::UserRole).toLongLong();
  m_newest->setEnabled(m_chosen != 0);
  Q_EMIT chosen(m_chosen == 0 ? SessionId() : SessionId(m_chosen));
}

QStringList SessionList::rowTexts() const {
  QStringList out;
  for (int i = 0; i < m_tree->topLevelItemCount(); ++i) {
    QStringList cells;
    for (int column = 0; column < kColumns; ++column) cells << m_tree->topLevelItem(i)->text(column);
    out << cells.join(QLatin1Char('\t'));
  }
  return out;
}

}  // namespace sluice::gui
