// SPDX-License-Identifier: GPL-3.0-or-later
// Reads: every list is paged by key and no cursor outlives its call.
#include "store/store_impl.h"

namespace sluice {
namespace {

std::size_t code_points(const std::string& text) {
  std::size_t n = 0;
  for (const char c : text) n += (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  return n;
}

std::string quote_phrase(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string like_pattern(const std::string& text) {
  std::string out = "%";
  for (const char c : text) {
    if (c == '%' || c == '_' || c == '\\') out += '\\';
    out += c;
  }
  return out + "%";
}

// WHERE parts and the values they bind, in order.
struct Conditions {
  std::string sql;
  std::vector<std::string> texts;  // bound by position; a number is bound as one
  std::vector<std::int64_t> numbers;
  std::vector<bool> is_text;

  void add(const std::string& part) { sql += (sql.empty() ? "WHERE " : " AND ") + part; }
  void add(const std::string& part, const std::string& value) {
    add(part);
    texts.push_back(value);
    is_text.push_back(true);
  }
  void add(const std::string& part, std::int64_t value) {
    add(part);
    numbers.push_back(value);
    is_text.push_back(false);
  }
  void bind(Statement& s) const {
    std::size_t text = 0, number = 0;
    for (std::size_t i = 0; i < is_text.size(); ++i) {
      const int at = static_cast<int>(i);
      is_text[i] ? s.bind_text(at, texts[text++]) : s.bind_int(at, numbers[number++]);
    }
  }
};

std::string label_condition(const std::string& label) {
  const std::string current = "EXISTS (SELECT 1 FROM feedback f WHERE f.record = record.id AND f.retracted = 0 "
                              "AND f.state <> 'replaced'";
  if (label == "none") return "NOT " + current + ")";
  return current + " AND f.kind = ?)";
}

Conditions conditions_of(const RecordFilter& filter, std::int64_t before_seq) {
  Conditions where;
  if (before_seq > 0) where.add("seq < ?", before_seq);
  if (filter.session.valid()) where.add("session = ?", filter.session.value);
  if (filter.version) where.add("version = ?", filter.version->value);
  if (filter.purpose) {
    where.add("purpose = ?", std::string(EnumNames<Purpose>::kNames[static_cast<std::size_t>(*filter.purpose)]));
  }
  if (!filter.fate.empty()) where.add("fate = ?", filter.fate);
  if (!filter.conversation.empty()) where.add("conversation = ?", filter.conversation);
  if (filter.label == "none") {
    where.add(label_condition(filter.label));
  } else if (!filter.label.empty()) {
    where.add(label_condition(filter.label), filter.label);
  }
  if (filter.without_human_label) {
    where.add("NOT EXISTS (SELECT 1 FROM feedback f WHERE f.record = record.id AND f.retracted = 0 AND f.source = 'human')");
  }
  if (filter.text.empty()) return where;
  if (code_points(filter.text) >= 3) {  // a trigram index knows nothing shorter
    where.add("seq IN (SELECT rowid FROM record_text WHERE record_text MATCH ?)", quote_phrase(filter.text));
  } else {
    where.add("(prompt_text || char(10) || completion_text) LIKE ? ESCAPE '\\'", like_pattern(filter.text));
  }
  return where;
}

// The conditions of the index record_holding.
constexpr const char* kHolding =
    "o.fate = '' AND o.purpose = 'live' AND o.split = 'train' AND o.complete = 1 AND o.holds = 1";

std::vector<FeedbackRow> labels_that_count(Database& db, const RecordId& id) {
  return query_rows<FeedbackRow>(db, "WHERE record = ? AND state = 'waiting' AND retracted = 0 ORDER BY id", id);
}

}  // namespace

std::optional<std::string> Store::value(const std::string& name) const {
  return impl_->readers.read([&](Database& db) -> std::optional<std::string> {
    Statement s = db.prepare("SELECT value FROM value WHERE name = ?");
    s.bind_text(0, "user." + name);
    if (!s.step()) return std::nullopt;
    return s.get_text(0);
  });
}

std::vector<SessionRow> Store::sessions() const {
  return impl_->readers.read([](Database& db) { return query_rows<SessionRow>(db, "ORDER BY id"); });
}

std::optional<SessionRow> Store::session(SessionId id) const {
  return impl_->readers.read([id](Database& db) { return query_row<SessionRow>(db, "WHERE id = ?", id); });
}

std::optional<RecordRow> Store::record(const RecordId& id) const {
  return impl_->readers.read([&](Database& db) { return query_row<RecordRow>(db, "WHERE id = ?", id); });
}

std::vector<RecordRow> Store::records(const RecordFilter& filter, std::int64_t before_seq, int limit) const {
  return impl_->readers.read([&](Database& db) {
    const Conditions where = conditions_of(filter, before_seq);
    Statement s = db.prepare(select_from<RecordRow>() + where.sql + " ORDER BY seq DESC LIMIT ?");
    where.bind(s);
    s.bind_int(static_cast<int>(where.is_text.size()), limit);
    std::vector<RecordRow> rows;
    while (s.step()) rows.push_back(read_row<RecordRow>(s));
    return rows;
  });
}

std::vector<RecordRow> Store::records_after(std::int64_t after_seq, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<RecordRow>(db, "WHERE seq > ? ORDER BY seq LIMIT ?", after_seq, limit); });
}

std::vector<AnswerTimes> Store::answer_times_after(std::int64_t after_seq, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<AnswerTimes>(db, "WHERE seq > ? ORDER BY seq LIMIT ?", after_seq, limit); });
}

