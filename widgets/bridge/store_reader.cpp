// SPDX-License-Identifier: GPL-3.0-or-later
#include "bridge/store_reader.h"

#include <algorithm>
#include <set>

namespace sluice::gui {
namespace {

template <class Row>
Rows<Row> share(std::vector<Row> rows) {
  return std::make_shared<const std::vector<Row>>(std::move(rows));
}

// Here, so that the GUI thread never copies what no widget shows.
Rows<RecordRow> shareShown(std::vector<RecordRow> rows) {
  for (RecordRow& row : rows) {
    row.prompt_ids = std::vector<std::int32_t>();  // `= {}` would keep the memory
    row.token_ids = std::vector<std::int32_t>();
    row.lp_full = std::vector<float>();
    row.lp_mu = std::vector<float>();
  }
  return share(std::move(rows));
}

}  // namespace

StoreReader::StoreReader(EngineApi& api, QObject* parent) : QObject(parent), m_api(api) {
  qRegisterMetaType<Inbox::Drained>();
  qRegisterMetaType<RecordFilter>();
  qRegisterMetaType<StoreCounts>();
  qRegisterMetaType<Rows<SessionRow>>("sluice::gui::Rows<sluice::SessionRow>");
  qRegisterMetaType<Rows<VersionRow>>("sluice::gui::Rows<sluice::VersionRow>");
  qRegisterMetaType<Rows<RecordRow>>("sluice::gui::Rows<sluice::RecordRow>");
  qRegisterMetaType<Rows<FeedbackRow>>("sluice::gui::Rows<sluice::FeedbackRow>");
  qRegisterMetaType<Rows<MetricRow>>("sluice::gui::Rows<sluice::MetricRow>");
  qRegisterMetaType<Rows<DecisionRow>>("sluice::gui::Rows<sluice::DecisionRow>");
  qRegisterMetaType<Rows<LogRow>>("sluice::gui::Rows<sluice::LogRow>");
}

void StoreReader::readAll() {
  // Of a long history only the newest records are shown at once; a page request finds the others.
  if (const auto newest = m_api.store().records({}, 0, 1); !newest.empty()) m_lastRecord = std::max<qint64>(0, newest.front().seq - kFirstRecords);
  Inbox::Drained everything;
  everything.touched.fill(true);
  readTouched(everything);
}

void StoreReader::readTouched(Inbox::Drained drained) {
  const auto touched = [&](EventKind kind) { return drained.touched[static_cast<std::size_t>(kind)]; };
  if (touched(EventKind::kSession)) Q_EMIT sessionsRead(share(m_api.store().sessions()));
  if (touched(EventKind::kVersion) || touched(EventKind::kServing) || touched(EventKind::kDecision)) {
    Q_EMIT versionsRead(share(m_api.store().versions()));
  }
  if (touched(EventKind::kRecord)) readRecords();
  if (touched(EventKind::kFeedback)) readFeedback(drained);
  if (touched(EventKind::kMetric) || touched(EventKind::kStep)) readMetrics();
  if (touched(EventKind::kDecision)) readDecisions();
  if (touched(EventKind::kLog)) readLog();
  const bool counted = touched(EventKind::kRecord) || touched(EventKind::kFeedback) || touched(EventKind::kStep);
  if (counted || touched(EventKind::kSession)) readCounts();
}

void StoreReader::readRecords() {
  for (;;) {
    auto rows = m_api.store().records_after(m_lastRecord, kPage);
    if (rows.empty()) return;
    m_lastRecord = rows.back().seq;
    const bool last = static_cast<int>(rows.size()) < kPage;
    Q_EMIT recordsRead(shareShown(std::move(rows)));
    if (last) return;
  }
}

// A label that was delivered before and changed since was taken back: rows after the last one don't tell of it.
void StoreReader::readChangedFeedback(const Inbox::Drained& drained) {
  if (drained.overflowed) {  // which ones is not known: all are read again
    m_lastFeedback = 0;
    return;
  }
  std::set<std::string> records;
  for (const StoreEvent& event : drained.events) {
    if (event.kind == EventKind::kFeedback && event.id <= m_lastFeedback && !event.text_id.empty()) records.insert(event.text_id);
  }
  std::vector<FeedbackRow> rows;
  for (const std::string& record : records) {
    for (FeedbackRow& row : m_api.store().feedback_of(RecordId{record})) rows.push_back(std::move(row));
  }
  if (!rows.empty()) Q_EMIT feedbackRead(share(std::move(rows)));
}

void StoreReader::readFeedback(const Inbox::Drained& drained) {
  readChangedFeedback(drained);
  for (;;) {
    auto rows = m_api.store().feedback_after(m_lastFeedback, kPage);
    if (rows.empty()) return;
    m_lastFeedback = rows.back().id.value;
    const bool last = static_cast<int>(rows.size()) < kPage;
    Q_EMIT feedbackRead(share(std::move(rows)));
    if (last) return;
  }
}

void StoreReader::readMetrics() {
  for (;;) {
    auto rows = m_api.store().metrics_after(m_lastMetric, kPage);
    if (rows.empty()) return;
    m_lastMetric = rows.back().seq;
    const bool last = static_cast<int>(rows.size()) < kPage;
    Q_EMIT metricsRead(share(std::move(rows)));
    if (last) return;
  }
}

void StoreReader::readDecisions() {
  for (;;) {
    auto rows = m_api.store().decisions(m_lastDecision, kPage);
    if (rows.empty()) return;
    m_lastDecision = rows.back().id.value;
    const bool last = static_cast<int>(rows.size()) < kPage;
    Q_EMIT decisionsRead(share(std::move(rows)));
    if (last) return;
  }
}

void StoreReader::readLog() {
  for (;;) {
    auto rows = m_api.store().log_after(m_lastLog, kPage);
    if (rows.empty()) return;
    m_lastLog = rows.back().seq;
    const bool last = static_cast<int>(rows.size()) < kPage;
    Q_EMIT logRead(share(std::move(rows)));
    if (last) return;
  }
}

// Of the newest session that is not ended, as its row says: the snapshot may be a moment behind the event that led here.
void StoreReader::readCounts() {
  SessionId open;
  for (const SessionRow& row : m_api.store().sessions()) {
    if (row.state != SessionState::kEnded) open = row.id;
  }
  Q_EMIT countsRead(m_api.store().counts(open));
}

void StoreReader::readRecordPage(quint64 request, RecordFilter filter, qint64 beforeSeq, int limit) {
  Q_EMIT recordPageRead(request, shareShown(m_api.store().records(filter, beforeSeq, limit)));
}

void StoreReader::readRecord(quint64 request, QString recordId) {
  std::vector<RecordRow> record;
  std::vector<FeedbackRow> feedback;
  const RecordId id{recordId.toStdString()};
  if (auto row = m_api.store().record(id)) {
    record.push_back(std::move(*row));
    feedback = m_api.store().feedback_of(id);
  }
  Q_EMIT recordRead(request, shareShown(std::move(record)), share(std::move(feedback)));
}

}  // namespace sluice::gui
