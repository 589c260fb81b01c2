// SPDX-License-Identifier: GPL-3.0-or-later
#include "runtime/bookkeeper.h"

#include <algorithm>

namespace sluice {
namespace {

constexpr int kPage = 500;
constexpr std::size_t kRejectionWindow = 50;   // gate.md §5
constexpr const char* kMark = "bookkeeper.mark";  // "<feedback id> <decision id>" already written as points

}  // namespace

Bookkeeper::Bookkeeper(Store& store, std::size_t most_open) : store_(store), most_open_(most_open) {
  if (const auto mark = store.value(kMark)) {
    const std::size_t space = mark->find(' ');
    if (space != std::string::npos) {
      written_feedback_ = std::strtoll(mark->c_str(), nullptr, 10);
      written_decision_ = std::strtoll(mark->c_str() + space, nullptr, 10);
    }
  }
}

void Bookkeeper::take_records() {
  for (;;) {
    const auto rows = store_.records_after(last_record_, kPage);
    for (const RecordRow& row : rows) {
      last_record_ = row.seq;
      if (row.purpose != Purpose::kLive || !row.session.valid() || !row.complete) continue;
      if (places_.emplace(row.id, Place{row.session, ++requests_[row.session]}).second) order_.push_back(row.id);
      while (order_.size() > most_open_) {
        places_.erase(order_.front());
        order_.pop_front();
      }
    }
    if (static_cast<int>(rows.size()) < kPage) return;
  }
}

void Bookkeeper::take_feedback() {
  for (;;) {
    const auto rows = store_.feedback_after(last_feedback_, kPage);
    // Only now: a record is stored before its verdict, so what these rows speak of is among the records by now, also where
    // both came between two looks.
    take_records();
    for (const FeedbackRow& row : rows) {
      last_feedback_ = row.id.value;
      if (row.kind != FeedbackKind::kAccept && row.kind != FeedbackKind::kReject) continue;
      const auto place = places_.find(row.record);
      if (place == places_.end()) continue;
      const Place request = place->second;
      places_.erase(place);  // the first verdict of a request makes its point
      if (row.id.value <= written_feedback_) continue;
      MetricRow metric;
      metric.session = request.session;
      metric.name = "accept";
      metric.x = static_cast<double>(request.number);
      metric.value = row.kind == FeedbackKind::kAccept ? 1 : 0;
      unwritten_.push_back(std::move(metric));
    }
    if (static_cast<int>(rows.size()) < kPage) return;
  }
}

void Bookkeeper::take_decisions() {
  for (;;) {
    const auto rows = store_.decisions(last_decision_, kPage);
    for (const DecisionRow& row : rows) {
      last_decision_ = row.id.value;
      if (row.kind != "gate" || row.verdict == Verdict::kHold) continue;
      verdicts_.push_back(row.verdict == Verdict::kReject);
      if (row.id.value <= written_decision_) continue;
      const std::size_t n = std::min(verdicts_.size(), kRejectionWindow);
      MetricRow metric;
      metric.session = row.session;
      metric.name = "rejection_rate";
      metric.x = static_cast<double>(requests_[row.session]);
      metric.value = static_cast<double>(std::count(verdicts_.end() - static_cast<std::ptrdiff_t>(n), verdicts_.end(), true)) /
                     static_cast<double>(n);
      unwritten_.push_back(std::move(metric));
    }
    if (static_cast<int>(rows.size()) < kPage) return;
  }
}

Status Bookkeeper::catch_up() {
  take_feedback();
  take_decisions();
  if (unwritten_.empty()) return {};
  // Points and mark together, so that no crash makes a point twice or leaves one out. On a full disk they wait here.
  SLUICE_RETURN_IF_ERROR(store_.add_metrics(
      unwritten_, std::pair(std::string(kMark), std::to_string(last_feedback_) + " " + std::to_string(last_decision_))));
  unwritten_.clear();
  written_feedback_ = std::max(written_feedback_, last_feedback_);
  written_decision_ = std::max(written_decision_, last_decision_);
  return {};
}

Status Bookkeeper::add_speed(SessionId session, double tokens_per_s) {
  MetricRow metric;
  metric.session = session;
  metric.name = "tokens_per_s";
  metric.x = static_cast<double>(requests_[session]);
  metric.value = tokens_per_s;
  return store_.add_metrics({std::move(metric)});
}

}  // namespace sluice
