// SPDX-License-Identifier: GPL-3.0-or-later
// Work that may wait for the disk, away from the GUI thread and back. Call on the GUI thread.
#pragma once

#include <QCoreApplication>
#include <QPointer>
#include <QThreadPool>
#include <utility>

namespace sluice::gui {

// Runs `work()` on the pool, then `done(result)` on the GUI thread unless `owner` died before. The hop back goes through the
// application, which outlives every job, since the owner may die at any moment of it.
template <class Owner, class Work, class Done>
void runJob(Owner* owner, Work work, Done done) {
  QThreadPool::globalInstance()->start([guard = QPointer<Owner>(owner), work = std::move(work), done = std::move(done)] {
    QMetaObject::invokeMethod(
        QCoreApplication::instance(), [guard, done, result = work()] {
          if (guard) done(result);
        }, Qt::QueuedConnection);
  });
}

}  // namespace sluice::gui
