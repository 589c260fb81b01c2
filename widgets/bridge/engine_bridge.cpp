// SPDX-License-Identifier: GPL-3.0-or-later
#include "bridge/engine_bridge.h"

#include <QPointer>
#include <mutex>

namespace sluice::gui {
namespace {

constexpr int kPollMs = 250;
constexpr int kDrainMs = 100;

}  // namespace

// What another thread needs to reach an object of the GUI thread that may be gone: checked and used under the lock.
struct EngineBridge::Gate {
  std::mutex mutex;
  QObject* target = nullptr;

  template <class Function>
  void post(Function function) {
    const std::lock_guard lock(mutex);
    if (target) QMetaObject::invokeMethod(target, std::move(function), Qt::QueuedConnection);
  }
};

EngineBridge::EngineBridge(std::unique_ptr<EngineApi> api, QObject* parent)
    : QObject(parent), m_api(std::move(api)), m_gate(std::make_shared<Gate>()), m_state(m_api->snapshot()) {
  m_gate->target = this;
  m_inbox = std::make_shared<Inbox>([gate = m_gate, this] { gate->post([this] { m_drainTimer.start(kDrainMs); }); });
  m_api->add_listener([inbox = m_inbox](const StoreEvent& event) { inbox->push(event); });

  m_drainTimer.setSingleShot(true);
  connect(&m_drainTimer, &QTimer::timeout, this, &EngineBridge::drainInbox);
  connect(&m_pollTimer, &QTimer::timeout, this, &EngineBridge::pollNow);
  connectReader();
}

EngineBridge::~EngineBridge() {
  if (m_api) shutDown()();
}

std::function<void()> EngineBridge::shutDown() {
  {
    const std::lock_guard lock(m_gate->mutex);
    m_gate->target = nullptr;
  }
  m_pollTimer.stop();
  m_drainTimer.stop();
  m_readerThread.quit();
  return [thread = &m_readerThread, api = std::shared_ptr<EngineApi>(std::move(m_api))]() mutable {
    thread->wait();
    api.reset();
  };
}

void EngineBridge::connectReader() {
  m_reader = new StoreReader(*m_api);
  m_reader->moveToThread(&m_readerThread);
  connect(&m_readerThread, &QThread::finished, m_reader, &QObject::deleteLater);
  connect(m_reader, &StoreReader::sessionsRead, this, &EngineBridge::sessionsChanged);
  connect(m_reader, &StoreReader::versionsRead, this, &EngineBridge::versionsChanged);
  connect(m_reader, &StoreReader::recordsRead, this, &EngineBridge::recordsArrived);
  connect(m_reader, &StoreReader::feedbackRead, this, &EngineBridge::feedbackArrived);
  connect(m_reader, &StoreReader::metricsRead, this, &EngineBridge::metricsArrived);
  connect(m_reader, &StoreReader::decisionsRead, this, &EngineBridge::decisionsArrived);
  connect(m_reader, &StoreReader::logRead, this, &EngineBridge::logArrived);
  connect(m_reader, &StoreReader::countsRead, this, &EngineBridge::countsChanged);
  connect(m_reader, &StoreReader::recordPageRead, this, &EngineBridge::recordPageArrived);
  connect(m_reader, &StoreReader::recordRead, this, &EngineBridge::recordArrived);
  m_readerThread.setObjectName(QStringLiteral("store reader"));
  m_readerThread.start();
}

void EngineBridge::start() {
  QMetaObject::invokeMethod(m_reader, &StoreReader::readAll, Qt::QueuedConnection);
  m_pollTimer.start(kPollMs);
  pollNow();
}

void EngineBridge::pollNow() {
  m_state = m_api->snapshot();
  Q_EMIT stateChanged();
}

void EngineBridge::drainInbox() {
  Inbox::Drained drained = m_inbox->drain();
  if (drained.touched[static_cast<std::size_t>(EventKind::kSettings)]) Q_EMIT settingsChanged();
  QMetaObject::invokeMethod(
      m_reader, [reader = m_reader, drained = std::move(drained)] { reader->readTouched(drained); }, Qt::QueuedConnection);
}

quint64 EngineBridge::submit(Command command, QObject* context, std::function<void(const CommandOutcome&)> done) {
  ++m_pending;
  // The engine calls back on a thread of its own: hop to the GUI thread through this object, which may be gone by then.
  const QPointer<QObject> guard(context);
  return m_api->submit(std::move(command), [this, gate = m_gate, guard, done = std::move(done)](const CommandOutcome& outcome) {
    gate->post([this, guard, done, outcome] {
      --m_pending;
      pollNow();
      if (guard && done) done(outcome);
    });
  });
}

quint64 EngineBridge::requestRecordPage(const RecordFilter& filter, qint64 beforeSeq, int limit) {
  const quint64 request = ++m_nextRequest;
  QMetaObject::invokeMethod(
      m_reader, [reader = m_reader, request, filter, beforeSeq, limit] { reader->readRecordPage(request, filter, beforeSeq, limit); },
      Qt::QueuedConnection);
  return request;
}

quint64 EngineBridge::requestRecord(const RecordId& id) {
  const quint64 request = ++m_nextRequest;
  QMetaObject::invokeMethod(
      m_reader, [reader = m_reader, request, text = QString::fromStdString(id.text)] { reader->readRecord(request, text); },
      Qt::QueuedConnection);
  return request;
}

}  // namespace sluice::gui
