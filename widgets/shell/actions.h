// SPDX-License-Identifier: GPL-3.0-or-later
// One command = one name = one QAction = one key. Menus, mode bar and command palette are made from this registry.
// GUI thread.
#pragma once

#include <QAction>
#include <QHash>
#include <QObject>
#include <QStringList>
#include <functional>
#include <vector>

namespace sluice::gui {

class Actions : public QObject {
  Q_OBJECT
 public:
  struct Entry {
    QString id, group;
    QAction* action;
  };

  explicit Actions(QWidget* window);

  // Makes the action and adds it to the window, so that its key works everywhere in it. A key that another action has is
  // refused (assertion): two enabled actions on one key fire neither.
  QAction* add(const QString& id, const QString& group, const QString& text, const QKeySequence& key,
               std::function<void()> run);
  QAction* operator[](const QString& id) const;
  const std::vector<Entry>& entries() const { return m_entries; }
  // Those used last come first, then the others in their order.
  std::vector<Entry> recentFirst() const;

  // Disabled with the reason as tool-tip; an empty reason enables.
  void setReason(const QString& id, const QString& reason);

 private:
  QWidget* m_window;
  std::vector<Entry> m_entries;
  QHash<QString, QAction*> m_byId;
  QStringList m_recent;   // ids, newest first
};

}  // namespace sluice::gui
