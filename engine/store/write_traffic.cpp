// SPDX-License-Identifier: GPL-3.0-or-later
// Writes of sessions and records.
#include "store/store_impl.h"

namespace sluice {
namespace {

constexpr std::int64_t kConversationIdleUs = 1'800'000'000;  // then the conversation has ended by itself

// Fate of a new record that can never train; "" for one that may.
std::string first_fate(const RecordRow& row) {
  if (!row.fate.empty() || row.purpose != Purpose::kLive) return row.fate;
  if (row.split == Split::kHeldOut) return "held_out";
  if (row.turn == "side") return "side";
  return row.complete ? "" : "infra";
}

}  // namespace

Status expire_unlabelled(Tx& tx) {
  std::vector<std::pair<std::int64_t, std::string>> expired;
  {
    // The conditions of the index record_open, word for word.
    Statement s = tx.db.prepare(
        "SELECT seq, id FROM record WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1 "
        "AND closes_us < ? ORDER BY closes_us LIMIT 256");
    s.bind_int(0, tx.now_us);
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
  row.fate = first_fate(row);
  const std::int64_t window = record_window_us(row, impl_->options.windows);
  row.holds = holds_stream(row);
  SLUICE_RETURN_IF_ERROR(impl_->write([&row, window](Tx& tx) -> Status {
    if (query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM record WHERE id = ?", row.id) != 0) {
      return conflict("There is a record " + row.id.text + " already");
    }
    row.served_us = tx.now_us;
    row.closes_us = tx.now_us + window;
    row.seq = next_number<RecordRow>(tx.db);
    insert(tx.db, row);
    run(tx.db, "INSERT INTO record_text(rowid, prompt_text, completion_text) VALUES (?, ?, ?)", row.seq, row.prompt_text,
        row.completion_text);
    tx.announce(EventKind::kRecord, row.seq, row.id.text);
    return Status();
  }));
  return row;
}

Result<bool> Store::add_next_state(SessionId session, const std::string& conversation, const std::string& message_json) {
  const auto turn_before = [&](Database& db, std::int64_t now_us) {
    auto record = query_row<RecordRow>(db,
                                       "WHERE conversation = ? AND conversation <> '' AND turn = 'main' AND purpose = 'live' "
                                       "AND session IS ? ORDER BY seq DESC LIMIT 1",
                                       conversation, session);
    const bool open = record && !record->conversation_done && record->next_state.empty() &&
                      now_us - record->served_us <= kConversationIdleUs;
    return open ? std::move(record) : std::nullopt;
  };
  // Most conversations begin here: those need no write.
  if (!impl_->readers.read([&](Database& db) { return turn_before(db, impl_->now()); })) return false;
  bool found = false;
  SLUICE_RETURN_IF_ERROR(impl_->write([&](Tx& tx) -> Status {
    found = false;
    const auto record = turn_before(tx.db, tx.now_us);
    if (!record) return Status();
    run(tx.db, "UPDATE record SET next_state = ? WHERE seq = ?", message_json, record->seq);
    tx.announce(EventKind::kRecord, record->seq, record->id.text);
    found = true;
    return Status();
  }));
  return found;
}

}  // namespace sluice
