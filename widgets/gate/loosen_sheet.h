// SPDX-License-Identifier: GPL-3.0-or-later
// Asks once before a draft goes into force that lets through what the gate stops now (gate.md §5). GUI thread.
#pragma once

#include <QDialog>

namespace sluice::gui {

class LoosenSheet : public QDialog {
  Q_OBJECT
 public:
  // `changes`: a line for each threshold that the draft moves.
  explicit LoosenSheet(const QStringList& changes, QWidget* parent);
};

}  // namespace sluice::gui
