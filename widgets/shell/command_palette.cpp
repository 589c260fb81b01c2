// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/command_palette.h"

#include <QCoreApplication>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLineEdit>
#include <QSortFilterProxyModel>
#include <QStandardItemModel>
#include <QTreeView>
#include <QVBoxLayout>

#include "shell/actions.h"

namespace sluice::gui {

CommandPalette::CommandPalette(const Actions& actions, QWidget* parent)
    : QDialog(parent), m_actions(actions), m_filter(new QLineEdit(this)), m_list(new QTreeView(this)), m_shown(new QSortFilterProxyModel(this)) {
  setWindowTitle(tr("Commands"));
  setObjectName(QStringLiteral("commandPalette"));
  auto* model = new QStandardItemModel(0, 3, this);
  for (const Actions::Entry& entry : actions.recentFirst()) {
    if (!entry.action->isEnabled()) continue;
    QString name = entry.action->text();
    name.remove(QLatin1Char('&'));
    auto* item = new QStandardItem(name);
    item->setData(entry.id);
    model->appendRow({item, new QStandardItem(entry.group), new QStandardItem(entry.action->shortcut().toString(QKeySequence::NativeText))});
  }
  m_shown->setSourceModel(model);
  m_shown->setFilterCaseSensitivity(Qt::CaseInsensitive);
  m_filter->setObjectName(QStringLiteral("paletteFilter"));
  m_filter->setPlaceholderText(tr("Type a part of a command"));
  m_filter->setAccessibleName(tr("Command"));
  m_filter->installEventFilter(this);
  m_list->setObjectName(QStringLiteral("paletteList"));
  m_list->setAccessibleName(tr("Commands"));
  m_list->setModel(m_shown);
  m_list->setRootIsDecorated(false);
  m_list->setEditTriggers(QAbstractItemView::NoEditTriggers);
  m_list->setHeaderHidden(true);
  m_list->header()->setStretchLastSection(false);
  m_list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(m_filter);
  layout->addWidget(m_list, 1);
  connect(m_filter, &QLineEdit::textChanged, this, [this](const QString& text) {
    m_shown->setFilterFixedString(text.trimmed());
    selectFirst();
  });
  connect(m_filter, &QLineEdit::returnPressed, this, &CommandPalette::runCurrent);
  connect(m_list, &QTreeView::activated, this, &CommandPalette::runCurrent);
  connect(m_list, &QTreeView::clicked, this, &CommandPalette::runCurrent);
  selectFirst();
  m_filter->setFocus();
  resize(fontMetrics().averageCharWidth() * 70, fontMetrics().height() * 20);
}

void CommandPalette::selectFirst() { m_list->setCurrentIndex(m_shown->index(0, 0)); }

// Up and Down move in the list while the filter keeps the focus.
bool CommandPalette::eventFilter(QObject* watched, QEvent* event) {
  if (watched == m_filter && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if (key == Qt::Key_Up || key == Qt::Key_Down || key == Qt::Key_PageUp || key == Qt::Key_PageDown) {
      QCoreApplication::sendEvent(m_list, event);
      return true;
    }
  }
  return QDialog::eventFilter(watched, event);
}

void CommandPalette::runCurrent() {
  const QModelIndex current = m_list->currentIndex();
  if (!current.isValid() || result() == Accepted) return;  // a click may be an activation, too
  QAction* action = m_actions[m_shown->index(current.row(), 0).data(Qt::UserRole + 1).toString()];
  accept();            // first: the command may open a dialog of its own
  action->trigger();
}

QStringList CommandPalette::names() const {
  QStringList out;
  for (int i = 0; i < m_shown->rowCount(); ++i) out << m_shown->index(i, 0).data().toString();
  return out;
}

}  // namespace sluice::gui
