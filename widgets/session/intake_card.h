// SPDX-License-Identifier: GPL-3.0-or-later
// Answers "is anything being learnt?": records, with feedback, waiting, trained, and each reason why some were not. With what
// stream and trainer do at the moment. GUI thread.
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
  QLabel* m_stream;
  QLabel* m_train;
  QLabel* m_counts;
};

}  // namespace sluice::gui
