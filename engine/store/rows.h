// SPDX-License-Identifier: GPL-3.0-or-later
// Plain values for the rows of a workspace's database. Never shared between threads; copied or moved.
// Times are microseconds since 1970 UTC. Fields that end in _json hold a JSON text made by their writer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"

namespace sluice {

enum class SessionState { kRunning, kPaused, kEnded };

struct SessionRow {
  SessionId id;
  std::string name;
  std::string recipe_name;
  std::string recipe_json;   // the whole recipe as started
  std::string conditions_json;  // model, hash, threads, CPU, program version: written next to every curve
  std::uint64_t seed = 0;
  SessionState state = SessionState::kRunning;
  bool live_only = false;    // no simulated user: traffic and labels come from outside
  std::int64_t started_us = 0;
  std::int64_t ended_us = 0;
};

enum class Split { kTrain, kHeldOut };
// What the exchange was for. Only kLive answers reach clients; only kLive can train.
enum class Purpose { kLive, kGate, kProbe };

struct RecordRow {
  std::int64_t seq = 0;      // append order, from 1; set by the store
  RecordId id;
  SessionId session;         // invalid outside a session
  std::string conversation;
  // "main": a turn of the conversation that may train, and whose next one holds the judge's next state; "side": never
  // trains; "" outside a conversation.
  std::string turn;
  bool conversation_done = false;  // no turn follows this one
  std::string next_state;    // last message of the next main turn, as JSON; "" while there is none
  std::string stream;        // name the client gave its stream of requests (store/label_windows.h); "" = none
  std::string tags_json;     // what the client tagged the request with, an object; "" = nothing
  VersionId version;
  std::string adapter_name;  // "be-brief@3" or "base"
  Purpose purpose = Purpose::kLive;
  Split split = Split::kTrain;
  std::string route;         // "chat", "completions", "gate"
  std::string group_key;     // split and clustering unit
  std::string prompt_text;   // what people read: last user message, or the raw prompt
  std::string prompt_json;   // messages as sent (chat), or empty
  std::string prompt_digest; // what feedback by text is matched with (text_digest()); "" = never matched
  std::string completion_text;
  std::vector<std::int32_t> prompt_ids;
  std::vector<std::int32_t> token_ids;   // sampled ids, EOS included when sampled
  std::vector<float> lp_full;            // one per token id
  std::vector<float> lp_mu;              // one per token id
  float temperature = 1.0f;
  float top_p = 1.0f;
  float min_p = 0.0f;
  int top_k = 0;
  int max_tokens = 0;
  std::uint64_t seed = 0;
  std::string sampling_json;    // the rest of the sampling parameters
  std::string finish_reason;    // "stop", "length", "cancelled", "error"
  bool complete = true;         // false: cancelled or failed exchange
  std::int64_t received_us = 0;
  std::int64_t served_us = 0;   // commit time; set by the store
  std::int64_t closes_us = 0;   // no label by then: `no_event`; set by the store
  bool holds = false;           // while it is open, later records of its stream wait (store/label_windows.h)
  std::int64_t queue_us = 0;
  std::int64_t prefill_us = 0;
  std::int64_t decode_us = 0;
  StepId used_in_step;          // set when a step trained on it
  std::string fate;             // "" (no label yet), "waiting", "batched", "trained", or the drop reason of learning.md §3.1
};

// How long the answer of a record took, without its contents.
struct AnswerTimes {
  std::int64_t seq = 0;
  Purpose purpose = Purpose::kLive;
  bool complete = true;
  std::int64_t queue_us = 0, prefill_us = 0, decode_us = 0;
};

enum class FeedbackKind { kAccept, kReject, kScore, kSilent };
enum class FeedbackSource { kHuman, kJudge, kVerifier, kClient, kPersona };

struct FeedbackRow {
  FeedbackId id;
  RecordId record;             // invalid: none was found by text, or a report that names none
  int choice = 0;
  FeedbackKind kind = FeedbackKind::kAccept;
  double score = 0;            // when kind is kScore
  FeedbackSource source = FeedbackSource::kClient;
  std::string labeller;
  std::string reason;          // "" or the rule that failed, as the source says
  std::string comment;
  std::string key;             // idempotency key, "" = none
  std::string metadata_json;
  // Of feedback that names its record by text: digest of the prompt, the text that was shown, how many of the record's
  // tokens that is (-1 = all; later ones are not trained), and did the client show it out of its own cache?
  bool by_text = false;
  std::string prompt_digest;
  std::string shown;
  std::int64_t shown_tokens = -1;
  bool cache_hit = false;
  std::int64_t time_us = 0;    // set by the store
  // Of serving.md §2.2: waiting, duplicate (answered, never stored), late, consumed, held_out, unmatched, ignored. Later a
  // waiting row becomes `replaced` (newer label of its source) or `used` (in a batch).
  std::string state;
  bool retracted = false;
};

struct RewardRow {
  RecordId record;
  double value = 0;            // in [-1, 1]
  FeedbackSource source = FeedbackSource::kClient;
  double baseline = 0;
  double advantage = 0;
  std::string reason;
};

struct BatchRow {
  BatchId id;
  SessionId session;
  std::vector<RecordId> records;      // serving order
  std::vector<double> rewards;
  std::vector<double> advantages;
  std::vector<double> weights;
  std::string baseline_json;          // sums before and after
  std::int64_t head_step = 0;         // step number this batch produces
  std::uint64_t seed = 0;
  bool inverted = false;              // rewards negated on purpose: the demo's deliberately bad candidate
  std::string state;                  // "formed", "trained", "discarded"
  std::int64_t time_us = 0;
};

struct StepRow {
  StepId id;
  SessionId session;
  BatchId batch;
  std::int64_t number = 0;            // along the head's line, from 1
  VersionId candidate;                // when this step wrote one
  double loss = 0, kl_base = 0, entropy = 0, clip_fraction = 0, truncated_fraction = 0;
  double reward_mean = 0, grad_norm = 0, mean_length = 0, mean_age = 0;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::string stats_json;
  std::int64_t time_us = 0;
};

// A point of a curve. x is the number of live requests of the session at that moment.
struct MetricRow {
  std::int64_t seq = 0;
  SessionId session;
  std::string name;       // "accept", "loss", "kl_base", "reward_mean", "entropy", "length", "tokens_per_s", "rejection_rate" ...
  double x = 0;
  double value = 0;
  std::int64_t time_us = 0;
};

enum class VersionState {
  kCandidate, kEvaluating, kHeld, kCanary, kServing, kRetired, kRejected, kSuperseded, kQuarantined, kPruned
};

struct VersionRow {
  VersionId id;                // 0 = base; from one counter, never reused
  std::string name;            // "be-brief"; on the wire name@id
  VersionId parent;            // version whose tensors the trainer started the line from
  SessionId session;
  VersionState state = VersionState::kCandidate;
  std::string origin;          // "base", "step", "import"
  std::string label;           // "" or e.g. "deliberately bad"
  std::int64_t head_step = 0;  // steps behind it along its line
  StepId step;
  std::string content_hash;    // "" for the base
  std::int64_t bytes = 0;
  int rank = 0;
  std::int64_t created_us = 0;
  std::int64_t state_us = 0;   // when the state last changed
  bool proven = false;         // a watch after promotion ended without harm
};

enum class Verdict { kPromote, kReject, kHold };

// gate.md §6. Append-only; hash = SHA-256(prev_hash ‖ canonical row).
struct DecisionRow {
  DecisionId id;
  SessionId session;
  std::int64_t time_us = 0;
  std::string prev_hash, hash;     // set by the store
  VersionId version, parent, incumbent, anchor;
  std::string content_hash;
  Verdict verdict = Verdict::kHold;
  std::string scope;               // "full", "canary", ""
  std::string kind;                // "gate", "manual", "rollback", "startup"
  bool automatic = false, forced = false;
  std::string actor;               // "gate", "operator", a name
  std::string reason_code;         // "better", "harm", "inconclusive", "kl_base", "no_change" ...
  std::string reason_text;         // one sentence made from the numbers
  SettingsId settings;
  std::string stage;               // "invariants", "ope", "shadow", "anchor", "manual"
  std::string metric;
  std::uint64_t seed = 0;
  std::int64_t n = 0, voids = 0, wins = 0, losses = 0, ties = 0;
  double mean_d = 0, lo = 0, hi = 0, log_e = 0, log_f = 0, log_ea = 0, log_ha = 0;
  std::int64_t candidate_k = 0, candidate_n = 0, incumbent_k = 0, incumbent_n = 0, anchor_k = 0, anchor_n = 0;
  std::string invariants_json, protected_json, extra_json;
  bool same_signal = false, moved_in_flight = false, thin = false;
  double duration_s = 0;
  std::int64_t tokens_spent = 0;
  std::string note;                // of a person
};

// One pair of a shadow evaluation. Never deleted while a decision stands on it.
struct EvidenceRow {
  std::int64_t seq = 0;
  VersionId candidate, incumbent, anchor;
  std::int64_t attempt = 0;        // evaluation number of this candidate; restarts when the incumbent changes
  std::int64_t index = 0;          // position in the seeded permutation
  std::string prompt_id;           // within the held-out set
  std::string group;
  std::uint64_t seed = 0;
  double candidate_score = 0, incumbent_score = 0, anchor_score = 0;        // main metric, in [0, 1]
  double candidate_protected = 0, incumbent_protected = 0, anchor_protected = 0;  // protected metric, in [0, 1]
  std::string void_reason;         // "" = counts
  RecordId candidate_record, incumbent_record, anchor_record;
};

struct GateSettingsRow {
  SettingsId id;
  std::int64_t time_us = 0;
  std::string who, note, profile;
  std::string settings_json;       // release/gate.h GateSettings as JSON
};

struct LogRow {
  std::int64_t seq = 0;
  std::int64_t time_us = 0;
  std::string level;      // debug, info, warning, error
  std::string category;   // session, train, gate, serve, http, store, ...
  std::string text;
  std::string link;       // "version:5", "record:rec_..", "step:3" or ""
};

}  // namespace sluice
