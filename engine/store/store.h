// SPDX-License-Identifier: GPL-3.0-or-later
// The workspace's database: one SQLite file, one writer thread with group commit (synchronous=FULL), read-only connections
// for readers. Every write returns after its commit. Thread-safe; reads never wait for the writer.
//
// Durable first: a caller that got an id back may rely on it after kill -9 or power loss. When the disk is full or fails,
// writes return kUnavailable and the store stays readable; it tries again on the next write.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/passes.h"
#include "base/result.h"
#include "store/events.h"
#include "store/label_windows.h"
#include "store/rows.h"

namespace sluice {

struct StoreOptions {
  std::string folder;                 // the workspace; made when missing
  const Clock* clock = nullptr;       // null = system
  LabelWindows windows = {};          // feedback later than its window is `late`
  std::int64_t max_database_bytes = 0;  // writes that would grow the file beyond this fail like a full disk; 0 = no limit
};

// Everything one decision changes; written in one transaction.
struct DecisionWrite {
  DecisionRow row;                                          // id, time, hashes are filled in
  std::vector<std::pair<VersionId, VersionState>> states;   // checked: an illegal transition fails the whole write
  std::optional<VersionId> serving;                         // new serving pointer, when the verdict moves it
};

struct FeedbackOutcome {
  FeedbackRow row;               // as stored; state says what will happen
  VersionId version;             // of the record; invalid without one
  std::string adapter_name;
  std::int64_t queue_position = 0;  // records waiting for the next batch, this one included
};

// A live record behind the watermark with its feedback, in serving order: what a batch is formed from.
struct LabelledRecord {
  RecordRow record;
  std::vector<FeedbackRow> feedback;  // not retracted, newest per source
};

// What forgetting a record means for training.
struct ForgetOutcome {
  SessionId session;
  StepId used_in_step;           // invalid: never trained on
  bool was_waiting = false;      // for the next batch; it will not be in it
  std::int64_t feedback = 0;     // labels redacted or deleted with it
};

struct RecordFilter {
  SessionId session;                    // invalid = all
  std::optional<VersionId> version;
  std::optional<Purpose> purpose;
  std::string text;                     // full-text search over prompt and completion; "" = all
  std::string conversation;             // "" = all
  std::string label;                    // "", "accept", "reject", "none"
  std::string fate;                     // "" = all
  bool without_human_label = false;     // for the labelling queue
};

struct StoreCounts {
  std::int64_t records = 0, live_records = 0, feedback = 0, accepted = 0, rejected = 0;
  std::int64_t waiting = 0;             // labelled, not yet trained
  std::int64_t trained = 0;
  std::map<std::string, std::int64_t> dropped;  // reason -> records
  std::map<std::string, std::int64_t> verdicts; // "promote", "reject", "hold" of kind "gate"
};

class Store {
 public:
  // Opens or makes the workspace. kConflict: another process holds its lock. kInvalidArgument: made by a newer Sluice.
  // A new workspace gets version 0 (base, serving) with its promote row, kind "startup".
  static Result<std::unique_ptr<Store>> open(const StoreOptions& options);
  ~Store();  // drains the writer, checkpoints, releases the lock
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  const std::string& folder() const;
  std::string adapter_folder(VersionId version) const;  // <folder>/adapters/<version>
  const std::string& split_salt() const;                // fixed with the workspace (gate.md §2)

  // Adds a listener for the store's life; call before traffic starts.
  void add_listener(StoreListener listener);

  // ---- writes (block until committed) ----
  Result<SessionId> add_session(SessionRow row);
  Status set_session_state(SessionId session, SessionState state);
  Result<RecordRow> add_record(RecordRow row);                       // fills seq, served_us
  // Takes everything out of a record that says what was asked and answered: texts, token ids, log-probs, conversation, and
  // the comments of its labels. Row, version, times and labels stay. One that was not trained on never will be.
  // kNotFound; kConflict while a step is being made of it.
  Result<ForgetOutcome> redact_record(const RecordId& id);
  // Deletes the row with its labels and rewards. kConflict besides where the gate's evidence names it.
  Result<ForgetOutcome> delete_record(const RecordId& id);
  // kNotFound: no such record. kConflict: same key, other content. Reopening a batch is never done: see serving.md §2.2.
  // Without a record the row is kept as `unmatched` (by_text) or `ignored`. A score of a record's second or later choice is
  // `ignored`: only the first one's log-probs are kept.
  Result<FeedbackOutcome> add_feedback(FeedbackRow row);
  // The same for many, in one commit; one that fails leaves the others. Fails whole only when nothing can be written.
  Result<std::vector<Result<FeedbackOutcome>>> add_feedback(std::vector<FeedbackRow> rows);
  Result<std::vector<FeedbackOutcome>> add_feedback_together(std::vector<FeedbackRow> rows);  // all or none
  // The last message of a conversation's next main turn: the judge's next state of its newest main record, which must be
  // younger than 30 minutes, the conversation not done, and without one. True when there was such a record.
  Result<bool> add_next_state(SessionId session, const std::string& conversation, const std::string& message_json);
  Result<FeedbackRow> retract_feedback(FeedbackId id, bool even_if_consumed);
  // Rows of a batch, its rewards, and the fate of the records it drops, in one transaction.
  Result<BatchId> add_batch(BatchRow batch, std::vector<RewardRow> rewards,
                            std::vector<std::pair<RecordId, std::string>> dropped);
  // The step, its metrics, batch state "trained", the records' used_in_step and fate, in one transaction.
  Result<StepId> add_step(StepRow step, std::vector<MetricRow> metrics);
  // With `value`, also that put_value (name, value), in one transaction: how far the points go.
  Status add_metrics(std::vector<MetricRow> metrics, const std::optional<std::pair<std::string, std::string>>& value = std::nullopt);
  // Reserves an id from the counter so that files can be written before the row; never reused, gaps are fine.
  Result<VersionId> reserve_version();
  Status add_version(VersionRow row);                                // id from reserve_version(); state must be kCandidate
  Status add_versions(std::vector<VersionRow> rows);                 // all or none
  // State changes without a decision (gate.md §1: "none (event)"); checked against the table there. `pruned` included.
  Status set_version_state(VersionId version, VersionState state);
  Status set_version_proven(VersionId version);
  Result<CommittedDecision> commit_decision(DecisionWrite write);
  // The decision that made the current serving version serve, read back at start-up.
  Result<CommittedDecision> serving_decision();
  Status add_evidence(std::vector<EvidenceRow> rows);
  Result<SettingsId> add_gate_settings(GateSettingsRow row);
  void add_log(LogRow row);                                          // queued; not waited for
  // Small durable values of runtime and trainer (names like "trainer.head"); overwritten whole.
  Status put_value(const std::string& name, const std::string& value);

