// SPDX-License-Identifier: GPL-3.0-or-later
// One gate decision: glyph and word, version, time, the engine's sentence, its numbers. While the candidate is held a person
// may promote or reject it; the note becomes the reason of that decision. GUI thread.
#pragma once

#include <QFrame>

#include "bridge/engine_types.h"

class QLabel;
class QLineEdit;
class QWidget;

namespace sluice::gui {

class VerdictCard : public QFrame {
  Q_OBJECT
 public:
  explicit VerdictCard(const DecisionRow& row, QWidget* parent = nullptr);

  VersionId version() const { return m_version; }
  // What the version was made for, where it was not made to get better; its row may come after the decision's.
  void setLabel(const std::string& label);
  QString headText() const;
  // Shows or hides the operator's buttons.
  void setOpen(bool open);
  bool isOpen() const { return m_open; }
  // The keyboard goes to the reason that a decision by hand needs.
  void askForReason();

 Q_SIGNALS:
  void decided(const QString& action, qint64 version, const QString& note);

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeButtons();
  void color();               // by the palette of now

  VersionId m_version;
  QString m_word, m_time;
  bool m_open = false;
  enum class Tone { kBack, kPass, kFail, kWait } m_tone;
  QLabel* m_head = nullptr;
  QLabel* m_numbers = nullptr;
  QWidget* m_buttons = nullptr;
  QLineEdit* m_note = nullptr;
};

}  // namespace sluice::gui
