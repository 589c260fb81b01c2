// SPDX-License-Identifier: GPL-3.0-or-later
// One gate decision: glyph and word, version, time, the engine's sentence, its numbers. While the candidate is held a person
// may promote or reject it; the note becomes the reason of that decision. GUI thread.
#pragma once

#include <QFrame>

#include "bridge/engine_types.h"

class QLineEdit;
class QWidget;

namespace sluice::gui {

class VerdictCard : public QFrame {
  Q_OBJECT
 public:
  explicit VerdictCard(const DecisionRow& row, QWidget* parent = nullptr);

  VersionId version() const { return m_version; }
  // Shows or hides the operator's buttons.
  void setOpen(bool open);

 Q_SIGNALS:
  void decided(const QString& action, qint64 version, const QString& note);

 private:
  QWidget* makeButtons();

  VersionId m_version;
  QWidget* m_buttons = nullptr;
  QLineEdit* m_note = nullptr;
};

}  // namespace sluice::gui
