// SPDX-License-Identifier: GPL-3.0-or-later
// Every enabled command of the window by name: type a part of it, Return runs it. Those used last come first. Made from the
// action registry when it opens. GUI thread.
#pragma once

#include <QDialog>

class QLineEdit;
class QSortFilterProxyModel;
class QTreeView;

namespace sluice::gui {

class Actions;

class CommandPalette : public QDialog {
  Q_OBJECT
 public:
  explicit CommandPalette(const Actions& actions, QWidget* parent);
  QStringList names() const;   // what the filter leaves, top first

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void selectFirst();
  void runCurrent();

  const Actions& m_actions;
  QLineEdit* m_filter;
  QTreeView* m_list;
  QSortFilterProxyModel* m_shown;
};

}  // namespace sluice::gui
