// SPDX-License-Identifier: GPL-3.0-or-later
#include "store/migrations.h"

#include <vector>

#include "store/columns.h"

namespace sluice {
namespace {

constexpr std::int64_t kApplicationId = 0x534c4943;  // "SLIC": tells a workspace from any other SQLite file

constexpr const char* kTraffic = R"sql(
CREATE TABLE value(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE session(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, recipe_name TEXT NOT NULL, recipe_json TEXT NOT NULL,
  conditions_json TEXT NOT NULL, seed INTEGER NOT NULL, state TEXT NOT NULL, live_only INTEGER NOT NULL,
  started_us INTEGER NOT NULL, ended_us INTEGER NOT NULL) STRICT;

CREATE TABLE record(
  seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, session INTEGER REFERENCES session, conversation TEXT NOT NULL,
  version INTEGER REFERENCES version, adapter_name TEXT NOT NULL, purpose TEXT NOT NULL, split TEXT NOT NULL,
  route TEXT NOT NULL, group_key TEXT NOT NULL, prompt_text TEXT NOT NULL, prompt_json TEXT NOT NULL,
  completion_text TEXT NOT NULL, prompt_ids BLOB NOT NULL, token_ids BLOB NOT NULL, lp_full BLOB NOT NULL,
  lp_mu BLOB NOT NULL, temperature REAL, top_p REAL, min_p REAL, top_k INTEGER NOT NULL, max_tokens INTEGER NOT NULL,
  seed INTEGER NOT NULL, sampling_json TEXT NOT NULL, finish_reason TEXT NOT NULL, complete INTEGER NOT NULL,
  received_us INTEGER NOT NULL, served_us INTEGER NOT NULL, queue_us INTEGER NOT NULL, prefill_us INTEGER NOT NULL,
  decode_us INTEGER NOT NULL, used_in_step INTEGER REFERENCES step, fate TEXT NOT NULL) STRICT;
CREATE INDEX record_session ON record(session, seq);
CREATE INDEX record_version ON record(version, seq);
CREATE INDEX record_fate ON record(session, purpose, fate);  -- covers the counts
-- What may still get a label. Small: rows leave when they get one or when the window is over.
CREATE INDEX record_open ON record(served_us)
  WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1;
CREATE INDEX record_waiting ON record(session, seq) WHERE fate = 'waiting';

-- Filled by the code that adds a record, not by a trigger: with trusted_schema=OFF this SQLite lets no trigger use FTS5.
CREATE VIRTUAL TABLE record_text USING fts5(
  prompt_text, completion_text, content='record', content_rowid='seq', tokenize='trigram');
CREATE TABLE feedback(
  id INTEGER PRIMARY KEY, record TEXT NOT NULL REFERENCES record(id), choice INTEGER NOT NULL, kind TEXT NOT NULL,
  score REAL, source TEXT NOT NULL, labeller TEXT NOT NULL, reason TEXT NOT NULL, comment TEXT NOT NULL,
  key TEXT NOT NULL, metadata_json TEXT NOT NULL, time_us INTEGER NOT NULL, state TEXT NOT NULL,
  retracted INTEGER NOT NULL) STRICT;
CREATE INDEX feedback_record ON feedback(record);
CREATE UNIQUE INDEX feedback_key ON feedback(key) WHERE key <> '';
)sql";

constexpr const char* kTraining = R"sql(
CREATE TABLE batch(
  id INTEGER PRIMARY KEY, session INTEGER REFERENCES session, records TEXT NOT NULL, rewards BLOB NOT NULL,
  advantages BLOB NOT NULL, weights BLOB NOT NULL, baseline_json TEXT NOT NULL, head_step INTEGER NOT NULL,
  seed INTEGER NOT NULL, inverted INTEGER NOT NULL, state TEXT NOT NULL, time_us INTEGER NOT NULL) STRICT;
CREATE INDEX batch_session ON batch(session, id);

CREATE TABLE reward(
  record TEXT NOT NULL REFERENCES record(id), value REAL, source TEXT NOT NULL, baseline REAL, advantage REAL,
  reason TEXT NOT NULL) STRICT;
CREATE INDEX reward_record ON reward(record);

CREATE TABLE step(
  id INTEGER PRIMARY KEY, session INTEGER REFERENCES session, batch INTEGER REFERENCES batch, number INTEGER NOT NULL,
  candidate INTEGER, loss REAL, kl_base REAL, entropy REAL, clip_fraction REAL, truncated_fraction REAL,
  reward_mean REAL, grad_norm REAL, mean_length REAL, mean_age REAL, tokens INTEGER NOT NULL, seconds REAL,
  stats_json TEXT NOT NULL, time_us INTEGER NOT NULL) STRICT;
CREATE INDEX step_session ON step(session, id);

CREATE TABLE metric(
  seq INTEGER PRIMARY KEY, session INTEGER REFERENCES session, name TEXT NOT NULL, x REAL, value REAL,
  time_us INTEGER NOT NULL) STRICT;
CREATE INDEX metric_name ON metric(session, name, seq);

CREATE TABLE log(
  seq INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, level TEXT NOT NULL, category TEXT NOT NULL, text TEXT NOT NULL,
  link TEXT NOT NULL) STRICT;
)sql";

constexpr const char* kRelease = R"sql(
CREATE TABLE version(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent INTEGER REFERENCES version, session INTEGER REFERENCES session,
  state TEXT NOT NULL, origin TEXT NOT NULL, label TEXT NOT NULL, head_step INTEGER NOT NULL,
  step INTEGER REFERENCES step, content_hash TEXT NOT NULL, bytes INTEGER NOT NULL, rank INTEGER NOT NULL,
  created_us INTEGER NOT NULL, state_us INTEGER NOT NULL, proven INTEGER NOT NULL) STRICT;
-- At most one version each is measured, on canary, in service.
CREATE UNIQUE INDEX version_single ON version(state) WHERE state IN ('evaluating', 'canary', 'serving');

CREATE TABLE gate_settings(
  id INTEGER PRIMARY KEY, time_us INTEGER NOT NULL, who TEXT NOT NULL, note TEXT NOT NULL, profile TEXT NOT NULL,
  settings_json TEXT NOT NULL) STRICT;

CREATE TABLE decision(
  id INTEGER PRIMARY KEY, session INTEGER REFERENCES session, time_us INTEGER NOT NULL, prev_hash TEXT NOT NULL,
  hash TEXT NOT NULL, version INTEGER REFERENCES version, parent INTEGER, incumbent INTEGER, anchor INTEGER,
  content_hash TEXT NOT NULL, verdict TEXT NOT NULL, scope TEXT NOT NULL, kind TEXT NOT NULL,
  automatic INTEGER NOT NULL, forced INTEGER NOT NULL, actor TEXT NOT NULL, reason_code TEXT NOT NULL,
  reason_text TEXT NOT NULL, settings INTEGER REFERENCES gate_settings, stage TEXT NOT NULL, metric TEXT NOT NULL,
  seed INTEGER NOT NULL, n INTEGER NOT NULL, voids INTEGER NOT NULL, wins INTEGER NOT NULL, losses INTEGER NOT NULL,
  ties INTEGER NOT NULL, mean_d REAL, lo REAL, hi REAL, log_e REAL, log_f REAL, log_ea REAL, log_ha REAL,
  candidate_k INTEGER NOT NULL, candidate_n INTEGER NOT NULL, incumbent_k INTEGER NOT NULL,
  incumbent_n INTEGER NOT NULL, anchor_k INTEGER NOT NULL, anchor_n INTEGER NOT NULL, invariants_json TEXT NOT NULL,
  protected_json TEXT NOT NULL, extra_json TEXT NOT NULL, same_signal INTEGER NOT NULL,
  moved_in_flight INTEGER NOT NULL, thin INTEGER NOT NULL, duration_s REAL, tokens_spent INTEGER NOT NULL,
  note TEXT NOT NULL) STRICT;
CREATE TRIGGER decision_no_update BEFORE UPDATE ON decision BEGIN
  SELECT RAISE(ABORT, 'decisions are only ever added');
END;
CREATE TRIGGER decision_no_delete BEFORE DELETE ON decision BEGIN
  SELECT RAISE(ABORT, 'decisions are only ever added');
END;

-- Every change of the version in service, by the decision that made it; the last row is the serving pointer.
CREATE TABLE serving(
  seq INTEGER PRIMARY KEY, version INTEGER NOT NULL REFERENCES version, previous INTEGER NOT NULL REFERENCES version,
  decision INTEGER NOT NULL REFERENCES decision) STRICT;

CREATE TABLE evidence(
  seq INTEGER PRIMARY KEY, candidate INTEGER NOT NULL REFERENCES version, incumbent INTEGER, anchor INTEGER,
  attempt INTEGER NOT NULL, idx INTEGER NOT NULL, prompt_id TEXT NOT NULL, grp TEXT NOT NULL, seed INTEGER NOT NULL,
  candidate_score REAL, incumbent_score REAL, anchor_score REAL, candidate_protected REAL, incumbent_protected REAL,
  anchor_protected REAL, void_reason TEXT NOT NULL, candidate_record TEXT, incumbent_record TEXT, anchor_record TEXT,
  UNIQUE(candidate, attempt, idx)) STRICT;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence BEGIN
  SELECT RAISE(ABORT, 'evidence is only ever added');
END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence BEGIN
  SELECT RAISE(ABORT, 'evidence is only ever added');
END;
)sql";