  // ---- reads (own connection per call site; never block on the writer) ----
  std::optional<std::string> value(const std::string& name) const;
  std::vector<SessionRow> sessions() const;
  std::optional<SessionRow> session(SessionId id) const;
  std::optional<RecordRow> record(const RecordId& id) const;
  // Newest first, keyed by seq: rows with seq < before_seq (0 = from the newest).
  std::vector<RecordRow> records(const RecordFilter& filter, std::int64_t before_seq, int limit) const;
  std::vector<RecordRow> records_after(std::int64_t after_seq, int limit) const;  // oldest first
  std::vector<AnswerTimes> answer_times_after(std::int64_t after_seq, int limit) const;  // the same, without the contents
  // The newest live record whose prompt has this digest and whose completion holds `shown`, committed within `age_us`.
  std::optional<RecordRow> record_by_text(const std::string& prompt_digest, const std::string& shown,
                                          std::int64_t age_us) const;
  std::vector<FeedbackRow> feedback_of(const RecordId& id) const;
  std::vector<FeedbackRow> unmatched_feedback(std::int64_t after_id, int limit) const;  // ascending id
  std::vector<FeedbackRow> feedback_after(std::int64_t after_id, int limit) const;
  // Live, complete, train-split records of the session with a label that counts, behind the watermark, not consumed nor
  // dropped; at most `limit`, serving order (learning.md §2.2). Each stream has its watermark: its first record that holds
  // (RecordRow::holds) and has no label while its window is open; records labelled by a person do not wait for it (desk).
  // Unlabelled ones whose window passed get the fate `no_event` with the next write; a label whose own window is longer
  // brings them back.
  std::vector<LabelledRecord> trainable(SessionId session, int limit) const;
  std::vector<RewardRow> rewards_of(const RecordId& id) const;
  std::vector<BatchRow> batches(SessionId session, std::int64_t after_id, int limit) const;
  // The newest of the session that is done with: not "formed", or an inverted one. Invalid: none.
  BatchId last_settled_batch(SessionId session) const;
  std::optional<BatchRow> last_batch_with_baseline(SessionId session) const;
  std::vector<StepRow> steps(SessionId session, std::int64_t after_id, int limit) const;
  std::vector<MetricRow> metrics(SessionId session, const std::string& name, std::int64_t after_seq, int limit) const;
  std::vector<MetricRow> metrics_after(std::int64_t after_seq, int limit) const;  // all sessions and names
  std::vector<VersionRow> versions() const;                          // ascending id
  std::optional<VersionRow> version(VersionId id) const;
  VersionId serving_version() const;
  std::vector<DecisionRow> decisions(std::int64_t after_id, int limit) const;     // ascending id
  std::optional<DecisionRow> decision(DecisionId id) const;
  std::optional<DecisionRow> latest_decision(VersionId version) const;
  DecisionId last_decision_id() const;
  std::vector<EvidenceRow> evidence(VersionId candidate) const;      // ascending (attempt, index)
  std::optional<GateSettingsRow> gate_settings() const;              // newest
  std::optional<GateSettingsRow> gate_settings(SettingsId id) const;
  std::vector<LogRow> log_after(std::int64_t after_seq, int limit) const;
  StoreCounts counts(SessionId session) const;                       // invalid id = whole workspace

  // Everything `sluice-headless verify` checks in the database: integrity, foreign keys, the decision hash chain, that each
  // version that ever served has an earlier committed promote. One line per problem; empty = sound.
  std::vector<std::string> verify() const;
  // The hash chain alone: what start-up checks (gate.md §6).
  std::vector<std::string> verify_decisions() const;
  // Ok, or why the last read or write that failed for the file's or disk's sake did. A write that succeeds clears it.
  Status health() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  static CommittedDecision make_committed(DecisionId d, VersionId v, VersionId previous) { return {d, v, previous}; }
  std::unique_ptr<Impl> impl_;
};

// Is the change of state in gate.md §1's table?
bool legal_transition(VersionState from, VersionState to);
// What a prompt given as text is known by in feedback that names it by text; the second for one with a suffix.
std::string text_digest(std::string_view prompt);
std::string text_digest(std::string_view prefix, std::string_view suffix);
const char* version_state_name(VersionState state);
const char* verdict_name(Verdict verdict);
const char* feedback_kind_name(FeedbackKind kind);
const char* feedback_source_name(FeedbackSource source);
const char* session_state_name(SessionState state);

}  // namespace sluice