std::vector<FeedbackRow> Store::feedback_of(const RecordId& id) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<FeedbackRow>(db, "WHERE record = ? ORDER BY id", id); });
}

std::optional<RecordRow> Store::record_by_text(const std::string& prompt_digest, const std::string& shown,
                                               std::int64_t age_us) const {
  const std::int64_t since = impl_->now() - age_us;
  if (prompt_digest.empty() || shown.empty()) return std::nullopt;
  return impl_->readers.read([&](Database& db) {
    return query_row<RecordRow>(db,
                                "WHERE prompt_digest = ? AND prompt_digest <> '' AND purpose = 'live' AND served_us >= ? "
                                "AND instr(completion_text, ?) > 0 ORDER BY seq DESC LIMIT 1",
                                prompt_digest, since, shown);
  });
}

std::vector<FeedbackRow> Store::unmatched_feedback(std::int64_t after_id, int limit) const {
  return impl_->readers.read([&](Database& db) {
    return query_rows<FeedbackRow>(db, "WHERE state = 'unmatched' AND id > ? ORDER BY id LIMIT ?", after_id, limit);
  });
}

std::vector<FeedbackRow> Store::feedback_after(std::int64_t after_id, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<FeedbackRow>(db, "WHERE id > ? ORDER BY id LIMIT ?", after_id, limit); });
}

std::vector<LabelledRecord> Store::trainable(SessionId session, int limit) const {
  const std::int64_t now_us = impl_->now();
  return impl_->readers.read([&](Database& db) {
    std::vector<LabelledRecord> out;
    db.exec("BEGIN");  // one snapshot for the watermarks, the records and their labels
    std::vector<RecordRow> rows = query_rows<RecordRow>(
        db,
        "WHERE session = ? AND fate = 'waiting' AND (NOT EXISTS (SELECT 1 FROM record o WHERE " + std::string(kHolding) +
            " AND o.session = record.session AND o.stream = record.stream AND o.route = record.route AND o.seq < record.seq "
            "AND o.closes_us >= ?) OR EXISTS (SELECT 1 FROM feedback f WHERE f.record = record.id "
            "AND f.source = 'human' AND f.state = 'waiting' AND f.retracted = 0)) ORDER BY seq LIMIT ?",
        session, now_us, limit);
    for (RecordRow& row : rows) {
      LabelledRecord labelled;
      labelled.feedback = labels_that_count(db, row.id);
      labelled.record = std::move(row);
      out.push_back(std::move(labelled));
    }
    db.exec("COMMIT");
    return out;
  });
}

std::vector<RewardRow> Store::rewards_of(const RecordId& id) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<RewardRow>(db, "WHERE record = ? ORDER BY rowid", id); });
}

std::vector<BatchRow> Store::batches(SessionId session, std::int64_t after_id, int limit) const {
  return impl_->readers.read([&](Database& db) {
    return query_rows<BatchRow>(db, "WHERE session = ? AND id > ? ORDER BY id LIMIT ?", session, after_id, limit);
  });
}

BatchId Store::last_settled_batch(SessionId session) const {
  return impl_->readers.read([session](Database& db) {
    return query_value(db, BatchId(),
                       "SELECT id FROM batch WHERE session = ? AND (state <> 'formed' OR inverted) ORDER BY id DESC LIMIT 1", session);
  });
}

std::optional<BatchRow> Store::last_batch_with_baseline(SessionId session) const {
  return impl_->readers.read([session](Database& db) {
    return query_row<BatchRow>(db, "WHERE session = ? AND baseline_json <> '' ORDER BY id DESC LIMIT 1", session);
  });
}

std::vector<StepRow> Store::steps(SessionId session, std::int64_t after_id, int limit) const {
  return impl_->readers.read([&](Database& db) {
    return query_rows<StepRow>(db, "WHERE session = ? AND id > ? ORDER BY id LIMIT ?", session, after_id, limit);
  });
}

