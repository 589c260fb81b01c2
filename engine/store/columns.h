// SPDX-License-Identifier: GPL-3.0-or-later
// Which column holds which field. One list per row type serves INSERT, SELECT and the canonical text of the hash chain.
// Internal to engine/store; free functions, no shared state. The first column of a list is the row's key.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "store/database.h"
#include "store/names.h"
#include "store/rows.h"

namespace sluice {

// ---- one value: bind at a parameter, read from a column ----
inline void put(Statement& s, int i, std::int64_t v) { s.bind_int(i, v); }
inline void put(Statement& s, int i, int v) { s.bind_int(i, v); }
inline void put(Statement& s, int i, bool v) { s.bind_int(i, v ? 1 : 0); }
inline void put(Statement& s, int i, std::uint64_t v) { s.bind_int(i, static_cast<std::int64_t>(v)); }
inline void put(Statement& s, int i, double v) { s.bind_double(i, v); }
inline void put(Statement& s, int i, float v) { s.bind_double(i, v); }
inline void put(Statement& s, int i, std::string_view v) { s.bind_text(i, v); }
inline void put(Statement& s, int i, const std::string& v) { s.bind_text(i, v); }
inline void put(Statement& s, int i, const char* v) { s.bind_text(i, v); }
inline void put(Statement& s, int i, const RecordId& v) { v.valid() ? s.bind_text(i, v.text) : s.bind_null(i); }
template <class Tag>
void put(Statement& s, int i, const Id<Tag>& v) {
  v.valid() ? s.bind_int(i, v.value) : s.bind_null(i);
}
template <class E>
  requires std::is_enum_v<E>
void put(Statement& s, int i, E v) {
  s.bind_text(i, EnumNames<E>::kNames[static_cast<std::size_t>(v)]);
}
template <class T>
  requires std::is_arithmetic_v<T>
void put(Statement& s, int i, const std::vector<T>& v) {
  s.bind_blob(i, v.data(), v.size() * sizeof(T));
}
inline void put(Statement& s, int i, const std::vector<RecordId>& v) {
  std::string joined;
  for (const RecordId& id : v) joined += id.text + "\n";
  s.bind_text(i, joined);
}

inline void get(const Statement& s, int i, std::int64_t& v) { v = s.get_int(i); }
inline void get(const Statement& s, int i, int& v) { v = static_cast<int>(s.get_int(i)); }
inline void get(const Statement& s, int i, bool& v) { v = s.get_int(i) != 0; }
inline void get(const Statement& s, int i, std::uint64_t& v) { v = static_cast<std::uint64_t>(s.get_int(i)); }
inline void get(const Statement& s, int i, double& v) { v = s.get_double(i); }
inline void get(const Statement& s, int i, float& v) { v = static_cast<float>(s.get_double(i)); }
inline void get(const Statement& s, int i, std::string& v) { v = s.get_text(i); }
inline void get(const Statement& s, int i, RecordId& v) { v.text = s.get_text(i); }
template <class Tag>
void get(const Statement& s, int i, Id<Tag>& v) {
  v.value = s.is_null(i) ? -1 : s.get_int(i);
}
template <class E>
  requires std::is_enum_v<E>
void get(const Statement& s, int i, E& v) {
  const std::string name = s.get_text(i);
  for (std::size_t k = 0; k < EnumNames<E>::kNames.size(); ++k) {
    if (name == EnumNames<E>::kNames[k]) v = static_cast<E>(k);
  }
}
template <class T>
  requires std::is_arithmetic_v<T>
void get(const Statement& s, int i, std::vector<T>& v) {
  const std::string_view bytes = s.get_blob(i);
  v.resize(bytes.size() / sizeof(T));
  if (!v.empty()) std::memcpy(v.data(), bytes.data(), v.size() * sizeof(T));
}
inline void get(const Statement& s, int i, std::vector<RecordId>& v) {
  const std::string joined = s.get_text(i);
  v.clear();
  for (std::size_t from = 0; from < joined.size();) {
    const std::size_t to = joined.find('\n', from);
    v.push_back({joined.substr(from, to - from)});
    from = to == std::string::npos ? joined.size() : to + 1;
  }
}

// ---- the lists ----
template <class Row>
struct Table;

template <>
struct Table<SessionRow> {
  static constexpr std::string_view kName = "session";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("name", r.name), f("recipe_name", r.recipe_name), f("recipe_json", r.recipe_json);
    f("conditions_json", r.conditions_json), f("seed", r.seed), f("state", r.state), f("live_only", r.live_only);
    f("started_us", r.started_us), f("ended_us", r.ended_us);
  }
};

