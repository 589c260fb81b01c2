// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/feedback_api.h"

#include <variant>

#include <nlohmann/json.hpp>

#include "http/fields.h"

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

// A label as posted; the record is not looked up yet.
std::variant<FeedbackRow, ApiError> parse_feedback(const Json& body, const std::string& header_key) {
  Fields f(body);
  FeedbackRow row;
  row.record.text = f.text("record_id", "", 64);
  if (!row.record.valid()) f.refuse("record_id", "must be the id that came with the answer (X-Sluice-Record-Id)");
  row.choice = static_cast<int>(f.integer("choice", 0, 0, 15));
  const auto kind = parse_name<FeedbackKind>(f.text("kind"), feedback_kind_name, 4);
  if (!kind) f.refuse("kind", "must be accept, reject, score or silent");
  row.kind = kind.value_or(FeedbackKind::kSilent);
  if (row.kind == FeedbackKind::kScore) {
    if (!f.has("score")) f.refuse("score", "must be a number when kind is score");
    row.score = f.number("score", 0, -1e9, 1e9);
  } else if (f.has("score")) {
    f.refuse("score", "needs kind to be score");
  }
  const auto source = parse_name<FeedbackSource>(f.text("source", "client"), feedback_source_name, 5);
  if (!source) f.refuse("source", "must be human, judge, verifier, client or persona");
  row.source = source.value_or(FeedbackSource::kClient);
  row.labeller = f.text("labeller", "", 128);
  row.reason = f.text("reason", "", 400);
  row.comment = f.text("comment", "", 4000);
  row.key = f.text("key", header_key, 128);
  if (row.key.size() > 128) f.refuse("key", "must have at most 128 bytes");
  if (const Json* metadata = f.find("metadata")) {
    row.metadata_json = dump(*metadata);
    if (!metadata->is_object()) f.refuse("metadata", "must be an object");
    if (row.metadata_json.size() > 4096) f.refuse("metadata", "must have at most 4 KiB as JSON");
  }
  if (f.error()) return *f.error();
  return row;
}

Json feedback_json(const FeedbackRow& row) {
  return {{"feedback_id", row.id.value},
          {"record_id", row.record.text},
          {"choice", row.choice},
          {"kind", feedback_kind_name(row.kind)},
          {"score", row.kind == FeedbackKind::kScore ? Json(row.score) : Json()},
          {"source", feedback_source_name(row.source)},
          {"labeller", row.labeller},
          {"reason", row.reason},
          {"comment", row.comment},
          {"metadata", row.metadata_json.empty() ? Json() : Json::parse(row.metadata_json, nullptr, false)},
          {"time_us", row.time_us},
          {"state", row.state},
          {"retracted", row.retracted}};
}

ApiError feedback_error(const Status& status, bool record_open) {
  ApiError error = api_error(status, "idempotency_conflict");
  if (status.code() == Code::kNotFound) {
    error.code = "record_not_found";
    error.param = "record_id";
    if (record_open) {
      error.status = 409;
      error.code = "record_open";
      error.message = "That answer is still being made: send the feedback again in a moment";
      error.retry_after_s = 1;
    }
  }
  return error;
}

// How many choices a record has; feedback on others is a mistake.
int choices_of(const Store& store, const RecordId& id) {
  const auto record = store.record(id);
  if (!record || record->sampling_json.empty()) return 1;
  const Json sampling = Json::parse(record->sampling_json, nullptr, false);
  if (!sampling.is_object()) return 1;
  const auto further = sampling.find("choices");  // index 1 on, of all prompts
  return further != sampling.end() && further->is_array() ? 1 + static_cast<int>(further->size()) : 1;
}

