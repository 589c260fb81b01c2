// SPDX-License-Identifier: GPL-3.0-or-later
// Reads rows from the store on its own thread and delivers them in slices to the GUI thread. Append-only streams (records,
// feedback, metrics, decisions, steps, log) are read after the last row delivered; versions and sessions are small and come
// whole. Records come without token ids and log-probabilities: no widget shows them, and they are most of a record. Lives in
// one QThread; talk to it by signals and queued calls only.
#pragma once

#include <QObject>
#include <memory>
#include <vector>

#include "bridge/engine_api.h"
#include "bridge/inbox.h"

namespace sluice::gui {

template <class Row>
using Rows = std::shared_ptr<const std::vector<Row>>;

class StoreReader : public QObject {
  Q_OBJECT
 public:
  explicit StoreReader(EngineApi& api, QObject* parent = nullptr);

 public Q_SLOTS:
  void readAll();                       // first fill
  void readTouched(Inbox::Drained drained);
  // One page for a table: request number comes back with the rows.
  void readRecordPage(quint64 request, sluice::RecordFilter filter, qint64 beforeSeq, int limit);
  void readRecord(quint64 request, QString recordId);

 Q_SIGNALS:
  void sessionsRead(sluice::gui::Rows<sluice::SessionRow> rows);
  void versionsRead(sluice::gui::Rows<sluice::VersionRow> rows);
  void recordsRead(sluice::gui::Rows<sluice::RecordRow> rows);       // new ones, oldest first
  void feedbackRead(sluice::gui::Rows<sluice::FeedbackRow> rows);     // new ones, and again those of a record where one changed
  void metricsRead(sluice::gui::Rows<sluice::MetricRow> rows);
  void decisionsRead(sluice::gui::Rows<sluice::DecisionRow> rows);
  void logRead(sluice::gui::Rows<sluice::LogRow> rows);
  void countsRead(sluice::StoreCounts counts);
  void recordPageRead(quint64 request, sluice::gui::Rows<sluice::RecordRow> rows);
  // With the record's feedback; empty rows when there is no such record.
  void recordRead(quint64 request, sluice::gui::Rows<sluice::RecordRow> record, sluice::gui::Rows<sluice::FeedbackRow> feedback);

 private:
  void readRecords();
  void readFeedback(const Inbox::Drained& drained);
  void readChangedFeedback(const Inbox::Drained& drained);
  void readMetrics();
  void readDecisions();
  void readLog();
  void readCounts();

  static constexpr int kPage = 500;
  static constexpr qint64 kFirstRecords = 5000;

  EngineApi& m_api;
  qint64 m_lastRecord = 0;
  qint64 m_lastFeedback = 0;
  qint64 m_lastMetric = 0;
  qint64 m_lastDecision = 0;
  qint64 m_lastLog = 0;
};

}  // namespace sluice::gui

Q_DECLARE_METATYPE(sluice::gui::Inbox::Drained)
Q_DECLARE_METATYPE(sluice::RecordFilter)
Q_DECLARE_METATYPE(sluice::StoreCounts)