template <>
struct Table<RecordRow> {
  static constexpr std::string_view kName = "record";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("seq", r.seq), f("id", r.id), f("session", r.session), f("conversation", r.conversation), f("version", r.version);
    f("turn", r.turn), f("conversation_done", r.conversation_done), f("next_state", r.next_state);
    f("stream", r.stream), f("tags_json", r.tags_json), f("prompt_digest", r.prompt_digest);
    f("closes_us", r.closes_us), f("holds", r.holds);
    f("adapter_name", r.adapter_name), f("purpose", r.purpose), f("split", r.split), f("route", r.route);
    f("group_key", r.group_key), f("prompt_text", r.prompt_text), f("prompt_json", r.prompt_json);
    f("completion_text", r.completion_text), f("prompt_ids", r.prompt_ids), f("token_ids", r.token_ids);
    f("lp_full", r.lp_full), f("lp_mu", r.lp_mu), f("temperature", r.temperature), f("top_p", r.top_p);
    f("min_p", r.min_p), f("top_k", r.top_k), f("max_tokens", r.max_tokens), f("seed", r.seed);
    f("sampling_json", r.sampling_json), f("finish_reason", r.finish_reason), f("complete", r.complete);
    f("received_us", r.received_us), f("served_us", r.served_us), f("queue_us", r.queue_us);
    f("prefill_us", r.prefill_us), f("decode_us", r.decode_us), f("used_in_step", r.used_in_step), f("fate", r.fate);
  }
};

template <>
struct Table<AnswerTimes> {
  static constexpr std::string_view kName = "record";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("seq", r.seq), f("purpose", r.purpose), f("complete", r.complete);
    f("queue_us", r.queue_us), f("prefill_us", r.prefill_us), f("decode_us", r.decode_us);
  }
};

template <>
struct Table<FeedbackRow> {
  static constexpr std::string_view kName = "feedback";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("record", r.record), f("choice", r.choice), f("kind", r.kind), f("score", r.score);
    f("source", r.source), f("labeller", r.labeller), f("reason", r.reason), f("comment", r.comment), f("key", r.key);
    f("metadata_json", r.metadata_json), f("time_us", r.time_us), f("state", r.state), f("retracted", r.retracted);
    f("by_text", r.by_text), f("prompt_digest", r.prompt_digest), f("shown", r.shown);
    f("shown_tokens", r.shown_tokens), f("cache_hit", r.cache_hit);
  }
};

template <>
struct Table<RewardRow> {
  static constexpr std::string_view kName = "reward";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("record", r.record), f("value", r.value), f("source", r.source), f("baseline", r.baseline);
    f("advantage", r.advantage), f("reason", r.reason);
  }
};

template <>
struct Table<BatchRow> {
  static constexpr std::string_view kName = "batch";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("session", r.session), f("records", r.records), f("rewards", r.rewards);
    f("advantages", r.advantages), f("weights", r.weights), f("baseline_json", r.baseline_json);
    f("head_step", r.head_step), f("seed", r.seed), f("inverted", r.inverted), f("state", r.state);
    f("time_us", r.time_us);
  }
};

template <>
struct Table<StepRow> {
  static constexpr std::string_view kName = "step";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("session", r.session), f("batch", r.batch), f("number", r.number), f("candidate", r.candidate);
    f("loss", r.loss), f("kl_base", r.kl_base), f("entropy", r.entropy), f("clip_fraction", r.clip_fraction);
    f("truncated_fraction", r.truncated_fraction), f("reward_mean", r.reward_mean), f("grad_norm", r.grad_norm);
    f("mean_length", r.mean_length), f("mean_age", r.mean_age), f("tokens", r.tokens), f("seconds", r.seconds);
    f("stats_json", r.stats_json), f("time_us", r.time_us);
  }
};

template <>
struct Table<MetricRow> {
  static constexpr std::string_view kName = "metric";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("seq", r.seq), f("session", r.session), f("name", r.name), f("x", r.x), f("value", r.value);
    f("time_us", r.time_us);
  }
};

template <>
struct Table<VersionRow> {
  static constexpr std::string_view kName = "version";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("name", r.name), f("parent", r.parent), f("session", r.session), f("state", r.state);
    f("origin", r.origin), f("label", r.label), f("head_step", r.head_step), f("step", r.step);
    f("content_hash", r.content_hash), f("bytes", r.bytes), f("rank", r.rank), f("created_us", r.created_us);
    f("state_us", r.state_us), f("proven", r.proven);
  }
};

template <>
struct Table<DecisionRow> {
  static constexpr std::string_view kName = "decision";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("session", r.session), f("time_us", r.time_us), f("prev_hash", r.prev_hash), f("hash", r.hash);
    f("version", r.version), f("parent", r.parent), f("incumbent", r.incumbent), f("anchor", r.anchor);
    f("content_hash", r.content_hash), f("verdict", r.verdict), f("scope", r.scope), f("kind", r.kind);
    f("automatic", r.automatic), f("forced", r.forced), f("actor", r.actor), f("reason_code", r.reason_code);
    f("reason_text", r.reason_text), f("settings", r.settings), f("stage", r.stage), f("metric", r.metric);
    f("seed", r.seed), f("n", r.n), f("voids", r.voids), f("wins", r.wins), f("losses", r.losses), f("ties", r.ties);
    f("mean_d", r.mean_d), f("lo", r.lo), f("hi", r.hi), f("log_e", r.log_e), f("log_f", r.log_f);
    f("log_ea", r.log_ea), f("log_ha", r.log_ha), f("candidate_k", r.candidate_k), f("candidate_n", r.candidate_n);
    f("incumbent_k", r.incumbent_k), f("incumbent_n", r.incumbent_n), f("anchor_k", r.anchor_k);
    f("anchor_n", r.anchor_n), f("invariants_json", r.invariants_json), f("protected_json", r.protected_json);
    f("extra_json", r.extra_json), f("same_signal", r.same_signal), f("moved_in_flight", r.moved_in_flight);
    f("thin", r.thin), f("duration_s", r.duration_s), f("tokens_spent", r.tokens_spent), f("note", r.note);
  }
};

