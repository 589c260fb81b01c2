// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/feedback_api.h"

#include <limits>
#include <variant>

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/api_json.h"
#include "http/fields.h"
#include "text/utf8.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMaxBatch = 1000;

template <class E>
std::optional<E> parse_name(const std::string& text, const char* (*name)(E), int count) {
  for (int i = 0; i < count; ++i) {
    if (text == name(static_cast<E>(i))) return static_cast<E>(i);
  }
  return std::nullopt;
}

// Counts characters, as people do; the JSON fields count bytes.
std::string characters(Fields& f, const char* name, std::size_t most) {
  std::string text = f.text(name);
  if (count_code_points(text) > most) f.refuse(name, "must have at most " + std::to_string(most) + " characters");
  return text;
}

struct PostedLabel {
  FeedbackRow row;
  bool by_text = false;
  std::string prompt, completion;
};

void read_match(Fields& f, PostedLabel* label) {
  const Json* match = f.find("match");
  if (match == nullptr) return;
  if (f.has("record_id")) return f.refuse("match", "can't stand beside record_id: one of them names the answer");
  if (!match->is_object()) return f.refuse("match", "must be an object of prompt and completion");
  Fields inner(*match, "match.");
  label->by_text = true;
  label->prompt = inner.text("prompt");
  label->completion = inner.text("completion");
  for (const char* name : {"prompt", "completion"}) {
    if (!inner.has(name)) inner.refuse(name, "must be the text as it was sent or shown");
  }
  f.adopt(inner);
}

void read_value(Fields& f, FeedbackRow* row) {
  const auto kind = parse_name<FeedbackKind>(f.text("kind"), feedback_kind_name, 4);
  if (!kind) f.refuse("kind", "must be accept, reject, score or silent");
  row->kind = kind.value_or(FeedbackKind::kSilent);
  if (row->kind == FeedbackKind::kScore) {
    constexpr double kMost = std::numeric_limits<double>::max();
    if (!f.has("score")) f.refuse("score", "must be a number when kind is score");
    row->score = f.number("score", 0, -kMost, kMost);
  } else if (f.has("score")) {
    f.refuse("score", "needs kind to be score");
  }
}

// A label as posted; the record is not looked up yet.
std::variant<PostedLabel, ApiError> parse_feedback(const Json& body, const std::string& header_key) {
  Fields f(body);
  PostedLabel label;
  FeedbackRow& row = label.row;
  row.record.text = f.text("record_id", "", 64);
  read_match(f, &label);
  if (!label.by_text && !row.record.valid()) {
    f.refuse("record_id", "must be the id that came with the answer (X-Sluice-Record-Id)");
  }
  row.choice = static_cast<int>(f.integer("choice", 0, 0, 1023));
  read_value(f, &row);
  const auto source = parse_name<FeedbackSource>(f.text("source", "client"), feedback_source_name, 5);
  if (!source) f.refuse("source", "must be human, judge, verifier, client or persona");
  row.source = source.value_or(FeedbackSource::kClient);
  row.labeller = characters(f, "labeller", 128);
  row.reason = characters(f, "reason", 400);
  row.comment = characters(f, "comment", 4000);
  row.key = f.has("key") ? characters(f, "key", 128) : header_key;
  if (row.key.size() > 512) f.refuse("Idempotency-Key", "must have at most 128 characters");
  if (const Json* metadata = f.find("metadata")) {
    row.metadata_json = dump(*metadata);
    if (!metadata->is_object()) f.refuse("metadata", "must be an object");
    if (row.metadata_json.size() > 4096) f.refuse("metadata", "must have at most 4 KiB as JSON");
  }
  if (f.error()) return *f.error();
  return label;
}

Json outcome_json(const FeedbackOutcome& outcome) {
  const FeedbackRow& row = outcome.row;
  const bool record = row.record.valid();
  return {{"feedback_id", row.id.valid() ? Json(row.id.value) : Json()},
          {"record_id", record ? Json(row.record.text) : Json()},
          {"choice", row.choice},
          {"adapter", record ? Json(outcome.adapter_name) : Json()},
          {"version", record ? Json(outcome.version.value) : Json()},
          {"state", row.state},
          {"queue_position", outcome.queue_position}};
}

Json item_json(const LabelWriter::Outcome& outcome) {
  if (const auto* error = std::get_if<ApiError>(&outcome)) return Json::parse(error_json(*error), nullptr, false);
  return outcome_json(std::get<FeedbackOutcome>(outcome));
}

// Finds the record of a label by text. `says_something`: false where it is not to be stored.
std::optional<ApiError> complete_label(const LabelWriter& labels, PostedLabel* label, bool* says_something) {
  *says_something = true;
  if (!label->by_text) return std::nullopt;
  auto error = labels.find_by_text(&label->row, {text_digest(label->prompt)}, label->completion, false);
  *says_something = !label->row.shown.empty();
  return error;
}

}  // namespace

void FeedbackApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/feedback";
  table.add(Scope::kClient, "POST", base, [this](const HttpRequest& r, const Parts&) { return post_feedback(r); });
  table.add(Scope::kClient, "GET", base, [this](const HttpRequest& r, const Parts&) { return get_feedback(r); });
  table.add(Scope::kClient, "POST", base + "/batch",
            [this](const HttpRequest& r, const Parts&) { return post_feedback_batch(r); });
  table.add(Scope::kAdmin, "GET", base + "/unmatched", [this](const HttpRequest& r, const Parts&) { return unmatched(r); });
  table.add(Scope::kClient, "DELETE", base + "/*",
            [this](const HttpRequest&, const Parts& p) { return delete_feedback(p[0]); });
}

HttpReply FeedbackApi::post_feedback(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  auto parsed = parse_feedback(body, std::string(request.header("Idempotency-Key")));
  if (auto* error = std::get_if<ApiError>(&parsed)) return error_reply(*error);
  auto& label = std::get<PostedLabel>(parsed);
  bool says_something = true;
  if (auto error = complete_label(labels_, &label, &says_something)) return error_reply(*error);
  const LabelWriter::Outcome outcome = says_something ? labels_.write(label.row) : labels_.ignored(label.row);
  if (const auto* error = std::get_if<ApiError>(&outcome)) return error_reply(*error);
  return json_reply(outcome_json(std::get<FeedbackOutcome>(outcome)));
}

HttpReply FeedbackApi::post_feedback_batch(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  const auto items = body.find("items");
  if (items == body.end() || !items->is_array() || items->size() > kMaxBatch) {
    return error_reply(bad_value("items", "items must be a list of at most 1000 labels"));
  }
  Json results = Json::array();
  std::vector<FeedbackRow> rows;
  std::vector<std::size_t> places;
  for (const Json& item : *items) {
    results.push_back(nullptr);
    if (!item.is_object()) {
      results.back() = item_json(bad_value("items", "each of items must be an object"));
      continue;
    }
    auto parsed = parse_feedback(item, "");
    if (auto* error = std::get_if<ApiError>(&parsed)) {
      results.back() = item_json(*error);
      continue;
    }
    auto& label = std::get<PostedLabel>(parsed);
    bool says_something = true;
    if (auto error = complete_label(labels_, &label, &says_something)) return error_reply(*error);  // nothing is stored yet
    if (!says_something) {
      results.back() = item_json(labels_.ignored(label.row));
      continue;
    }
    places.push_back(results.size() - 1);
    rows.push_back(std::move(label.row));
  }
  const std::vector<LabelWriter::Outcome> outcomes = labels_.write(std::move(rows));
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto* error = std::get_if<ApiError>(&outcomes[i]);
    if (error != nullptr && error->status == 503) return error_reply(*error);  // nothing was stored: all may be sent again
    results[places[i]] = item_json(outcomes[i]);
  }
  return json_reply(Json{{"results", std::move(results)}});
}

HttpReply FeedbackApi::get_feedback(const HttpRequest& request) const {
  const auto it = request.query.find("record_id");
  if (it == request.query.end()) {
    return error_reply(bad_value("record_id", "record_id is missing: GET /sluice/v1/feedback?record_id=rec_..."));
  }
  if (!store_.record({it->second})) return error_reply(labels_.no_record({it->second}));
  Json data = Json::array();
  for (const FeedbackRow& row : store_.feedback_of({it->second})) data.push_back(feedback_json<Json>(row));
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}});
}

HttpReply FeedbackApi::unmatched(const HttpRequest& request) const {
  std::int64_t after = 0, limit = 100;
  for (const auto& error :
       {read_query(request, "after", 0, INT64_MAX, &after), read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  Json data = Json::array();
  for (const FeedbackRow& row : store_.unmatched_feedback(after, static_cast<int>(limit))) {
    data.push_back(feedback_json<Json>(row));
  }
  const bool more = static_cast<std::int64_t>(data.size()) == limit;
  const Json next = more ? data.back()["feedback_id"] : Json();
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}, {"next", next}});
}

HttpReply FeedbackApi::delete_feedback(const std::string& id) {
  const auto number = parse_number(id);
  const Result<FeedbackRow> row = number ? store_.retract_feedback(FeedbackId(*number), false)
                                         : Result<FeedbackRow>(not_found("There is no feedback " + excerpt(id)));
  if (!row.ok()) {
    ApiError error = api_error(row.status(), "feedback_consumed");
    if (row.code() == Code::kNotFound) error.code = "record_not_found";
    return error_reply(error);
  }
  return json_reply(feedback_json<Json>(*row));
}

}  // namespace sluice
