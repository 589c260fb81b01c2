// SPDX-License-Identifier: GPL-3.0-or-later
// What editors report of their completions. They know no record id: the record is found by prompt and text.
#include <variant>

#include <nlohmann/json.hpp>

#include "http/api_json.h"
#include "http/compat_api.h"

namespace sluice {
namespace {

using Json = nlohmann::json;
using Fields = FieldsOf<Json>;

constexpr std::size_t kMaxKey = 128, kMaxNote = 512;

// One completion that an editor offered, and what became of it.
struct EditorEvent {
  FeedbackRow row;
  std::vector<std::string> digests;  // of the prompt, in the forms a record may have it
  std::string completion;
  bool cache_hit = false;
};

void read_accepted(Fields& f, FeedbackRow* row) {
  const Json* accepted = f.find("accepted");
  if (accepted == nullptr) return f.refuse("accepted", "must be true, false or a number between 0 and 1");
  const double value = accepted->is_boolean() ? accepted->get<bool>() : f.number("accepted", 0, 0, 1);
  row->kind = value == 1 ? FeedbackKind::kAccept : value == 0 ? FeedbackKind::kReject : FeedbackKind::kScore;
  if (row->kind == FeedbackKind::kScore) row->score = value;
}

// What else the editor says, cut to a size; not the code itself.
std::string notes_of(const Json& body) {
  Json notes = Json::object();
  for (const char* name : {"filepath", "modelProvider", "modelName", "timestamp", "time", "uniqueId", "numLines"}) {
    const auto it = body.find(name);
    if (it == body.end() || it->is_null() || it->is_structured()) continue;
    notes[name] = it->is_string() ? Json(it->get_ref<const std::string&>().substr(0, kMaxNote)) : *it;
  }
  return notes.empty() ? std::string() : dump(notes);
}

// `without_text`: the editor was told to send no code, so there is nothing to find a record by.
std::variant<EditorEvent, ApiError> read_event(const Json& body, const std::string& prefix, bool without_text) {
  Fields f(body, prefix);
  EditorEvent event;
  const std::string id = f.text("completionId", "", kMaxKey);
  if (!id.empty()) event.row.key = "completion:" + id;
  read_accepted(f, &event.row);
  event.cache_hit = f.boolean("cacheHit", false);
  event.row.source = FeedbackSource::kClient;
  event.row.metadata_json = notes_of(body);
  if (!without_text) {
    for (const char* name : {"prompt", "completion"}) {
      if (!f.has(name)) f.refuse(name, "must be the text of it");
    }
    event.completion = f.text("completion");
    event.digests.push_back(text_digest(f.text("prompt")));
    if (f.has("prefix")) event.digests.push_back(text_digest(f.text("prefix"), f.text("suffix")));
  }
  if (f.error()) return *f.error();
  return event;
}

HttpReply submitted(const FeedbackOutcome& outcome) {
  const RecordId& record = outcome.row.record;
  return json_reply(Json{{"status", "submitted"},
                         {"message", "Training data submitted successfully"},
                         {"queue_position", outcome.queue_position},
                         {"sluice", {{"state", outcome.row.state}, {"record_id", record.valid() ? Json(record.text) : Json()}}}});
}

HttpReply take(const LabelWriter& labels, const Json& body, const std::string& prefix, bool without_text) {
  auto parsed = read_event(body, prefix, without_text);
  if (auto* error = std::get_if<ApiError>(&parsed)) return error_reply(*error);
  EditorEvent& event = std::get<EditorEvent>(parsed);
  if (auto error = labels.find_by_text(&event.row, event.digests, event.completion, event.cache_hit)) return error_reply(*error);
  if (event.row.shown.empty() && !without_text) return submitted(labels.ignored(event.row));
  const LabelWriter::Outcome outcome = labels.write(event.row);
  if (const auto* error = std::get_if<ApiError>(&outcome)) return error_reply(*error);
  return submitted(std::get<FeedbackOutcome>(outcome));
}

}  // namespace

void CompatApi::add_routes(RouteTable& table) {
  using Parts = RouteTable::Parts;
  table.add(Scope::kClient, "POST", "/api/training/submit",
            [this](const HttpRequest& r, const Parts&) { return editor_submit(r); });
  table.add(Scope::kClient, "POST", "/sluice/v1/hooks/continue",
            [this](const HttpRequest& r, const Parts&) { return editor_hook(r); });
  table.add(Scope::kClient, "POST", "/reef/report", [this](const HttpRequest& r, const Parts&) { return reef_report(r); });
}

HttpReply CompatApi::editor_submit(const HttpRequest& request) const {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  return take(labels_, body, "", false);
}

// {name, data, schema, level, profileId}; only the event "autocomplete" tells what became of a completion.
HttpReply CompatApi::editor_hook(const HttpRequest& request) const {
  Json body;
  if (auto error = parse_object(request, &body)) return error_reply(*error);
  Fields f(body);
  const std::string name = f.text("name", "", 256), level = f.text("level", "", 32);
  if (name.empty()) f.refuse("name", "must be the name of an event");
  const Json* data = f.find("data");
  if (name == "autocomplete" && (data == nullptr || !data->is_object())) f.refuse("data", "must be an object");
  if (f.error()) return error_reply(*f.error());
  if (name != "autocomplete") {
    FeedbackRow other;
    other.kind = FeedbackKind::kSilent;
    return submitted(labels_.ignored(other));
  }
  return take(labels_, *data, "data.", level == "noCode");
}

}  // namespace sluice
