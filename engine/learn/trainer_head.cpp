// SPDX-License-Identifier: GPL-3.0-or-later
// Where the head stands: marks, checkpoints, restoring after a stop or a crash.
#include <charconv>
#include <filesystem>
#include <limits>
#include <map>

#include "base/fault.h"
#include "learn/candidate_folder.h"
#include "learn/trainer_core.h"

namespace sluice {
namespace {

constexpr int kAll = std::numeric_limits<int>::max();

std::optional<std::int64_t> to_integer(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::int64_t note(const CheckpointNotes& notes, const char* key, std::int64_t absent) {
  auto it = notes.find(key);
  return it == notes.end() ? absent : to_integer(it->second).value_or(absent);
}

std::string text_note(const CheckpointNotes& notes, const char* key) {
  auto it = notes.find(key);
  return it == notes.end() ? "" : it->second;
}

bool trains_the_head(const BatchRow& batch) { return !batch.inverted && !batch.records.empty() && batch.state != "discarded"; }

}  // namespace

std::string TrainerCore::mark_name() const { return "trainer.head." + std::to_string(options_.session.value); }

std::optional<TrainerCore::HeadMark> TrainerCore::read_mark() const {
  const std::optional<std::string> text = store_.value(mark_name());
  if (!text) return std::nullopt;
  const std::size_t space = text->find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto version = to_integer(text->substr(0, space)), batch = to_integer(text->substr(space + 1));
  if (!version || !batch) return std::nullopt;
  return HeadMark{VersionId(*version), *batch};
}

Status TrainerCore::write_mark(const HeadMark& mark) {
  SLUICE_RETURN_IF_ERROR(
      store_.put_value(mark_name(), std::to_string(mark.version.value) + " " + std::to_string(mark.after_batch)));
  head_ = mark;
  status_.head_version = mark.version;
  return Status::ok_status();
}

// The newest that is done with: one formed before a stop or a failure in the midst of its step is still to be trained on, on
// whatever head follows, for its records belong to no other batch.
std::int64_t TrainerCore::newest_batch() const {
  const BatchId newest = store_.last_settled_batch(options_.session);
  return newest.valid() ? newest.value : 0;
}

// The mean of the rewards belongs to the stream, not to the head: after a reject the answers go on coming from the version in
// service, while its checkpoint's mean ends with the answers that made it. The checkpoint's counts before a session's first batch.
Result<Baseline> TrainerCore::newest_baseline(const std::string& at_checkpoint) const {
  if (const auto batch = store_.last_batch_with_baseline(options_.session)) return baseline_after(*batch);
  return at_checkpoint.empty() ? Baseline() : Baseline::parse(at_checkpoint);
}

Status TrainerCore::load_head(VersionId version) {
  refresh_lineage();
  const VersionRow* row = lineage_.find(version);
  if (row == nullptr) return not_found("there is no adapter version " + std::to_string(version.value));
  std::string sums;
  if (version == kBaseVersion) {
    SLUICE_RETURN_IF_ERROR(runner_.reset_to_base(options_.settings.seed));
  } else {
    SLUICE_ASSIGN_OR_RETURN(const CheckpointNotes notes, runner_.load(store_.adapter_folder(version)));
    sums = text_note(notes, "baseline");
  }
  SLUICE_ASSIGN_OR_RETURN(baseline_, newest_baseline(sums));
  head_step_ = checkpoint_step_ = row->head_step;
  status_.head_step = head_step_;
  brakes_.reset();
  extension_ = 0;
  return Status::ok_status();
}

// What the head leaves behind unmeasured must not come into service later: a step may end, and write its candidate, after the
// decision that gave its line up and before the trainer hears of it.
Status TrainerCore::give_up_line(VersionId head, VersionId target) {
  refresh_lineage();
  for (const VersionRow& row : store_.versions()) {
    const bool waits = row.state == VersionState::kCandidate || row.state == VersionState::kEvaluating;
    if (!waits || !lineage_.descends(head, row.id) || lineage_.descends(target, row.id)) continue;
    const Status done = store_.set_version_state(row.id, VersionState::kSuperseded);
    if (!done.ok() && done.code() != Code::kConflict) return done;  // conflict: it was decided on meanwhile
  }
  return Status::ok_status();
}

Status TrainerCore::move_head(VersionId target) {
  SLUICE_RETURN_IF_ERROR(load_head(target));
  SLUICE_RETURN_IF_ERROR(give_up_line(head_.version, target));
  last_batch_ = newest_batch();
  SLUICE_RETURN_IF_ERROR(write_mark({target, last_batch_}));
  log_->info("train", "The head now stands at version " + std::to_string(target.value));
  return Status::ok_status();
}

// A checkpoint whose row was stored just before a crash is newer than the mark.
Status TrainerCore::advance_mark(HeadMark& mark) {
  while (true) {
    const VersionRow* newest = nullptr;
    const std::vector<VersionRow> rows = store_.versions();
    for (const VersionRow& row : rows) {
      if (row.parent == mark.version && row.session == options_.session && row.origin == "step" && row.label.empty() &&
          row.id > mark.version && row.state != VersionState::kPruned) {
        newest = &row;
      }
    }
    if (newest == nullptr) return Status::ok_status();
    SLUICE_ASSIGN_OR_RETURN(const CheckpointNotes notes, runner_.load(store_.adapter_folder(newest->id)));
    const std::int64_t last = note(notes, "last_batch", 0);
    if (last <= mark.after_batch) return Status::ok_status();
    mark = {newest->id, last};
  }
}

// A decision that the trainer did not live to hear of: between the head and the line in service lies a version that was
// rejected or taken out of service, or the version in service is on another line.
bool TrainerCore::line_was_left(VersionId head) const {
  const VersionId serving = store_.serving_version();
  if (!lineage_.descends(head, serving)) return true;
  for (const VersionRow* row = lineage_.find(head); row != nullptr && row->id != serving; row = lineage_.find(row->parent)) {
    if (row->state == VersionState::kRejected || row->state == VersionState::kQuarantined ||
        row->state == VersionState::kRetired) {
      return true;
    }
  }
  return false;
}

Status TrainerCore::restore() {
  const std::string adapters = std::filesystem::path(store_.adapter_folder(kBaseVersion)).parent_path().string();
  remove_unfinished(adapters);
  SLUICE_RETURN_IF_ERROR(register_written());
  refresh_lineage();
  std::optional<HeadMark> mark = read_mark();
  if (mark) {
    SLUICE_RETURN_IF_ERROR(advance_mark(*mark));
    if (line_was_left(mark->version)) {
      SLUICE_RETURN_IF_ERROR(give_up_line(mark->version, store_.serving_version()));
      mark.reset();
    }
  }
  if (!mark) mark = HeadMark{store_.serving_version(), newest_batch()};
  Status loaded = load_head(mark->version);
  if (!loaded.ok() && mark->version != store_.serving_version()) {
    notice("The head's checkpoint cannot be used (" + loaded.message() + "): learning goes on from the version in service",
           "version:" + std::to_string(mark->version.value));
    mark = HeadMark{store_.serving_version(), newest_batch()};
    loaded = load_head(mark->version);
  }
  SLUICE_RETURN_IF_ERROR(loaded);
  last_batch_ = mark->after_batch;
  SLUICE_RETURN_IF_ERROR(write_mark(*mark));
  return repeat_batches();
}

std::optional<RecordRow> TrainerCore::remembered(const RecordId& id) const {
  std::optional<RecordRow> record = store_.record(id);
  if (record && record->token_ids.empty()) record.reset();
  return record;
}

// A stored batch once more, without what was forgotten since on somebody's wish; nothing where all of it was.
Result<std::optional<TrainBatch>> TrainerCore::tensors_of(const BatchRow& batch) {
  const std::size_t n = batch.records.size();
  std::vector<RecordRow> records;
  records.reserve(n);  // the items point into it
  std::vector<PackItem> items;
  for (std::size_t i = 0; i < n; ++i) {
    std::optional<RecordRow> record = remembered(batch.records[i]);
    if (!record) continue;
    records.push_back(std::move(*record));
    const RecordRow& kept = records.back();
    const int age = lineage_.age(kept.version, head_.version, head_step_).value_or(0);
    items.push_back({&kept, batch.advantages[i], batch.weights[i], age, visible_when_used(kept)});
  }
  if (items.size() < n) {
    log_->info("train", "Batch " + std::to_string(batch.id.value) + " is repeated without " + std::to_string(n - items.size()) +
                            " of its " + std::to_string(n) + " records: they were redacted or deleted");
  }
  if (items.empty()) return std::optional<TrainBatch>();
  SLUICE_ASSIGN_OR_RETURN(TrainBatch tensors, pack(items));
  return std::optional<TrainBatch>(std::move(tensors));
}

Status TrainerCore::repeat_batches() {
  std::map<BatchId, StepRow> steps;
  for (StepRow& row : store_.steps(options_.session, 0, kAll)) steps.emplace(row.batch, std::move(row));
  for (const BatchRow& batch : store_.batches(options_.session, head_.after_batch, kAll)) {
    if (!trains_the_head(batch)) continue;
    refresh_lineage();
    SLUICE_ASSIGN_OR_RETURN(const std::optional<TrainBatch> tensors, tensors_of(batch));
    if (!tensors) continue;
    SLUICE_ASSIGN_OR_RETURN(Outcome outcome, train(batch, *tensors, 0));
    auto done = steps.find(batch.id);
    if (done == steps.end()) {
      SLUICE_RETURN_IF_ERROR(finish(outcome, batch));
      continue;
    }
    const VersionId planned = done->second.candidate;
    const bool usable = planned.valid() && lineage_.find(planned) == nullptr &&
                        !std::filesystem::exists(store_.adapter_folder(planned));
    SLUICE_RETURN_IF_ERROR(maybe_candidate(done->second.id, usable ? planned : VersionId()));
  }
  return Status::ok_status();
}

CheckpointNotes TrainerCore::notes_for(VersionId version, StepId step) const {
  return {{"version", std::to_string(version.value)},
          {"session", std::to_string(options_.session.value)},
          {"name", options_.adapter_name},
          {"parent", std::to_string(head_.version.value)},
          {"head_step", std::to_string(head_step_)},
          {"step", std::to_string(step.value)},
          {"last_batch", std::to_string(last_batch_)},
          {"baseline", baseline_.serialise()}};
}

Status TrainerCore::write_candidate(VersionId version, StepId step, const std::string& label) {
  CheckpointNotes notes = notes_for(version, step);
  if (!label.empty()) notes["label"] = label;
  VersionRow row;
  row.id = version;
  row.parent = head_.version;
  row.head_step = head_step_;
  row.step = step;
  row.label = label;
  SLUICE_RETURN_IF_ERROR(write_version(row, notes));
  checkpoint_step_ = head_step_;
  SLUICE_RETURN_IF_ERROR(write_mark({version, last_batch_}));
  fault_point("candidate_marked");
  if (callbacks_.on_candidate) callbacks_.on_candidate(version);
  return Status::ok_status();
}

Status TrainerCore::write_version(const VersionRow& row, const CheckpointNotes& notes) {
  SLUICE_ASSIGN_OR_RETURN(const SavedAdapter saved,
                          write_adapter_folder(store_.adapter_folder(row.id), [&](const std::string& folder) {
                            return runner_.save(folder, notes);
                          }));
  VersionRow full = row;
  full.name = options_.adapter_name;
  full.session = options_.session;
  full.state = VersionState::kCandidate;
  full.origin = "step";
  full.content_hash = saved.content_hash;
  full.bytes = saved.bytes;
  full.rank = saved.rank;
  SLUICE_RETURN_IF_ERROR(store_.add_version(full));
  fault_point("candidate_stored");
  return Status::ok_status();
}

// Folders that were renamed into place just before a crash get their row now.
Status TrainerCore::register_written() {
  refresh_lineage();
  const std::string adapters = std::filesystem::path(store_.adapter_folder(kBaseVersion)).parent_path().string();
  for (VersionId id : written_versions(adapters)) {
    if (lineage_.find(id) != nullptr) continue;
    const std::string folder = store_.adapter_folder(id);
    Result<CheckpointNotes> notes = runner_.load(folder);
    if (!notes.ok() || note(*notes, "version", -1) != id.value ||
        note(*notes, "session", -1) != options_.session.value) {
      log_->warning("train", "The folder " + folder + " belongs to no version and is left alone");
      continue;
    }
    SLUICE_ASSIGN_OR_RETURN(const SavedAdapter saved, describe_adapter(folder));
    VersionRow row;
    row.id = id;
    row.name = text_note(*notes, "name");
    row.parent = VersionId(note(*notes, "parent", 0));
    row.session = options_.session;
    row.origin = "step";
    row.label = text_note(*notes, "label");
    row.head_step = note(*notes, "head_step", 0);
    row.step = StepId(note(*notes, "step", -1));
    row.content_hash = saved.content_hash;
    row.bytes = saved.bytes;
    row.rank = options_.settings.lora.rank;
    SLUICE_RETURN_IF_ERROR(store_.add_version(row));
    log_->info("train", "Registered version " + std::to_string(id.value) + ", written before the last stop");
  }
  return Status::ok_status();
}

}  // namespace sluice
