// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/actions.h"

#include <QWidget>
#include <algorithm>

namespace sluice::gui {

Actions::Actions(QWidget* window) : QObject(window), m_window(window) {}

QAction* Actions::add(const QString& id, const QString& group, const QString& text, const QKeySequence& key,
                      std::function<void()> run) {
  for (const Entry& entry : m_entries) Q_ASSERT(key.isEmpty() || entry.action->shortcut() != key);
  auto* action = new QAction(text, this);
  action->setObjectName(id);
  action->setShortcut(key);
  action->setAutoRepeat(false);
  connect(action, &QAction::triggered, this, [this, id, run = std::move(run)] {
    m_recent.removeAll(id);
    m_recent.prepend(id);
    run();
  });
  m_window->addAction(action);
  m_entries.push_back({id, group, action});
  m_byId.insert(id, action);
  setReason(id, QString());
  return action;
}

QAction* Actions::operator[](const QString& id) const {
  QAction* action = m_byId.value(id);
  Q_ASSERT(action);
  return action;
}

std::vector<Actions::Entry> Actions::recentFirst() const {
  std::vector<Entry> out = m_entries;
  std::stable_sort(out.begin(), out.end(), [this](const Entry& a, const Entry& b) {
    const auto place = [this](const Entry& entry) {
      const qsizetype at = m_recent.indexOf(entry.id);
      return at < 0 ? m_recent.size() : at;
    };
    return place(a) < place(b);
  });
  return out;
}

void Actions::setReason(const QString& id, const QString& reason) {
  QAction* action = (*this)[id];
  const QString key = action->shortcut().toString(QKeySequence::NativeText);
  QString plain = action->text();
  plain.remove(QLatin1Char('&'));
  action->setToolTip(!reason.isEmpty() ? reason : key.isEmpty() ? plain : tr("%1 (%2)").arg(plain, key));
  action->setEnabled(reason.isEmpty());
}

}  // namespace sluice::gui