template <>
struct Table<EvidenceRow> {
  static constexpr std::string_view kName = "evidence";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("seq", r.seq), f("candidate", r.candidate), f("incumbent", r.incumbent), f("anchor", r.anchor);
    f("attempt", r.attempt), f("idx", r.index), f("prompt_id", r.prompt_id), f("grp", r.group), f("seed", r.seed);
    f("candidate_score", r.candidate_score), f("incumbent_score", r.incumbent_score);
    f("anchor_score", r.anchor_score), f("candidate_protected", r.candidate_protected);
    f("incumbent_protected", r.incumbent_protected), f("anchor_protected", r.anchor_protected);
    f("void_reason", r.void_reason), f("candidate_record", r.candidate_record);
    f("incumbent_record", r.incumbent_record), f("anchor_record", r.anchor_record);
  }
};

template <>
struct Table<GateSettingsRow> {
  static constexpr std::string_view kName = "gate_settings";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("id", r.id), f("time_us", r.time_us), f("who", r.who), f("note", r.note), f("profile", r.profile);
    f("settings_json", r.settings_json);
  }
};

template <>
struct Table<LogRow> {
  static constexpr std::string_view kName = "log";
  template <class R, class F>
  static void each(R& r, F&& f) {
    f("seq", r.seq), f("time_us", r.time_us), f("level", r.level), f("category", r.category), f("text", r.text);
    f("link", r.link);
  }
};

// ---- statements made from the lists ----
template <class Row>
const std::string& column_list() {
  static const std::string list = [] {
    std::string out;
    Row row;
    Table<Row>::each(row, [&](const char* name, auto&) { out += (out.empty() ? "" : ",") + std::string(name); });
    return out;
  }();
  return list;
}

template <class Row>
const std::string& select_from() {  // "SELECT a,b,c FROM table "
  static const std::string sql = "SELECT " + column_list<Row>() + " FROM " + std::string(Table<Row>::kName) + " ";
  return sql;
}

template <class Row>
const std::string& insert_into() {
  static const std::string sql = [] {
    std::string marks;
    Row row;
    Table<Row>::each(row, [&](const char*, auto&) { marks += marks.empty() ? "?" : ",?"; });
    return "INSERT INTO " + std::string(Table<Row>::kName) + "(" + column_list<Row>() + ") VALUES (" + marks + ")";
  }();
  return sql;
}

// A key that is 0 (seq) or invalid (id) is given out by the database. Returns the row id.
template <class Row>
std::int64_t insert(Database& db, const Row& row) {
  Statement s = db.prepare(insert_into<Row>());
  int i = 0;
  Table<Row>::each(row, [&](const char*, const auto& field) {
    put(s, i, field);
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::int64_t>) {
      if (i == 0 && field == 0) s.bind_null(0);
    }
    ++i;
  });
  s.step();
  return db.last_rowid();
}

template <class Row>
Row read_row(const Statement& s) {
  Row row;
  int i = 0;
  Table<Row>::each(row, [&](const char*, auto& field) { get(s, i++, field); });
  return row;
}

// Runs `sql` (parameters bound in order) to its end, for statements that return nothing of interest.
template <class... Args>
void run(Database& db, std::string_view sql, const Args&... args) {
  Statement s = db.prepare(sql);
  int i = 0;
  (put(s, i++, args), ...);
  while (s.step()) {
  }
}

// First column of the first row; `fallback` when there is none or it is NULL.
template <class T = std::int64_t, class... Args>
T query_value(Database& db, T fallback, std::string_view sql, const Args&... args) {
  Statement s = db.prepare(sql);
  int i = 0;
  (put(s, i++, args), ...);
  if (!s.step()) return fallback;
  if (!s.is_null(0)) get(s, 0, fallback);
  while (s.step()) {  // a writing statement is done only at its end
  }
  return fallback;
}

// `tail` follows "SELECT ... FROM table ".
template <class Row, class... Args>
std::vector<Row> query_rows(Database& db, std::string_view tail, const Args&... args) {
  Statement s = db.prepare(select_from<Row>() + std::string(tail));
  int i = 0;
  (put(s, i++, args), ...);
  std::vector<Row> rows;
  while (s.step()) rows.push_back(read_row<Row>(s));
  return rows;
}

template <class Row, class... Args>
std::optional<Row> query_row(Database& db, std::string_view tail, const Args&... args) {
  std::vector<Row> rows = query_rows<Row>(db, tail, args...);
  if (rows.empty()) return std::nullopt;
  return std::move(rows.front());
}

}  // namespace sluice
