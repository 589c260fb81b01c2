// SPDX-License-Identifier: GPL-3.0-or-later
// Writes of sessions, records and feedback.
#include <cmath>

#include "store/store_impl.h"

namespace sluice {
namespace {

// A label that is not taken back and has not been replaced by a newer one of its source.
constexpr const char* kCurrent = "retracted = 0 AND state <> 'replaced'";

bool same_label(const FeedbackRow& a, const FeedbackRow& b) {
  return a.record == b.record && a.choice == b.choice && a.source == b.source && a.labeller == b.labeller &&
         a.kind == b.kind && (a.kind != FeedbackKind::kScore || a.score == b.score);
}

bool same_content(const FeedbackRow& a, const FeedbackRow& b) {
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
  auto stored = query_row<FeedbackRow>(
      db, "WHERE record = ? AND choice = ? AND source = ? AND " + std::string(kCurrent) + " ORDER BY id DESC LIMIT 1",
      row.record, row.choice, row.source);
  if (stored && same_label(*stored, row)) return stored;
  return std::optional<FeedbackRow>();
}

// serving.md §2.2. Only `waiting` trains.
std::string state_of(Database& db, const RecordRow& record, FeedbackSource source, const StoreOptions& options,
                     std::int64_t now_us) {
  if (record.split == Split::kHeldOut) return "held_out";
  if (record.purpose != Purpose::kLive || !record.complete || record.token_ids.empty() || !record.session.valid()) {
    return "ignored";
  }
  if (record.fate == "batched" || record.fate == "trained") return "consumed";
  const bool desk = source == FeedbackSource::kHuman;
  const bool open = record.fate.empty() || record.fate == "waiting" || (desk && record.fate == "no_event");
  if (!open) return record.fate == "no_event" || record.fate == "late" || record.fate == "too_old" ? "late" : "ignored";
  const std::int64_t window = desk ? std::max(options.desk_window_us, options.label_window_us) : options.label_window_us;
  if (now_us - record.served_us > window) return "late";
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

// Fate of a new record that can never train; "" for one that may.
std::string first_fate(const RecordRow& row) {
  if (!row.fate.empty() || row.purpose != Purpose::kLive) return row.fate;
  if (row.split == Split::kHeldOut) return "held_out";
  return row.complete ? "" : "infra";
}

}  // namespace

Status expire_unlabelled(Tx& tx, std::int64_t label_window_us) {
  std::vector<std::pair<std::int64_t, std::string>> expired;
  {
    // The conditions of the index record_open, word for word.
    Statement s = tx.db.prepare(
        "SELECT seq, id FROM record WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1 "
        "AND served_us < ? ORDER BY served_us LIMIT 256");
    s.bind_int(0, tx.now_us - label_window_us);
    while (s.step()) expired.emplace_back(s.get_int(0), s.get_text(1));
  }
  for (const auto& [seq, id] : expired) {
    run(tx.db, "UPDATE record SET fate = 'no_event' WHERE seq = ?", seq);
    tx.announce(EventKind::kRecord, seq, id);
  }
  return Status();
}

Result<SessionId> Store::add_session(SessionRow row) {
  row.id = SessionId();
  SLUICE_RETURN_IF_ERROR(impl_->write([&row](Tx& tx) {
    if (row.started_us == 0) row.started_us = tx.now_us;
    row.id = SessionId(insert(tx.db, row));
    tx.announce(EventKind::kSession, row.id.value);
    return Status();
  }));
  return row.id;
}

Status Store::set_session_state(SessionId session, SessionState state) {
  return impl_->write([session, state](Tx& tx) -> Status {
    auto row = query_row<SessionRow>(tx.db, "WHERE id = ?", session);
    if (!row) return not_found("There is no session " + std::to_string(session.value));
    if (row->state == SessionState::kEnded && state != SessionState::kEnded) {
      return conflict("Session " + std::to_string(session.value) + " has ended: start a new one");
    }
    const std::int64_t ended = state == SessionState::kEnded && row->ended_us == 0 ? tx.now_us : row->ended_us;
    run(tx.db, "UPDATE session SET state = ?, ended_us = ? WHERE id = ?", state, ended, session);
    tx.announce(EventKind::kSession, session.value);
    return Status();
  });
}

Result<RecordRow> Store::add_record(RecordRow row) {
  if (!row.id.valid()) return invalid_argument("A record needs an id");
  row.seq = 0;
  row.fate = first_fate(row);
  SLUICE_RETURN_IF_ERROR(impl_->write([&row](Tx& tx) -> Status {
    if (query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM record WHERE id = ?", row.id) != 0) {
      return conflict("There is a record " + row.id.text + " already");
    }
    row.served_us = tx.now_us;
    row.seq = insert(tx.db, row);
    run(tx.db, "INSERT INTO record_text(rowid, prompt_text, completion_text) VALUES (?, ?, ?)", row.seq, row.prompt_text,
        row.completion_text);
    tx.announce(EventKind::kRecord, row.seq, row.id.text);
    return Status();
  }));
  return row;
}

Result<FeedbackOutcome> Store::add_feedback(FeedbackRow row) {
  SLUICE_RETURN_IF_ERROR(check_label(row));
  row.id = FeedbackId();
  FeedbackOutcome out;
  const StoreOptions& options = impl_->options;
  SLUICE_RETURN_IF_ERROR(impl_->write([&row, &out, &options](Tx& tx) -> Status {
    auto record = query_row<RecordRow>(tx.db, "WHERE id = ?", row.record);
    if (!record) {
      return not_found("There is no record " + row.record.text + ": use the id that came with the answer");
    }
    out.version = record->version;
    out.adapter_name = record->adapter_name;
    SLUICE_ASSIGN_OR_RETURN(auto duplicate, find_duplicate(tx.db, row));
    if (duplicate) {
      out.row = std::move(*duplicate);
      out.row.state = "duplicate";
    } else {
      row.time_us = tx.now_us;
      row.retracted = false;
      row.state = state_of(tx.db, *record, row.source, options, tx.now_us);
      if (row.state == "waiting") {
        run(tx.db,
            "UPDATE feedback SET state = 'replaced' WHERE record = ? AND choice = ? AND source = ? AND state = 'waiting'",
            row.record, row.choice, row.source);
        if (record->fate != "waiting") set_fate(tx, *record, "waiting");
      }
      row.id = FeedbackId(insert(tx.db, row));
      out.row = row;
      tx.announce(EventKind::kFeedback, row.id.value, row.record.text);
    }
    out.queue_position = queue_length(tx.db, record->session);
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
    if (record && record->fate == "waiting" && left == 0) set_fate(tx, *record, "");
    return Status();
  }));
  return row;
}

}  // namespace sluice
