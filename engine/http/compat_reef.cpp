// SPDX-License-Identifier: GPL-3.0-or-later
// reef's reports: one score for the answers of a trajectory, named by the ids that came with them.
#include <variant>

#include <nlohmann/json.hpp>

#include "http/api_json.h"
#include "http/compat_api.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMaxReferences = 1000, kMaxId = 128, kMaxFeedback = 16'000, kMaxMetadata = 4096;

struct ReefReport {
  std::string id;                      // its own; given by the client or by us
  FeedbackRow label;
  std::vector<RecordId> references;
};

void read_references(Fields& f, ReefReport* report) {
  const Json* list = f.find("references");
  if (list == nullptr) return;
  if (!list->is_array() || list->size() > kMaxReferences) {
    return f.refuse("references", "must be a list of at most 1000 record ids");
  }
  for (const Json& item : *list) {
    if (!item.is_string() || item.get_ref<const std::string&>().empty()) {
      return f.refuse("references", "must hold record ids, which are strings");
    }
    report->references.push_back({item.get<std::string>()});
  }
}

std::variant<ReefReport, ApiError> read_report(const Json& body, const std::string& scenario) {
  Fields f(body);
  ReefReport report;
  FeedbackRow& label = report.label;
  if (f.has("score")) {
    constexpr double kMost = std::numeric_limits<double>::max();
    label.kind = FeedbackKind::kScore;
    label.score = f.number("score", 0, -kMost, kMost);
  } else {
    label.kind = FeedbackKind::kSilent;
  }
  label.source = FeedbackSource::kClient;
  label.comment = f.text("feedback", "", kMaxFeedback);
  read_references(f, &report);
  report.id = f.text("agent_record_id", "", kMaxId);
  const Json* metadata = f.find("metadata");
  if (metadata != nullptr && (!metadata->is_object() || dump(*metadata).size() > kMaxMetadata)) {
    f.refuse("metadata", "must be an object of at most 4 KiB as JSON");
  }
  if (!f.has("score") && label.comment.empty()) f.refuse("score", "must be a number where there is no feedback");
  if (f.error()) return *f.error();
  // The number of references is content too: the same report with another one more is another report.
  Json kept = {{"trajectory", report.references.size()}};
  if (!scenario.empty()) kept["scenario"] = scenario;
  if (metadata != nullptr) kept["metadata"] = *metadata;
  label.metadata_json = dump(kept);
  return report;
}

// One row per answer; one without a record when none is named, so that the report is kept.
std::vector<FeedbackRow> rows_of(const ReefReport& report) {
  std::vector<FeedbackRow> rows;
  for (std::size_t i = 0; i < std::max<std::size_t>(report.references.size(), 1); ++i) {
    FeedbackRow row = report.label;
    if (!report.references.empty()) row.record = report.references[i];
    row.key = "report:" + report.id + ":" + std::to_string(i);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace

HttpReply CompatApi::reef_report(const HttpRequest& request) const {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  std::string scenario(request.header("x-reef-scenario").substr(0, 128));
  auto parsed = read_report(body, scenario);
  if (auto* error = std::get_if<ApiError>(&parsed)) return error_reply(*error);
  ReefReport& report = std::get<ReefReport>(parsed);
  if (report.id.empty()) report.id = RecordId::make().text;
  const auto stored = labels_.write_together(rows_of(report));
  if (const auto* error = std::get_if<ApiError>(&stored)) return error_reply(*error);
  if (scenario.empty() && !report.references.empty()) {
    if (const auto record = store_.record(report.references.front())) scenario = record->stream;
  }
  Json states = Json::array();
  for (const FeedbackOutcome& one : std::get<std::vector<FeedbackOutcome>>(stored)) states.push_back(one.row.state);
  return json_reply(Json{{"agent_record_id", report.id},
                         {"scenario", scenario},
                         {"request_type", "report"},
                         {"sluice", {{"states", std::move(states)}}}});
}

}  // namespace sluice