std::variant<Json, ApiError> store_feedback(Store& store, const Completions& completions, Metrics& metrics, const Json& body,
                                            const std::string& header_key) {
  auto parsed = parse_feedback(body, header_key);
  if (auto* error = std::get_if<ApiError>(&parsed)) return *error;
  FeedbackRow row = std::get<FeedbackRow>(std::move(parsed));
  if (row.choice > 0 && row.choice >= choices_of(store, row.record)) {
    ApiError error;
    error.status = 400;
    error.code = "invalid_value";
    error.param = "choice";
    error.message = "choice " + std::to_string(row.choice) + " is not among the answers of this record";
    return error;
  }
  const std::string record_id = row.record.text;
  const Result<FeedbackOutcome> outcome = store.add_feedback(std::move(row));
  if (!outcome.ok()) return feedback_error(outcome.status(), completions.is_open(record_id));
  const FeedbackRow& stored = outcome->row;
  metrics.count_feedback(feedback_source_name(stored.source), feedback_kind_name(stored.kind), stored.state);
  return Json{{"feedback_id", stored.id.value}, {"record_id", stored.record.text},
              {"choice", stored.choice},        {"adapter", outcome->adapter_name},
              {"version", outcome->version.value}, {"state", stored.state},
              {"queue_position", outcome->queue_position}};
}

}  // namespace

void FeedbackApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/feedback";
  table.add(Scope::kClient, "POST", base, [this](const HttpRequest& r, const Parts&) { return post_feedback(r); });
  table.add(Scope::kClient, "GET", base, [this](const HttpRequest& r, const Parts&) { return get_feedback(r); });
  table.add(Scope::kClient, "POST", base + "/batch",
            [this](const HttpRequest& r, const Parts&) { return post_feedback_batch(r); });
  table.add(Scope::kClient, "DELETE", base + "/*",
            [this](const HttpRequest&, const Parts& p) { return delete_feedback(p[0]); });
}

HttpReply FeedbackApi::post_feedback(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  auto result =
      store_feedback(store_, completions_, metrics_, body, std::string(request.header("Idempotency-Key")));
  if (auto* error = std::get_if<ApiError>(&result)) return error_reply(*error);
  HttpReply reply;
  reply.body = dump(std::get<Json>(result));
  return reply;
}

HttpReply FeedbackApi::post_feedback_batch(const HttpRequest& request) {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  const Json* items = f.find("items");
  if (items == nullptr || !items->is_array() || items->size() > kMaxBatch) {
    f.refuse("items", "must be a list of at most 1000 labels");
    return error_reply(*f.error());
  }
  Json results = Json::array();
  for (const Json& item : *items) {
    if (!item.is_object()) {
      ApiError error;
      error.status = 400;
      error.code = "invalid_value";
      error.param = "items";
      error.message = "each of items must be an object";
      results.push_back(Json::parse(error_json(error), nullptr, false));
      continue;
    }
    auto result = store_feedback(store_, completions_, metrics_, item, "");
    auto* error = std::get_if<ApiError>(&result);
    results.push_back(error != nullptr ? Json::parse(error_json(*error), nullptr, false) : std::get<Json>(std::move(result)));
  }
  HttpReply reply;
  reply.body = dump(Json{{"results", std::move(results)}});
  return reply;
}

HttpReply FeedbackApi::get_feedback(const HttpRequest& request) const {
  const auto it = request.query.find("record_id");
  ApiError error;
  if (it == request.query.end()) {
    error.status = 400;
    error.code = "invalid_value";
    error.param = "record_id";
    error.message = "record_id is missing: GET /sluice/v1/feedback?record_id=rec_...";
    return error_reply(error);
  }
  if (!store_.record({it->second})) {
    return error_reply(feedback_error(not_found("There is no record " + it->second), completions_.is_open(it->second)));
  }
  Json data = Json::array();
  for (const FeedbackRow& row : store_.feedback_of({it->second})) data.push_back(feedback_json(row));
  HttpReply reply;
  reply.body = dump(Json{{"object", "list"}, {"data", std::move(data)}});
  return reply;
}

HttpReply FeedbackApi::delete_feedback(const std::string& id) {
  const auto number = Fields::whole(Json::parse(id, nullptr, false));
  const Result<FeedbackRow> row = number ? store_.retract_feedback(FeedbackId(*number), false)
                                         : Result<FeedbackRow>(not_found("There is no feedback " + id));
  if (!row.ok()) {
    ApiError error = api_error(row.status(), "feedback_consumed");
    if (row.code() == Code::kNotFound) error.code = "record_not_found";
    return error_reply(error);
  }
  HttpReply reply;
  reply.body = dump(feedback_json(*row));
  return reply;
}

}  // namespace sluice