// What clients say about a request, and feedback that names its record by text or none at all.
constexpr const char* kClients = R"sql(
ALTER TABLE record ADD COLUMN turn TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN conversation_done INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record ADD COLUMN next_state TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN stream TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN tags_json TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN prompt_digest TEXT NOT NULL DEFAULT '';
ALTER TABLE record ADD COLUMN closes_us INTEGER NOT NULL DEFAULT 0;
ALTER TABLE record ADD COLUMN holds INTEGER NOT NULL DEFAULT 0;
UPDATE record SET closes_us = served_us + 120000000;
CREATE INDEX record_digest ON record(prompt_digest, seq) WHERE prompt_digest <> '';
CREATE INDEX record_conversation ON record(conversation, seq) WHERE conversation <> '';
-- What may still get a label. Small: rows leave when they get one or when the window is over.
DROP INDEX record_open;
CREATE INDEX record_open ON record(closes_us)
  WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1;
-- Those of them that later records of the stream wait for.
CREATE INDEX record_holding ON record(session, stream, route, seq)
  WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1 AND holds = 1;

CREATE TABLE feedback_2(
  id INTEGER PRIMARY KEY, record TEXT REFERENCES record(id), choice INTEGER NOT NULL, kind TEXT NOT NULL,
  score REAL, source TEXT NOT NULL, labeller TEXT NOT NULL, reason TEXT NOT NULL, comment TEXT NOT NULL,
  key TEXT NOT NULL, metadata_json TEXT NOT NULL, time_us INTEGER NOT NULL, state TEXT NOT NULL,
  retracted INTEGER NOT NULL, by_text INTEGER NOT NULL, prompt_digest TEXT NOT NULL, shown TEXT NOT NULL,
  shown_tokens INTEGER NOT NULL, cache_hit INTEGER NOT NULL) STRICT;
