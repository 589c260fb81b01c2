// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/records_api.h"

#include <nlohmann/json.hpp>

#include "base/excerpt.h"
#include "http/api_json.h"

namespace sluice {
namespace {

using Json = nlohmann::json;

Json record_json(const RecordRow& r, bool whole) {
  Json json = {{"seq", r.seq},
               {"record_id", r.id.text},
               {"session", id_json<Json>(r.session.value)},
               {"conversation", r.conversation},
               {"adapter", r.adapter_name},
               {"version", id_json<Json>(r.version.value)},
               {"purpose", r.purpose == Purpose::kLive ? "live" : r.purpose == Purpose::kGate ? "gate" : "probe"},
               {"split", r.split == Split::kTrain ? "train" : "held_out"},
               {"route", r.route},
               {"prompt", r.prompt_text},
               {"completion", r.completion_text},
               {"finish_reason", r.finish_reason},
               {"complete", r.complete},
               {"seed", static_cast<std::int64_t>(r.seed)},  // as it was sent: they are signed on the wire
               {"received_us", r.received_us},
               {"served_us", r.served_us},
               {"used_in_step", id_json<Json>(r.used_in_step.value)},
               {"fate", r.fate}};
  if (!whole) return json;
  json["messages"] = stored_json<Json>(r.prompt_json);
  json["prompt_token_ids"] = r.prompt_ids;
  json["token_ids"] = r.token_ids;
  json["lp_full"] = r.lp_full;
  json["lp_mu"] = r.lp_mu;
  json["group_key"] = r.group_key;
  json["sampling"] = stored_json<Json>(r.sampling_json);
  json["temperature"] = r.temperature;
  json["top_p"] = r.top_p;
  json["min_p"] = r.min_p;
  json["top_k"] = r.top_k;
  json["max_tokens"] = r.max_tokens;
  json["queue_us"] = r.queue_us;
  json["prefill_us"] = r.prefill_us;
  json["decode_us"] = r.decode_us;
  return json;
}

// What forgetting it does to training, in numbers and in words.
Json forgotten_json(const Store& store, const std::string& id, const ForgetOutcome& outcome, bool deleted) {
  Json learnt_by = Json::array();
  if (outcome.used_in_step.valid()) {
    for (const VersionRow& v : store.versions()) {
      if (v.session == outcome.session && v.step.valid() && v.step.value >= outcome.used_in_step.value) {
        learnt_by.push_back(v.id.value);
      }
    }
  }
  const std::string training =
      outcome.used_in_step.valid()
          ? "Step " + std::to_string(outcome.used_in_step.value) +
                " trained on it. The versions in learnt_by may hold what they learnt from it: roll back to an older one "
                "to serve without it"
      : outcome.was_waiting ? "It waited for the next batch and will not be trained on"
                            : "It was not trained on and never will be";
  return {{"record_id", id},
          {deleted ? "deleted" : "redacted", true},
          {"feedback", outcome.feedback},
          {"used_in_step", id_json<Json>(outcome.used_in_step.value)},
          {"learnt_by", std::move(learnt_by)},
          {"training", training}};
}

HttpReply not_forgotten(const Status& status, const std::string& id, const Completions& completions) {
  if (status.code() != Code::kNotFound || !completions.is_open(id)) return failed(status, "illegal_transition", "record_not_found");
  ApiError error = api_error(conflict("That answer is still being made: try again in a moment"), "record_open");
  error.retry_after_s = 1;
  return error_reply(error);
}

}  // namespace

void RecordsApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/records";
  table.add(Scope::kAdmin, "GET", base, [this](const HttpRequest& r, const Parts&) { return records(r); });
  table.add(Scope::kAdmin, "GET", base + "/*", [this](const HttpRequest&, const Parts& p) { return record(p[0]); });
  table.add(Scope::kAdmin, "DELETE", base + "/*", [this](const HttpRequest&, const Parts& p) { return remove(p[0]); });
  table.add(Scope::kAdmin, "POST", base + "/*/redact", [this](const HttpRequest&, const Parts& p) { return redact(p[0]); });
}

HttpReply RecordsApi::records(const HttpRequest& request) const {
  std::int64_t session = -1, version = -1, after = 0, limit = 100;
  for (const auto& error : {read_query(request, "session", 0, INT64_MAX, &session),
                            read_query(request, "version", 0, INT64_MAX, &version),
                            read_query(request, "after", 0, INT64_MAX, &after),
                            read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  const std::string label = query_text(request, "label");
  if (!label.empty() && label != "accept" && label != "reject" && label != "none") {
    return error_reply(bad_value("label", "label must be accept, reject or none"));
  }
  RecordFilter filter;
  filter.session = SessionId(session);
  if (version >= 0) filter.version = VersionId(version);
  filter.conversation = query_text(request, "conversation");
  filter.label = label;
  filter.fate = query_text(request, "state");
  filter.text = query_text(request, "text");
  Json data = Json::array();
  std::int64_t last = 0;
  for (const RecordRow& row : store_.records(filter, after, static_cast<int>(limit))) {
    last = row.seq;
    data.push_back(record_json(row, false));
  }
  const bool more = static_cast<std::int64_t>(data.size()) == limit;
  return json_reply(Json{{"object", "list"}, {"data", std::move(data)}, {"next", more ? Json(last) : Json()}});
}

HttpReply RecordsApi::record(const std::string& id) const {
  const auto row = store_.record({id});
  if (!row) return failed(not_found("There is no record " + excerpt(id)), "", "record_not_found");
  Json json = record_json(*row, true);
  Json labels = Json::array();
  for (const FeedbackRow& label : store_.feedback_of({id})) labels.push_back(feedback_json<Json>(label));
  json["feedback"] = std::move(labels);
  return json_reply(json);
}

HttpReply RecordsApi::redact(const std::string& id) {
  const Result<ForgetOutcome> done = store_.redact_record({id});
  return done.ok() ? json_reply(forgotten_json(store_, id, *done, false)) : not_forgotten(done.status(), id, completions_);
}

HttpReply RecordsApi::remove(const std::string& id) {
  const Result<ForgetOutcome> done = store_.delete_record({id});
  return done.ok() ? json_reply(forgotten_json(store_, id, *done, true)) : not_forgotten(done.status(), id, completions_);
}

}  // namespace sluice
