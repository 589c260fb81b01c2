// SPDX-License-Identifier: GPL-3.0-or-later
// Asks before a roll-back: both versions, what happens to requests and training, a note filled in. Cancel is the default; nothing
// has to be typed, since a roll-back can be undone. GUI thread.
#pragma once

#include <QDialog>

#include "bridge/engine_types.h"

class QLineEdit;

namespace sluice::gui {

class RollBackSheet : public QDialog {
  Q_OBJECT
 public:
  // `now` and `decision` (of the target) may be null.
  RollBackSheet(const VersionRow& target, const VersionRow* now, const DecisionRow* decision, QWidget* parent);
  QString note() const;

 private:
  QLineEdit* m_note;
};

}  // namespace sluice::gui
