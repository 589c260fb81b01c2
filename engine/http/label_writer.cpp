// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/label_writer.h"

#include <nlohmann/json.hpp>

#include "base/excerpt.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kMatchUs = 120 * kSecond, kCachedMatchUs = 3600 * kSecond;

// How many choices a record has; feedback on others is a mistake.
int choices_of(const RecordRow& record) {
  if (record.sampling_json.empty()) return 1;
  const Json sampling = Json::parse(record.sampling_json, nullptr, false);
  if (!sampling.is_object()) return 1;
  const auto further = sampling.find("choices");  // index 1 on, of all prompts
  return further != sampling.end() && further->is_array() ? 1 + static_cast<int>(further->size()) : 1;
}

}  // namespace

std::string_view trim_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

std::int64_t tokens_before(const Tokenizer& tokenizer, const std::vector<TokenId>& ids, std::size_t end) {
  std::size_t at = 0;
  std::int64_t n = 0;
  for (const TokenId id : ids) {
    if (at >= end) break;
    if (!tokenizer.is_special(id)) at += tokenizer.piece(id).size();
    ++n;
  }
  return n;
}

std::optional<ApiError> LabelWriter::check_record(const FeedbackRow& row) const {
  if (row.choice == 0 || !row.record.valid()) return std::nullopt;
  const auto record = store_.record(row.record);
  if (!record || row.choice < choices_of(*record)) return std::nullopt;  // a missing one is told with the write
  return bad_value("choice", "choice " + std::to_string(row.choice) + " is not among the answers of this record");
}

ApiError LabelWriter::no_record(const RecordId& id) const {
  if (!completions_.is_open(id.text)) {
    return make_error(404, "record_not_found", "There is no record " + excerpt(id.text) + ": use the id that came with the answer", "record_id");
  }
  ApiError error = make_error(409, "record_open", "That answer is still being made: send the feedback again in a moment", "record_id");
  error.retry_after_s = 1;
  return error;
}

ApiError LabelWriter::error_of(const Status& status, const FeedbackRow& row) const {
  return status.code() == Code::kNotFound ? no_record(row.record) : api_error(status, "idempotency_conflict");
}

void LabelWriter::count(const FeedbackRow& row) const {
  metrics_.count_feedback(feedback_source_name(row.source), feedback_kind_name(row.kind), row.state);
}

LabelWriter::Outcome LabelWriter::write(FeedbackRow row) const {
  std::vector<FeedbackRow> one;
  one.push_back(std::move(row));
  return std::move(write(std::move(one)).front());
}

std::vector<LabelWriter::Outcome> LabelWriter::write(std::vector<FeedbackRow> rows) const {
  std::vector<Outcome> out(rows.size(), ApiError());
  std::vector<FeedbackRow> good;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (auto error = check_record(rows[i])) {
      out[i] = *error;
      continue;
    }
    places.push_back(i);
    good.push_back(rows[i]);
  }
  if (good.empty()) return out;
  const auto results = store_.add_feedback(std::move(good));
  for (std::size_t k = 0; k < places.size(); ++k) {
    Outcome& place = out[places[k]];
    if (!results.ok()) {
      place = error_of(results.status(), rows[places[k]]);
    } else if (const Result<FeedbackOutcome>& one = (*results)[k]; !one.ok()) {
      place = error_of(one.status(), rows[places[k]]);
    } else {
      count(one->row);
      place = *one;
    }
  }
  return out;
}

std::variant<std::vector<FeedbackOutcome>, ApiError> LabelWriter::write_together(std::vector<FeedbackRow> rows) const {
  const auto results = store_.add_feedback_together(rows);
  if (!results.ok()) {
    for (const FeedbackRow& row : rows) {
      if (row.record.valid() && !store_.record(row.record)) return error_of(results.status(), row);
    }
    return error_of(results.status(), rows.front());
  }
  for (const FeedbackOutcome& one : *results) count(one.row);
  return *results;
}

std::optional<ApiError> LabelWriter::find_by_text(FeedbackRow* row, const std::vector<std::string>& digests,
                                                  const std::string& completion, bool cache_hit) const {
  row->by_text = true;
  row->shown = trim_space(completion);
  row->cache_hit = cache_hit;
  row->record = RecordId();
  row->prompt_digest = digests.empty() ? "" : digests.front();
  for (const std::string& digest : digests) {
    const auto record = store_.record_by_text(digest, row->shown, cache_hit ? kCachedMatchUs : kMatchUs);
    if (!record) continue;
    row->record = record->id;
    const std::string& raw = record->completion_text;
    const std::size_t end = raw.find(row->shown) + row->shown.size();
    row->shown_tokens = -1;
    if (end >= raw.size()) return std::nullopt;
    const auto service = control_.service();
    if (!service) return not_ready(ServingPhase::kLoading);
    row->shown_tokens = tokens_before(service->tokenizer(), record->token_ids, end);
    return std::nullopt;
  }
  return std::nullopt;
}

FeedbackOutcome LabelWriter::ignored(const FeedbackRow& row) const {
  FeedbackOutcome out;
  out.row = row;
  out.row.state = "ignored";
  count(out.row);
  return out;
}

}  // namespace sluice
