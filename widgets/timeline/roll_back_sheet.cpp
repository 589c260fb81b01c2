// SPDX-License-Identifier: GPL-3.0-or-later
#include "timeline/roll_back_sheet.h"

#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "shell/format.h"

namespace sluice::gui {

RollBackSheet::RollBackSheet(const VersionRow& target, const VersionRow* now, const DecisionRow* decision, QWidget* parent)
    : QDialog(parent), m_note(new QLineEdit(this)) {
  const QString to = versionText(target.id.value);
  const QString from = now ? versionText(now->id.value) : tr("the version in service");
  setWindowTitle(tr("Roll back to %1").arg(to));
  setObjectName(QStringLiteral("rollBackSheet"));
  auto* text = new QLabel(tr("<p><b>%1 will serve instead of %2.</b></p>"
                             "<p>Requests that run now finish on the version they began with. Training goes on from the checkpoint of %1. "
                             "This is a decision with your name and note on it, and it can be undone.</p>").arg(to, from), this);
  text->setWordWrap(true);
  m_note->setText(tr("Rolled back from %1 to %2 by hand").arg(from, to));
  m_note->setObjectName(QStringLiteral("rollBackNote"));
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(text);
  if (decision) {
    auto* past = new QLabel(tr("What the gate said of %1: %2").arg(to, QString::fromStdString(decision->reason_text)), this);
    past->setTextFormat(Qt::PlainText);
    past->setWordWrap(true);
    layout->addWidget(past);
  }
  auto* form = new QFormLayout;
  form->addRow(tr("Note"), m_note);
  layout->addLayout(form);
  auto* buttons = new QDialogButtonBox(this);
  auto* go = buttons->addButton(tr("Roll back"), QDialogButtonBox::AcceptRole);
  go->setObjectName(QStringLiteral("confirmRollBack"));
  go->setAutoDefault(false);
  auto* cancel = buttons->addButton(QDialogButtonBox::Cancel);
  cancel->setDefault(true);
  layout->addWidget(buttons);
  // A roll-back without a reason can't be told from a slip later.
  connect(m_note, &QLineEdit::textChanged, go, [go](const QString& note) { go->setEnabled(!note.trimmed().isEmpty()); });
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  resize(fontMetrics().averageCharWidth() * 70, sizeHint().height());
}

QString RollBackSheet::note() const { return m_note->text().trimmed(); }

}  // namespace sluice::gui