std::vector<MetricRow> Store::metrics(SessionId session, const std::string& name, std::int64_t after_seq, int limit) const {
  return impl_->readers.read([&](Database& db) {
    return query_rows<MetricRow>(db, "WHERE session = ? AND name = ? AND seq > ? ORDER BY seq LIMIT ?", session, name,
                                 after_seq, limit);
  });
}

std::vector<MetricRow> Store::metrics_after(std::int64_t after_seq, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<MetricRow>(db, "WHERE seq > ? ORDER BY seq LIMIT ?", after_seq, limit); });
}

std::vector<VersionRow> Store::versions() const {
  return impl_->readers.read([](Database& db) { return query_rows<VersionRow>(db, "ORDER BY id"); });
}

std::optional<VersionRow> Store::version(VersionId id) const {
  return impl_->readers.read([id](Database& db) { return query_row<VersionRow>(db, "WHERE id = ?", id); });
}

VersionId Store::serving_version() const {
  return impl_->readers.read([](Database& db) {
    return query_value(db, kBaseVersion, "SELECT version FROM serving ORDER BY seq DESC LIMIT 1");
  });
}

std::vector<DecisionRow> Store::decisions(std::int64_t after_id, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<DecisionRow>(db, "WHERE id > ? ORDER BY id LIMIT ?", after_id, limit); });
}

std::optional<DecisionRow> Store::decision(DecisionId id) const {
  return impl_->readers.read([id](Database& db) { return query_row<DecisionRow>(db, "WHERE id = ?", id); });
}

std::optional<DecisionRow> Store::latest_decision(VersionId version) const {
  return impl_->readers.read([version](Database& db) {
    return query_row<DecisionRow>(db, "WHERE version = ? ORDER BY id DESC LIMIT 1", version);
  });
}

DecisionId Store::last_decision_id() const {
  return impl_->readers.read(
      [](Database& db) { return query_value(db, DecisionId(), "SELECT max(id) FROM decision"); });
}

std::vector<EvidenceRow> Store::evidence(VersionId candidate) const {
  return impl_->readers.read([candidate](Database& db) {
    return query_rows<EvidenceRow>(db, "WHERE candidate = ? ORDER BY attempt, idx", candidate);
  });
}

std::optional<GateSettingsRow> Store::gate_settings() const {
  return impl_->readers.read([](Database& db) { return query_row<GateSettingsRow>(db, "ORDER BY id DESC LIMIT 1"); });
}

std::optional<GateSettingsRow> Store::gate_settings(SettingsId id) const {
  return impl_->readers.read([id](Database& db) { return query_row<GateSettingsRow>(db, "WHERE id = ?", id); });
}

std::vector<LogRow> Store::log_after(std::int64_t after_seq, int limit) const {
  return impl_->readers.read(
      [&](Database& db) { return query_rows<LogRow>(db, "WHERE seq > ? ORDER BY seq LIMIT ?", after_seq, limit); });
}

StoreCounts Store::counts(SessionId session) const {
  return impl_->readers.read([session](Database& db) {
    StoreCounts out;
    db.exec("BEGIN");  // one snapshot, so that the numbers add up
    Statement s = db.prepare(
        "SELECT purpose, fate, count(*) FROM record WHERE ?1 IS NULL OR session = ?1 GROUP BY purpose, fate");
    put(s, 0, session);
    while (s.step()) {
      const std::string fate = s.get_text(1);
      const std::int64_t n = s.get_int(2);
      out.records += n;
      if (s.get_text(0) != "live") continue;
      out.live_records += n;
      if (fate == "waiting" || fate == "batched") out.waiting += n;
      else if (fate == "trained") out.trained += n;
      else if (!fate.empty()) out.dropped[fate] += n;
    }
    Statement labels = db.prepare(
        "SELECT f.kind, count(*) FROM feedback f LEFT JOIN record r ON r.id = f.record WHERE f.retracted = 0 "
        "AND f.state <> 'replaced' AND (?1 IS NULL OR r.session = ?1) GROUP BY f.kind");
    put(labels, 0, session);
    while (labels.step()) {
      const std::int64_t n = labels.get_int(1);
      out.feedback += n;
      if (labels.get_text(0) == "accept") out.accepted = n;
      if (labels.get_text(0) == "reject") out.rejected = n;
    }
    Statement verdicts = db.prepare(
        "SELECT verdict, count(*) FROM decision WHERE kind = 'gate' AND (?1 IS NULL OR session = ?1) GROUP BY verdict");
    put(verdicts, 0, session);
    while (verdicts.step()) out.verdicts[verdicts.get_text(0)] = verdicts.get_int(1);
    db.exec("COMMIT");
    return out;
  });
}

}  // namespace sluice
