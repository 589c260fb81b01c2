// SPDX-License-Identifier: GPL-3.0-or-later
#include "session/intake_card.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "shell/format.h"
#include "shell/words.h"

namespace sluice::gui {

IntakeCard::IntakeCard(EngineBridge& bridge, QWidget* parent)
    : QWidget(parent), m_bridge(bridge), m_session(new QLabel(this)), m_now(new QLabel(this)), m_counts(new QLabel(this)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(8, 6, 8, 2);
  layout->setSpacing(2);
  auto* row = new QHBoxLayout;
  QFont bold = m_session->font();
  bold.setBold(true);
  m_session->setFont(bold);
  m_now->setObjectName(QStringLiteral("sessionNow"));
  for (QLabel* label : {m_session, m_now, m_counts}) label->setTextFormat(Qt::PlainText);
  m_now->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  row->setSpacing(10);
  row->addWidget(m_session);
  row->addWidget(m_now, 1);
  layout->addLayout(row);
  layout->addWidget(m_counts);
  m_counts->setWordWrap(true);
  m_counts->setText(tr("Records appear with the first request."));
  connect(&bridge, &EngineBridge::stateChanged, this, &IntakeCard::showState);
  connect(&bridge, &EngineBridge::countsChanged, this, &IntakeCard::showCounts);
  showState();
}

void IntakeCard::showState() {
  const EngineState& state = m_bridge.state();
  if (!state.session) {
    m_session->setText(tr("No session runs."));
    m_now->setText(tr("Run the demo, or start a session (Ctrl+N)."));
    return;
  }
  const bool paused = state.session->state == SessionState::kPaused;
  const bool through = state.session_through && !paused;
  const QString phase = paused ? tr("‖ “%1” is paused") : through ? tr("■ “%1” is through") : tr("▶ “%1” runs");
  m_session->setText(phase.arg(QString::fromStdString(state.session->name)));
  if (!state.session_problem.empty()) {
    m_now->setText(tr("can't go on: %1").arg(QString::fromStdString(state.session_problem)));
    m_now->setToolTip(plainToolTip(m_now->text()));
    return;
  }
  const StreamProgress& stream = state.stream;
  QStringList parts;
  parts << (stream.max_requests > 0 ? tr("request %1 of %2").arg(stream.requests).arg(stream.max_requests) : tr("%n request(s)", nullptr, static_cast<int>(stream.requests)));
  if (!stream.simulated) parts << tr("live only: traffic and verdicts come from clients and you");
  if (stream.finished && !through) parts << tr("the simulated user is through");
  if (stream.failed > 0) parts << tr("%1 failed").arg(stream.failed);
  if (!state.train.brake.empty()) parts << tr("trainer stopped: %1").arg(QString::fromStdString(state.train.brake));
  else if (through) parts << tr("the last candidate is judged: end the session (Shift+F5) to start another");
  else parts << tr("trainer: %1").arg(trainText(state.train));
  m_now->setText(parts.join(QStringLiteral("  ·  ")));
  m_now->setToolTip(plainToolTip(m_now->text()));
}

void IntakeCard::showCounts(const StoreCounts& counts) {
  QStringList parts{tr("%n answer(s) kept", nullptr, static_cast<int>(counts.live_records)),
                    tr("%n verdict(s): %1 accepted, %2 rejected", nullptr, static_cast<int>(counts.feedback)).arg(counts.accepted).arg(counts.rejected),
                    tr("%1 trained on, %2 wait for the next batch").arg(counts.trained).arg(counts.waiting)};
  for (const auto& [reason, n] : counts.dropped) parts << tr("%1 not trained: %2").arg(n).arg(dropText(reason));
  m_counts->setText(parts.join(QStringLiteral("  ·  ")));
}

QString IntakeCard::text() const {
  return QStringList{m_session->text(), m_now->text(), m_counts->text()}.join(QLatin1Char('\n'));
}

}  // namespace sluice::gui
