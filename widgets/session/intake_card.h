// SPDX-License-Identifier: GPL-3.0-or-later
// Answers "is anything being learnt?" in two lines above the curves: what session, stream and trainer do at the moment;
// records, verdicts, waiting, trained, and each reason why some were not. GUI thread.
#pragma once

#include <QWidget>

#include "bridge/engine_bridge.h"

class QLabel;

namespace sluice::gui {

class IntakeCard : public QWidget {
  Q_OBJECT
 public:
  explicit IntakeCard(EngineBridge& bridge, QWidget* parent = nullptr);
  QString text() const;

 private:
  void showState();
  void showCounts(const StoreCounts& counts);

  EngineBridge& m_bridge;
  QLabel* m_session;
  QLabel* m_now;
  QLabel* m_counts;
};

}  // namespace sluice::gui
