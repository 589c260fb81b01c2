// SPDX-License-Identifier: GPL-3.0-or-later
// Writes of feedback (serving.md §2.2).
#include <cmath>

#include "base/sha256.h"
#include "store/store_impl.h"

namespace sluice {
namespace {

// A label that is not taken back and has not been replaced by a newer one of its source.
constexpr const char* kCurrent = "retracted = 0 AND state <> 'replaced'";

bool same_label(const FeedbackRow& a, const FeedbackRow& b) {
  return a.record == b.record && a.choice == b.choice && a.source == b.source && a.labeller == b.labeller &&
         a.kind == b.kind && (a.kind != FeedbackKind::kScore || a.score == b.score);
}

// Under one key. What names its record by text is compared by that text: the record may be found no more, and what else an
// editor sends differs between its ways to send it.
bool same_content(const FeedbackRow& a, const FeedbackRow& b) {
  if (a.by_text && b.by_text) {
    return a.kind == b.kind && (a.kind != FeedbackKind::kScore || a.score == b.score) && a.shown == b.shown &&
           a.prompt_digest == b.prompt_digest;
  }
  return same_label(a, b) && a.reason == b.reason && a.comment == b.comment && a.metadata_json == b.metadata_json;
}

Status check_label(const FeedbackRow& row) {
  if (row.choice < 0) return invalid_argument("choice must be 0 or more, not " + std::to_string(row.choice));
  if (row.kind == FeedbackKind::kScore && !std::isfinite(row.score)) {
    return invalid_argument("score must be a finite number");
  }
  return Status();
}

// The row that `row` repeats, if any: same key, or an exact resend of the source's current label.
Result<std::optional<FeedbackRow>> find_duplicate(Database& db, const FeedbackRow& row) {
  if (!row.key.empty()) {
    auto stored = query_row<FeedbackRow>(db, "WHERE key = ?", row.key);
    if (stored && !same_content(*stored, row)) {
      return conflict("The key " + row.key + " was used for other feedback (id " + std::to_string(stored->id.value) +
                      "): use a new key for a new label");
    }
    return stored;
  }
  if (!row.record.valid()) return std::optional<FeedbackRow>();
  auto stored = query_row<FeedbackRow>(
      db, "WHERE record = ? AND choice = ? AND source = ? AND " + std::string(kCurrent) + " ORDER BY id DESC LIMIT 1",
      row.record, row.choice, row.source);
  if (stored && same_label(*stored, row)) return stored;
  return std::optional<FeedbackRow>();
}

// Only `waiting` trains.
std::string state_of(Database& db, const RecordRow& record, const FeedbackRow& row, const LabelWindows& windows,
                     std::int64_t now_us) {
  if (record.split == Split::kHeldOut) return "held_out";
  if (record.purpose != Purpose::kLive || record.token_ids.empty() || !record.session.valid()) return "ignored";
  // What was cut off trains only where the label says which text was seen.
  if (!record.complete && !row.by_text) return "ignored";
  if (row.choice > 0) return "ignored";
  const std::string& fate = record.fate;
  if (fate == "batched" || fate == "trained") return "consumed";
  if (fate == "late" || fate == "too_old") return "late";
  if (!fate.empty() && fate != "waiting" && fate != "no_event" && fate != "infra") return "ignored";
  if (now_us - record.served_us > label_window_us(record, row.source, windows)) return "late";
  const auto session = query_value(db, std::string(), "SELECT state FROM session WHERE id = ?", record.session);
  return session == "ended" ? "late" : "waiting";
}

std::int64_t queue_length(Database& db, SessionId session) {
  return query_value(db, std::int64_t{0}, "SELECT count(*) FROM record WHERE session = ? AND fate = 'waiting'", session);
}

void set_fate(Tx& tx, const RecordRow& record, const char* fate) {
  run(tx.db, "UPDATE record SET fate = ? WHERE seq = ?", fate, record.seq);
  tx.announce(EventKind::kRecord, record.seq, record.id.text);
}

void store_new(Tx& tx, const std::optional<RecordRow>& record, const LabelWindows& windows, FeedbackRow& row) {
  row.time_us = tx.now_us;
  row.retracted = false;
  if (record) {
    row.state = state_of(tx.db, *record, row, windows, tx.now_us);
  } else {
    row.state = row.by_text ? "unmatched" : "ignored";
  }
  if (row.state == "waiting") {
    run(tx.db,
        "UPDATE feedback SET state = 'replaced' WHERE record = ? AND choice = ? AND source = ? AND state = 'waiting'",
        row.record, row.choice, row.source);
    if (record->fate != "waiting") set_fate(tx, *record, "waiting");
  }
  row.id = FeedbackId(next_number<FeedbackRow>(tx.db));
  insert(tx.db, row);
  tx.announce(EventKind::kFeedback, row.id.value, row.record.text);
}

// Fails before it writes anything, so that a failed one of many leaves no trace.
Result<FeedbackOutcome> add_one(Tx& tx, FeedbackRow row, const LabelWindows& windows) {
  FeedbackOutcome out;
  SLUICE_RETURN_IF_ERROR(check_label(row));
  row.id = FeedbackId();
  SLUICE_ASSIGN_OR_RETURN(auto duplicate, find_duplicate(tx.db, row));
  const RecordId named = duplicate ? duplicate->record : row.record;
  std::optional<RecordRow> record;
  if (named.valid()) {
    record = query_row<RecordRow>(tx.db, "WHERE id = ?", named);
    if (!record) return not_found("There is no record " + named.text + ": use the id that came with the answer");
    out.version = record->version;
    out.adapter_name = record->adapter_name;
  }
  if (duplicate) {
    out.row = std::move(*duplicate);
    out.row.state = "duplicate";
  } else {
    store_new(tx, record, windows, row);
    out.row = std::move(row);
  }
  if (record) out.queue_position = queue_length(tx.db, record->session);
  return out;
}

}  // namespace

std::string text_digest(std::string_view prompt) { return sha256(prompt); }

std::string text_digest(std::string_view prefix, std::string_view suffix) {
  Sha256 hash;
  hash.update("fim " + std::to_string(prefix.size()) + " ");
  hash.update(prefix);
  hash.update(suffix);
  return to_hex(hash.digest());
}

Result<FeedbackOutcome> Store::add_feedback(FeedbackRow row) {
  SLUICE_ASSIGN_OR_RETURN(auto outcomes, add_feedback(std::vector<FeedbackRow>{std::move(row)}));
  return std::move(outcomes.front());
}

Result<std::vector<Result<FeedbackOutcome>>> Store::add_feedback(std::vector<FeedbackRow> rows) {
  std::vector<Result<FeedbackOutcome>> out;
  SLUICE_RETURN_IF_ERROR(impl_->write([&](Tx& tx) -> Status {
    out.clear();
    for (const FeedbackRow& row : rows) out.push_back(add_one(tx, row, impl_->options.windows));
    return Status();
  }));
  return out;
}

Result<std::vector<FeedbackOutcome>> Store::add_feedback_together(std::vector<FeedbackRow> rows) {
  std::vector<FeedbackOutcome> out;
  SLUICE_RETURN_IF_ERROR(impl_->write([&](Tx& tx) -> Status {
    out.clear();
    for (const FeedbackRow& row : rows) {
      SLUICE_ASSIGN_OR_RETURN(FeedbackOutcome one, add_one(tx, row, impl_->options.windows));
      out.push_back(std::move(one));
    }
    return Status();
  }));
  return out;
}

Result<FeedbackRow> Store::retract_feedback(FeedbackId id, bool even_if_consumed) {
  FeedbackRow row;
  SLUICE_RETURN_IF_ERROR(impl_->write([&row, id, even_if_consumed](Tx& tx) -> Status {
    auto stored = query_row<FeedbackRow>(tx.db, "WHERE id = ?", id);
    if (!stored) return not_found("There is no feedback " + std::to_string(id.value));
    row = std::move(*stored);
    if (row.retracted) return Status();
    if (!even_if_consumed && (row.state == "used" || row.state == "consumed")) {
      return conflict("Feedback " + std::to_string(id.value) + " can't be taken back: a step used its record already");
    }
    row.retracted = true;
    run(tx.db, "UPDATE feedback SET retracted = 1 WHERE id = ?", id);
    tx.announce(EventKind::kFeedback, id.value, row.record.text);
    auto record = query_row<RecordRow>(tx.db, "WHERE id = ?", row.record);
    const auto left = query_value(
        tx.db, std::int64_t{0},
        "SELECT count(*) FROM feedback WHERE record = ? AND state = 'waiting' AND retracted = 0", row.record);
    if (record && record->fate == "waiting" && left == 0) set_fate(tx, *record, record->complete ? "" : "infra");
    return Status();
  }));
  return row;
}

}  // namespace sluice
