-- SPDX-License-Identifier: GPL-3.0-or-later
-- A workspace as the program with schema 1 left it: one labelled record, one without a label. Dumped from its file.
PRAGMA foreign_keys=OFF;
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
CREATE INDEX record_fate ON record(session, purpose, fate);
CREATE INDEX record_open ON record(served_us)
  WHERE fate = '' AND purpose = 'live' AND split = 'train' AND complete = 1;
CREATE INDEX record_waiting ON record(session, seq) WHERE fate = 'waiting';
CREATE VIRTUAL TABLE record_text USING fts5(
  prompt_text, completion_text, content='record', content_rowid='seq', tokenize='trigram');
CREATE TABLE feedback(
  id INTEGER PRIMARY KEY, record TEXT NOT NULL REFERENCES record(id), choice INTEGER NOT NULL, kind TEXT NOT NULL,
  score REAL, source TEXT NOT NULL, labeller TEXT NOT NULL, reason TEXT NOT NULL, comment TEXT NOT NULL,
  key TEXT NOT NULL, metadata_json TEXT NOT NULL, time_us INTEGER NOT NULL, state TEXT NOT NULL,
  retracted INTEGER NOT NULL) STRICT;
CREATE INDEX feedback_record ON feedback(record);
CREATE UNIQUE INDEX feedback_key ON feedback(key) WHERE key <> '';
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
CREATE TABLE version(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL, parent INTEGER REFERENCES version, session INTEGER REFERENCES session,
  state TEXT NOT NULL, origin TEXT NOT NULL, label TEXT NOT NULL, head_step INTEGER NOT NULL,
  step INTEGER REFERENCES step, content_hash TEXT NOT NULL, bytes INTEGER NOT NULL, rank INTEGER NOT NULL,
  created_us INTEGER NOT NULL, state_us INTEGER NOT NULL, proven INTEGER NOT NULL) STRICT;
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
CREATE TABLE serving(
  seq INTEGER PRIMARY KEY, version INTEGER NOT NULL REFERENCES version, previous INTEGER NOT NULL REFERENCES version,
  decision INTEGER NOT NULL REFERENCES decision) STRICT;
CREATE TABLE evidence(
  seq INTEGER PRIMARY KEY, candidate INTEGER NOT NULL REFERENCES version, incumbent INTEGER, anchor INTEGER,
  attempt INTEGER NOT NULL, idx INTEGER NOT NULL, prompt_id TEXT NOT NULL, grp TEXT NOT NULL, seed INTEGER NOT NULL,
  candidate_score REAL, incumbent_score REAL, anchor_score REAL, candidate_protected REAL, incumbent_protected REAL,
  anchor_protected REAL, void_reason TEXT NOT NULL, candidate_record TEXT, incumbent_record TEXT, anchor_record TEXT,
  UNIQUE(candidate, attempt, idx)) STRICT;
INSERT INTO value VALUES('last_version','0');
INSERT INTO value VALUES('split_salt','bc8bbc694adfcdce0f7a51535e2f1956');
INSERT INTO session VALUES(1,'s','','','',0,'running',0,1700000000000002,0);
INSERT INTO record VALUES(1,'rec_01HFFFFFFFFFFFFFFFFFFFFFF1',1,'',0,'base','live','train','chat','','What is a valve?','','It lets some through.',X'010000000200000003000000',X'0400000005000000',X'000000bf0000a0bf',X'000000bf000080bf',1.0,1.0,0.0,0,0,0,'','stop',1,0,1700000000000004,0,0,0,NULL,'waiting');
INSERT INTO record VALUES(2,'rec_01HFFFFFFFFFFFFFFFFFFFFFF2',1,'',0,'base','live','train','chat','','What is a valve?','','It lets some through.',X'010000000200000003000000',X'0400000005000000',X'000000bf0000a0bf',X'000000bf000080bf',1.0,1.0,0.0,0,0,0,'','stop',1,0,1700000000000006,0,0,0,NULL,'');
INSERT INTO feedback VALUES(1,'rec_01HFFFFFFFFFFFFFFFFFFFFFF1',0,'accept',0.0,'client','','','good','','',1700000000000008,'waiting',0);
INSERT INTO version VALUES(0,'base',NULL,NULL,'serving','base','',0,NULL,'',0,0,1700000000000000,1700000000000000,1);
INSERT INTO decision VALUES(1,NULL,1700000000000000,'0000000000000000000000000000000000000000000000000000000000000000','6d962f6982279898ddc31498af6d9409ae18bc2503b708377ff38de46b74b2b8',0,NULL,0,0,'','promote','full','startup',1,0,'store','new_workspace','The base serves because the workspace is new.',NULL,'manual','',0,0,0,0,0,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0,0,0,0,0,0,'','','',0,0,0,0.0,0,'');
INSERT INTO serving VALUES(1,0,0,1);
INSERT INTO record_text(record_text) VALUES('rebuild');
CREATE TRIGGER decision_no_update BEFORE UPDATE ON decision BEGIN
  SELECT RAISE(ABORT, 'decisions are only ever added');
END;
CREATE TRIGGER decision_no_delete BEFORE DELETE ON decision BEGIN
  SELECT RAISE(ABORT, 'decisions are only ever added');
END;
CREATE TRIGGER evidence_no_update BEFORE UPDATE ON evidence BEGIN
  SELECT RAISE(ABORT, 'evidence is only ever added');
END;
CREATE TRIGGER evidence_no_delete BEFORE DELETE ON evidence BEGIN
  SELECT RAISE(ABORT, 'evidence is only ever added');
END;
PRAGMA application_id=1397508419;
PRAGMA user_version=1;
