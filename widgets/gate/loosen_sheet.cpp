// SPDX-License-Identifier: GPL-3.0-or-later
#include "gate/loosen_sheet.h"

#include <QDialogButtonBox>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

namespace sluice::gui {

LoosenSheet::LoosenSheet(const QStringList& changes, QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("Loosen the gate"));
  setObjectName(QStringLiteral("loosenSheet"));
  auto* text = new QLabel(tr("With this draft the gate lets through what it would stop now, from the next decision on and for the candidate "
                             "that is being measured:"), this);
  text->setWordWrap(true);
  auto* list = new QLabel(changes.join(QLatin1Char('\n')), this);
  list->setObjectName(QStringLiteral("changes"));
  list->setTextFormat(Qt::PlainText);
  list->setWordWrap(true);
  list->setIndent(fontMetrics().averageCharWidth() * 2);
  auto* buttons = new QDialogButtonBox(this);
  auto* go = buttons->addButton(tr("Loosen the gate"), QDialogButtonBox::AcceptRole);
  go->setObjectName(QStringLiteral("confirmLoosen"));
  go->setAutoDefault(false);
  buttons->addButton(QDialogButtonBox::Cancel)->setDefault(true);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(text);
  layout->addWidget(list);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  resize(fontMetrics().averageCharWidth() * 64, sizeHint().height());
}

}  // namespace sluice::gui
