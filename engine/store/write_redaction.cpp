// SPDX-License-Identifier: GPL-3.0-or-later
// Forgetting records: their content, or the rows themselves (serving.md §1.2).
#include "store/store_impl.h"

namespace sluice {
namespace {

// The record, unless the trainer has it in hand or the gate's evidence stands on it.
Result<RecordRow> find_forgettable(Database& db, const RecordId& id, bool whole_row) {
  auto record = query_row<RecordRow>(db, "WHERE id = ?", id);
  if (!record) return not_found("There is no record " + id.text);
  if (record->fate == "batched") {
    return conflict("A step is being made of record " + id.text + ": try again when it is through");
  }
  const bool evidence =
      whole_row && query_value(db, std::int64_t{0},
                               "SELECT count(*) FROM evidence WHERE candidate_record = ?1 OR incumbent_record = ?1 "
                               "OR anchor_record = ?1",
                               id) != 0;
  if (evidence) {
    return conflict("A decision of the gate stands on record " + id.text + ", so its row stays: redact it instead");
  }
  return std::move(*record);
}

ForgetOutcome outcome_of(const RecordRow& record) {
  ForgetOutcome out;
  out.session = record.session;
  out.used_in_step = record.used_in_step;
  out.was_waiting = record.fate == "waiting";
  return out;
}

// The index over texts keeps none of its own, so it must be told the old ones.
void drop_from_index(Database& db, const RecordRow& record) {
  run(db, "INSERT INTO record_text(record_text, rowid, prompt_text, completion_text) VALUES ('delete', ?, ?, ?)",
      record.seq, record.prompt_text, record.completion_text);
}

// A deleted entry stands in the index's older parts until they are made anew, and its pages in the log until that is empty.
void leave_no_trace(Tx& tx) {
  run(tx.db, "INSERT INTO record_text(record_text) VALUES ('optimize')");
  tx.forgets = true;
}

// The turn before keeps what this one began with, for its judge: that is this record's content too.
void drop_from_turn_before(Database& db, const RecordRow& record) {
  if (record.turn != "main" || record.conversation.empty()) return;
  run(db,
      "UPDATE record SET next_state = '' WHERE seq = (SELECT max(seq) FROM record WHERE conversation = ? AND turn = 'main' "
      "AND purpose = 'live' AND session IS ? AND seq < ?)",
      record.conversation, record.session, record.seq);
}

}  // namespace

Result<ForgetOutcome> Store::redact_record(const RecordId& id) {
  ForgetOutcome out;
  SLUICE_RETURN_IF_ERROR(impl_->write([&out, &id](Tx& tx) -> Status {
    SLUICE_ASSIGN_OR_RETURN(RecordRow record, find_forgettable(tx.db, id, false));
    out = outcome_of(record);
    drop_from_index(tx.db, record);
    drop_from_turn_before(tx.db, record);
    record.token_ids.clear();
    record.lp_full.clear();
    if (record.fate != "trained") record.fate = "redacted";
    run(tx.db,
        "UPDATE record SET prompt_text = '', prompt_json = '', completion_text = '', prompt_ids = ?1, token_ids = ?1, "
        "lp_full = ?2, lp_mu = ?2, sampling_json = '', conversation = '', group_key = '', next_state = '', tags_json = '', "
        "prompt_digest = '', fate = ?3 WHERE seq = ?4",
        record.token_ids, record.lp_full, record.fate, record.seq);
    run(tx.db, "INSERT INTO record_text(rowid, prompt_text, completion_text) VALUES (?, '', '')", record.seq);
    run(tx.db, "UPDATE feedback SET reason = '', comment = '', metadata_json = '', shown = '', prompt_digest = '' WHERE record = ?", id);
    run(tx.db, "UPDATE feedback SET state = 'ignored' WHERE record = ? AND state = 'waiting'", id);
    run(tx.db, "UPDATE reward SET reason = '' WHERE record = ?", id);
    leave_no_trace(tx);
    out.feedback = query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM feedback WHERE record = ?", id);
    tx.announce(EventKind::kRecord, record.seq, id.text);
    return Status();
  }));
  return out;
}

Result<ForgetOutcome> Store::delete_record(const RecordId& id) {
  ForgetOutcome out;
  SLUICE_RETURN_IF_ERROR(impl_->write([&out, &id](Tx& tx) -> Status {
    SLUICE_ASSIGN_OR_RETURN(const RecordRow record, find_forgettable(tx.db, id, true));
    out = outcome_of(record);
    out.feedback = query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM feedback WHERE record = ?", id);
    drop_from_index(tx.db, record);
    drop_from_turn_before(tx.db, record);
    keep_number<RecordRow>(tx.db);
    keep_number<FeedbackRow>(tx.db);
    run(tx.db, "DELETE FROM reward WHERE record = ?", id);
    run(tx.db, "DELETE FROM feedback WHERE record = ?", id);
    run(tx.db, "DELETE FROM record WHERE seq = ?", record.seq);
    leave_no_trace(tx);
    tx.announce(EventKind::kRecord, record.seq, id.text);
    return Status();
  }));
  return out;
}

}  // namespace sluice
