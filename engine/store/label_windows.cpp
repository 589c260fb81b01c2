// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/label_windows.h"

#include <algorithm>

#include "store/desk.h"

namespace sluice {
namespace {

bool is_completion(const RecordRow& record) { return record.route == "completions" || record.route == "fim"; }

}  // namespace

std::int64_t record_window_us(const RecordRow& record, const LabelWindows& windows) {
  if (record.route == kDeskRoute) return windows.desk_us;
  if (!record.stream.empty() && record.holds) return windows.stream_us;
  return is_completion(record) ? windows.completion_us : windows.chat_us;
}

std::int64_t label_window_us(const RecordRow& record, FeedbackSource source, const LabelWindows& windows) {
  const bool kept = record.closes_us > 0;  // what the store wrote down when it came
  const std::int64_t own = kept ? record.closes_us - record.served_us : record_window_us(record, windows);
  switch (source) {
    case FeedbackSource::kHuman: return std::max(own, windows.desk_us);
    case FeedbackSource::kJudge: return std::max(own, windows.judge_us);
    case FeedbackSource::kVerifier:
    case FeedbackSource::kPersona: return std::max(own, windows.stream_us);
    case FeedbackSource::kClient: return own;
  }
  return own;
}

bool holds_stream(const RecordRow& record) {
  return record.route != kDeskRoute && ((record.holds && !record.stream.empty()) || is_completion(record));
}

}  // namespace sluice
