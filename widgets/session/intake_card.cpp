// SPDX-License-Identifier: GPL-3.0-or-later
#include "session/intake_card.h"

#include <QLabel>
#include <QVBoxLayout>

#include "shell/format.h"

namespace sluice::gui {

IntakeCard::IntakeCard(EngineBridge& bridge, QWidget* parent) : QWidget(parent), m_bridge(bridge) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(6, 6, 6, 6);
  for (QLabel** label : {&m_session, &m_stream, &m_train, &m_counts}) {
    *label = new QLabel(this);
    (*label)->setWordWrap(true);
    layout->addWidget(*label);
  }
  layout->addStretch(1);
  QFont bold = m_session->font();
  bold.setBold(true);
  m_session->setFont(bold);
  m_counts->setText(tr("Records appear with the first request."));
  connect(&bridge, &EngineBridge::stateChanged, this, &IntakeCard::showState);
  connect(&bridge, &EngineBridge::countsChanged, this, &IntakeCard::showCounts);
  showState();
}

void IntakeCard::showState() {
  const EngineState& state = m_bridge.state();
  if (!state.session) {
    m_session->setText(tr("No session runs"));
    m_stream->clear();
    m_train->clear();
    return;
  }
  const char* phase = state.session->state == SessionState::kPaused ? QT_TR_NOOP("paused") : QT_TR_NOOP("running");
  m_session->setText(tr("“%1”, %2, seed %3").arg(QString::fromStdString(state.session->name), tr(phase)).arg(state.session->seed));
  const StreamProgress& stream = state.stream;
  QString line = stream.max_requests > 0 ? tr("%1 of %2 requests").arg(stream.requests).arg(stream.max_requests) : tr("%1 requests").arg(stream.requests);
  if (!stream.simulated) line += tr(" · live only");
  if (stream.in_flight > 0) line += tr(" · %1 running").arg(stream.in_flight);
  if (stream.failed > 0) line += tr(" · %1 failed").arg(stream.failed);
  m_stream->setText(line);
  m_train->setText(state.train.brake.empty() ? tr("Trainer: %1").arg(QString::fromStdString(state.train.doing))
                                             : tr("Trainer stopped: %1").arg(QString::fromStdString(state.train.brake)));
}

void IntakeCard::showCounts(const StoreCounts& counts) {
  QStringList lines{tr("%1 answers kept, %2 verdicts").arg(counts.live_records).arg(counts.feedback),
                    tr("%1 accepted, %2 rejected").arg(counts.accepted).arg(counts.rejected),
                    tr("%1 wait for the next batch, %2 trained on").arg(counts.waiting).arg(counts.trained)};
  for (const auto& [reason, n] : counts.dropped) lines << tr("%1 not trained: %2").arg(n).arg(QString::fromStdString(reason));
  m_counts->setText(lines.join(QLatin1Char('\n')));
}

QString IntakeCard::text() const {
  return QStringList{m_session->text(), m_stream->text(), m_train->text(), m_counts->text()}.join(QLatin1Char('\n'));
}

}  // namespace sluice::gui
