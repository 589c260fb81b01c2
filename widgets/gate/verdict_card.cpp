// SPDX-License-Identifier: GPL-3.0-or-later
#include "gate/verdict_card.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QVBoxLayout>
#include <utility>

#include "shell/format.h"
#include "shell/theme.h"
#include "shell/words.h"

namespace sluice::gui {
namespace {

QString verdictWord(const DecisionRow& row) {
  if (row.kind == "rollback") return VerdictCard::tr("↶ Rolled back to");
  if (row.reason_code == "freeze") return VerdictCard::tr("‖ Serving frozen at");
  if (row.reason_code == "unfreeze") return VerdictCard::tr("▶ Serving unfrozen at");
  switch (row.verdict) {
    case Verdict::kPromote: return row.forced ? VerdictCard::tr("▲ Promoted (forced)") : VerdictCard::tr("▲ Promoted");
    case Verdict::kReject: return VerdictCard::tr("✕ Rejected");
    case Verdict::kHold: return VerdictCard::tr("‖ Held");
  }
  return {};
}

}  // namespace

VerdictCard::VerdictCard(const DecisionRow& row, QWidget* parent)
    : QFrame(parent), m_version(row.version), m_word(verdictWord(row)), m_time(timeText(row.time_us)),
      m_tone(row.kind == "rollback"             ? Tone::kBack
             : row.verdict == Verdict::kPromote ? Tone::kPass
             : row.verdict == Verdict::kReject  ? Tone::kFail
                                                : Tone::kWait) {
  setFrameShape(QFrame::StyledPanel);
  setObjectName(QStringLiteral("verdict"));
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 4, 6, 4);
  layout->setSpacing(2);
  m_head = new QLabel(this);
  m_head->setTextFormat(Qt::PlainText);
  m_head->setWordWrap(true);
  setLabel(std::string());
  QFont bold = m_head->font();
  bold.setBold(true);
  m_head->setFont(bold);
  auto* text = new QLabel(QString::fromStdString(row.reason_text), this);
  text->setObjectName(QStringLiteral("reason"));
  text->setTextFormat(Qt::PlainText);
  text->setWordWrap(true);
  text->setTextInteractionFlags(Qt::TextSelectableByMouse);
  layout->addWidget(m_head);
  layout->addWidget(text);
  if (!row.note.empty() && row.reason_text.find(row.note) == std::string::npos) {
    auto* note = new QLabel(tr("Note: %1").arg(QString::fromStdString(row.note)), this);
    note->setTextFormat(Qt::PlainText);
    note->setWordWrap(true);
    layout->addWidget(note);
  }
  if (row.n > 0) {
    const QLocale locale;
    m_numbers = new QLabel(tr("%1 pairs · difference %2 to %3 points · settings %4")
                                   .arg(row.n).arg(locale.toString(100 * row.lo, 'f', 1), locale.toString(100 * row.hi, 'f', 1)).arg(row.settings.value), this);
    m_numbers->setWordWrap(true);
    layout->addWidget(m_numbers);
  }
  color();
}

void VerdictCard::setLabel(const std::string& label) {
  m_head->setText(tr("%1 %2 · %3").arg(m_word, versionTitle(m_version, label), m_time));
}

QString VerdictCard::headText() const { return m_head->text(); }

void VerdictCard::color() {
  const Theme theme(palette());
  const QColor tone = m_tone == Tone::kBack ? theme.removed() : m_tone == Tone::kPass ? theme.pass() : m_tone == Tone::kFail ? theme.fail() : theme.wait();
  for (const auto& [label, text] : {std::pair{m_head, tone}, std::pair{m_numbers, theme.mutedText()}}) {
    if (!label) continue;
    QPalette own = label->palette();
    own.setColor(QPalette::WindowText, text);
    label->setPalette(own);
  }
}

void VerdictCard::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) color();
}

QWidget* VerdictCard::makeButtons() {
  auto* box = new QWidget(this);
  auto* row = new QHBoxLayout(box);
  row->setContentsMargins(0, 0, 0, 0);
  m_note = new QLineEdit(box);
  m_note->setObjectName(QStringLiteral("handNote"));
  m_note->setPlaceholderText(tr("Your reason"));
  auto* promote = new QPushButton(tr("Promote"), box);
  promote->setObjectName(QStringLiteral("handPromote"));
  auto* reject = new QPushButton(tr("Reject"), box);
  reject->setObjectName(QStringLiteral("handReject"));
  row->addWidget(m_note, 1);
  row->addWidget(promote);
  row->addWidget(reject);
  for (QPushButton* button : {promote, reject}) {
    button->setEnabled(false);
    button->setToolTip(tr("A decision by hand carries your reason"));
    connect(m_note, &QLineEdit::textChanged, button, [button](const QString& note) { button->setEnabled(!note.trimmed().isEmpty()); });
  }
  connect(promote, &QPushButton::clicked, this, [this] { Q_EMIT decided(QStringLiteral("promote"), m_version.value, m_note->text().trimmed()); });
  connect(reject, &QPushButton::clicked, this, [this] { Q_EMIT decided(QStringLiteral("reject"), m_version.value, m_note->text().trimmed()); });
  return box;
}

void VerdictCard::setOpen(bool open) {
  if (open && !m_buttons) {
    m_buttons = makeButtons();
    layout()->addWidget(m_buttons);
  }
  m_open = open;
  if (m_buttons) m_buttons->setVisible(open);
}

void VerdictCard::askForReason() {
  if (m_open) m_note->setFocus(Qt::OtherFocusReason);
}

}  // namespace sluice::gui
