// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/info_bar.h"

#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "shell/theme.h"

namespace sluice::gui {
namespace {

constexpr int kInformationMs = 8000;

QString severityWord(InfoBar::Severity severity) {
  switch (severity) {
    case InfoBar::Severity::kInformation:
    case InfoBar::Severity::kNotice: return InfoBar::tr("Note");
    case InfoBar::Severity::kWarning: return InfoBar::tr("Attention");
    case InfoBar::Severity::kError: return InfoBar::tr("Error");
  }
  return {};
}

}  // namespace

InfoBar::InfoBar(QWidget* parent) : QWidget(parent), m_layout(new QVBoxLayout(this)) {
  m_layout->setContentsMargins(0, 0, 0, 0);
  m_layout->setSpacing(2);
  setVisible(false);
}

void InfoBar::show(const QString& id, Severity severity, const QString& text, std::vector<Action> actions) {
  dismiss(id);
  auto* bar = new QFrame(this);
  bar->setObjectName(id);
  bar->setFrameShape(QFrame::StyledPanel);
  const Theme theme(palette());
  const QColor edge = severity == Severity::kError ? theme.fail() : severity == Severity::kWarning ? theme.wait() : theme.added();
  auto* row = new QHBoxLayout(bar);
  row->setContentsMargins(8, 4, 4, 4);
  auto* word = new QLabel(severityWord(severity), bar);
  QPalette strong = word->palette();
  strong.setColor(QPalette::WindowText, edge);
  word->setPalette(strong);
  QFont bold = word->font();
  bold.setBold(true);
  word->setFont(bold);
  auto* label = new QLabel(text, bar);
  label->setObjectName(QStringLiteral("text"));
  label->setTextFormat(Qt::PlainText);
  label->setWordWrap(true);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  row->addWidget(word);
  row->addWidget(label, 1);
  for (Action& action : actions) {
    auto* button = new QPushButton(action.text, bar);
    button->setObjectName(QStringLiteral("action"));
    connect(button, &QPushButton::clicked, this, [this, id, action = std::move(action)] {
      if (!action.keep) dismiss(id);
      action.run();
    });
    row->addWidget(button);
  }
  auto* close = new QToolButton(bar);
  close->setText(QStringLiteral("×"));
  close->setAutoRaise(true);
  close->setAccessibleName(tr("Dismiss"));
  connect(close, &QToolButton::clicked, this, [this, id] { dismiss(id); });
  row->addWidget(close);
  m_layout->addWidget(bar);
  m_bars.insert(id, bar);
  setVisible(true);
  if (severity == Severity::kInformation) {
    auto* timer = new QTimer(bar);
    timer->setSingleShot(true);
    connect(timer, &QTimer::timeout, this, [this, id] { dismiss(id); });
    timer->start(kInformationMs);
  }
}

void InfoBar::dismiss(const QString& id) {
  QWidget* bar = m_bars.take(id);
  if (!bar) return;
  m_layout->removeWidget(bar);
  bar->hide();
  bar->deleteLater();  // the click that dismisses comes from inside it
  if (m_bars.isEmpty()) setVisible(false);
}

QString InfoBar::text(const QString& id) const {
  const QWidget* bar = m_bars.value(id);
  const auto* label = bar ? bar->findChild<QLabel*>(QStringLiteral("text")) : nullptr;
  return label ? label->text() : QString();
}

bool InfoBar::trigger(const QString& id, int n) {
  QWidget* bar = m_bars.value(id);
  QPushButton* button = bar ? bar->findChildren<QPushButton*>(QStringLiteral("action")).value(n) : nullptr;
  if (!button) return false;
  button->click();
  return true;
}

}  // namespace sluice::gui