INSERT INTO feedback_2 SELECT id, record, choice, kind, score, source, labeller, reason, comment, key, metadata_json,
  time_us, state, retracted, 0, '', '', -1, 0 FROM feedback;
DROP TABLE feedback;
ALTER TABLE feedback_2 RENAME TO feedback;
CREATE INDEX feedback_record ON feedback(record);
CREATE UNIQUE INDEX feedback_key ON feedback(key) WHERE key <> '';
-- What people look at by hand.
CREATE INDEX feedback_unmatched ON feedback(id) WHERE state = 'unmatched';
)sql";

// The statements of each step, oldest first; a step is never changed once a program with it was given away.
const std::vector<std::vector<const char*>>& steps() {
  static const std::vector<std::vector<const char*>> all = {{kTraffic, kTraining, kRelease}, {kClients}};
  return all;
}

// One transaction, so that a workspace is never between two schemas.
Status apply_step(Database& db, std::int64_t schema) {
  db.exec("BEGIN IMMEDIATE");
  for (const char* sql : steps()[static_cast<std::size_t>(schema - 1)]) db.exec(sql);
  db.exec("PRAGMA application_id=" + std::to_string(kApplicationId) + "; PRAGMA user_version=" + std::to_string(schema) + ";");
  if (!db.failed()) db.exec("COMMIT");
  Status error = db.take_error();
  if (!error.ok() && db.in_transaction()) db.exec("ROLLBACK");
  return error;
}

}  // namespace

Status migrate(Database& db, const std::string& path) {
  const std::int64_t schema = query_value(db, std::int64_t{0}, "PRAGMA user_version");
  const std::int64_t tables = query_value(db, std::int64_t{0}, "SELECT count(*) FROM sqlite_schema");
  const std::int64_t application = query_value(db, std::int64_t{0}, "PRAGMA application_id");
  SLUICE_RETURN_IF_ERROR(db.take_error());
  if (!(schema == 0 && tables == 0) && application != kApplicationId) {
    return invalid_argument(path + " is a database of another program: choose another folder for the workspace");
  }
  if (schema > kSchemaVersion) {
    return invalid_argument("The workspace " + path + " was made by a newer Sluice (its schema is " +
                            std::to_string(schema) + ", this program knows " + std::to_string(kSchemaVersion) +
                            "): open it with that program, or choose another workspace");
  }
  for (std::int64_t next = schema + 1; next <= kSchemaVersion; ++next) SLUICE_RETURN_IF_ERROR(apply_step(db, next));
  return Status();
}

}  // namespace sluice
