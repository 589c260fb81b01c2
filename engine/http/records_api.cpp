// SPDX-License-Identifier: GPL-3.0-or-later
#include "http/records_api.h"

#include <nlohmann/json.hpp>

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
               {"seed", r.seed},
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

}  // namespace

void RecordsApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  const std::string base = "/sluice/v1/records";
  table.add(Scope::kAdmin, "GET", base, [this](const HttpRequest& r, const Parts&) { return records(r); });
  table.add(Scope::kAdmin, "GET", base + "/*", [this](const HttpRequest&, const Parts& p) { return record(p[0]); });
}

HttpReply RecordsApi::records(const HttpRequest& request) const {
  std::int64_t session = -1, version = -1, after = 0, limit = 100;
  for (const auto& error : {read_query(request, "session", 0, INT64_MAX, &session),
                            read_query(request, "version", 0, INT64_MAX, &version),
                            read_query(request, "after", 0, INT64_MAX, &after),
                            read_query(request, "limit", 1, 1000, &limit)}) {
    if (error) return error_reply(*error);
  }
  const auto text = [&request](const char* name) {
    const auto it = request.query.find(name);
    return it == request.query.end() ? std::string() : it->second;
  };
  RecordFilter filter;
  filter.session = SessionId(session);
  if (version >= 0) filter.version = VersionId(version);
  filter.conversation = text("conversation");
  filter.label = text("label");
  filter.fate = text("state");
  filter.text = text("text");
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
  if (!row) return failed(not_found("There is no record " + id), "", "record_not_found");
  Json json = record_json(*row, true);
  Json labels = Json::array();
  for (const FeedbackRow& f : store_.feedback_of({id})) {
    labels.push_back({{"feedback_id", f.id.value},
                      {"choice", f.choice},
                      {"kind", feedback_kind_name(f.kind)},
                      {"source", feedback_source_name(f.source)},
                      {"state", f.state},
                      {"retracted", f.retracted},
                      {"reason", f.reason},
                      {"comment", f.comment},
                      {"time_us", f.time_us}});
  }
  json["feedback"] = std::move(labels);
  return json_reply(json);
}

}  // namespace sluice
