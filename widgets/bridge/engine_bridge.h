// SPDX-License-Identifier: GPL-3.0-or-later
// The one door between widgets and engine. GUI thread only. Rows arrive as signals a moment after their commit; the state is
// polled at 4 Hz and replaced whole; commands return at once and their outcome comes later, exactly once.
#pragma once

#include <QObject>
#include <QThread>
#include <QTimer>
#include <functional>
#include <memory>

#include "bridge/engine_api.h"
#include "bridge/inbox.h"
#include "bridge/job.h"
#include "bridge/store_reader.h"

namespace sluice::gui {

class EngineBridge : public QObject {
  Q_OBJECT
 public:
  explicit EngineBridge(std::unique_ptr<EngineApi> api, QObject* parent = nullptr);
  ~EngineBridge() override;

  const EngineState& state() const { return *m_state; }

  // Who works here: the actor of decisions and the labeller of labels. Never empty.
  void setUser(const QString& name) { m_user = name.toStdString(); }
  const std::string& user() const { return m_user; }

  // The one way to the engine's reads, since they may wait for disk or sums: `work(const EngineApi&)` runs on the job pool,
  // then `done(result)` here unless `context` died before. The pool is waited for before the engine ends.
  template <class Owner, class Work, class Done>
  void job(Owner* context, Work work, Done done) {
    runJob(context, [api = m_api.get(), work = std::move(work)] { return work(static_cast<const EngineApi&>(*api)); }, std::move(done));
  }

  // Sends a command. `done` runs on the GUI thread unless `context` died before. Returns the command's number.
  quint64 submit(Command command, QObject* context, std::function<void(const CommandOutcome&)> done);
  // Commands whose outcome is still due.
  int pending() const { return m_pending; }

  // Asynchronous reads; the answer comes by signal of the reader with the same request number.
  quint64 requestRecordPage(const RecordFilter& filter, qint64 beforeSeq, int limit);
  quint64 requestRecord(const RecordId& id);

  // Starts the first fill; call once, when the models are connected.
  void start();
  // Lets go of the engine: no signal and no outcome comes after this, and no other function may be called. The function
  // it returns waits for the reader and ends the engine; run it on a thread that may wait.
  std::function<void()> shutDown();
  // Fetches the snapshot now instead of at the next poll.
  void pollNow();

 Q_SIGNALS:
  void stateChanged();
  void sessionsChanged(sluice::gui::Rows<sluice::SessionRow> rows);
  void versionsChanged(sluice::gui::Rows<sluice::VersionRow> rows);
  void recordsArrived(sluice::gui::Rows<sluice::RecordRow> rows);
  void feedbackArrived(sluice::gui::Rows<sluice::FeedbackRow> rows);
  void metricsArrived(sluice::gui::Rows<sluice::MetricRow> rows);
  void decisionsArrived(sluice::gui::Rows<sluice::DecisionRow> rows);
  void logArrived(sluice::gui::Rows<sluice::LogRow> rows);
  void countsChanged(sluice::StoreCounts counts);
  void settingsChanged();               // gate settings have a new row
  void recordPageArrived(quint64 request, sluice::gui::Rows<sluice::RecordRow> rows);
  void recordArrived(quint64 request, sluice::gui::Rows<sluice::RecordRow> record,
                     sluice::gui::Rows<sluice::FeedbackRow> feedback);

 private:
  struct Gate;
  void drainInbox();
  void connectReader();

  std::unique_ptr<EngineApi> m_api;
  const std::shared_ptr<Gate> m_gate;
  std::shared_ptr<const EngineState> m_state;
  std::shared_ptr<Inbox> m_inbox;       // shared with the engine's listener, which may outlive this object by a moment
  StoreReader* m_reader = nullptr;      // lives in m_readerThread
  QThread m_readerThread;
  QTimer m_pollTimer;
  QTimer m_drainTimer;
  quint64 m_nextRequest = 0;
  int m_pending = 0;
  std::string m_user = "operator";
};

}  // namespace sluice::gui
