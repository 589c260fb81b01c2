// SPDX-License-Identifier: GPL-3.0-or-later
// States of adapter versions and every way one comes to serve (gate.md §1, §6, §7). Order of a change: bytes checked and
// loaded -> one transaction {decision row, states, serving pointer} -> AdapterHost::publish -> notice. Thread-safe: changes
// run one after another, callers wait for their turn. Callbacks run on the caller's thread, after the change.
//
// Freezing and the pinned anchor are read from the decision rows themselves, so they cannot disagree with them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "base/passes.h"
#include "base/result.h"
#include "model_api/adapter.h"
#include "store/store.h"

namespace sluice {

struct SwapNotice {
  VersionId from, to;
  std::int64_t microseconds = 0;  // publish call to visible pointer
};

struct RegistryOptions {
  int keep_last = 16;      // never-served versions whose files stay; served ones always keep theirs
  int keep_resident = 5;   // promoted versions held in memory, so that a roll-back loads nothing
  // Versions clients may ask for by number (states serving, canary, retired). For AdapterSlots::set_pinnable.
  std::function<void(std::set<VersionId>)> on_pinnable;
  // Versions that must be at hand for the gate: the canary and the last proven one. For AdapterSlots::set_kept.
  std::function<void(std::set<VersionId>)> on_kept;
  std::function<void(const DecisionRow&)> on_decision;  // every committed decision, whoever made it
  std::function<void(const SwapNotice&)> on_swap;
  const Log* log = nullptr;
};

enum class ManualAction { kPromote, kReject, kHold, kRollback, kPinAnchor, kFreeze, kUnfreeze };
const char* manual_action_name(ManualAction action);
Result<ManualAction> parse_manual_action(std::string_view text);

struct ManualRequest {
  ManualAction action = ManualAction::kHold;
  VersionId version;       // ignored by freeze and unfreeze
  std::string actor;       // required
  std::string note;        // required
  SessionId session;       // written on the row; may be invalid
  std::optional<DecisionId> latest;  // what the operator saw: the decision is made only while this is the newest one
};

// Numbers and sentence of a gate verdict, ready but for ids, states and hashes.
struct GateVerdict {
  DecisionRow row;         // version, incumbent, verdict, reason ... ; kind becomes "gate"
};

struct StartReport {
  VersionId serving;
  bool recovered = false;  // the stored serving version was unusable and another took over
  std::string note;        // one sentence for the notice; "" when all was well
};

class Registry {
 public:
  Registry(Store& store, AdapterHost& host, RegistryOptions options);
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;

  // Once, before any request: the serving version is read from the store and published. Damaged or missing bytes: the last
  // proven version, else the base, takes over by a decision of kind "startup". Fails only when not even the base can serve.
  Result<StartReport> start();

  // Leave to generate with any version that has bytes. kNotFound: no such version, or its files are pruned.
  Result<VersionPass> make_pass(VersionId version) const;
  // Checks a version's bytes and keeps it loaded until let_go(). kCorrupt, kNotFound: the version can't be used.
  Status keep_loaded(VersionId version);
  void let_go(VersionId version);

  // candidate or held -> evaluating (or still so, after a restart); older waiting candidates become superseded. kConflict
  // while another is evaluated.
  Status begin_evaluation(VersionId version);
  // The newest candidate that waits, whatever its line.
  std::optional<VersionId> newest_candidate() const;
  std::optional<VersionId> evaluating() const;

  // Commits a verdict of the gate for the version under evaluation, and publishes it when it is promote. kConflict when
  // the version is not evaluating any more, its incumbent has changed, or a promote meets a frozen registry: nothing is written.
  Result<DecisionRow> apply(GateVerdict verdict);
  // An operator's decision. kInvalidArgument without actor or note; kConflict where gate.md §1 has no such transition, frozen,
  // or another decision than `latest` is the newest (kStale); kCorrupt when the version's bytes are damaged: that cannot be forced.
  Result<DecisionRow> act(const ManualRequest& request);
  // Roll-back without a person: the serving version is quarantined for harm; the last proven version, else the base, serves.
  Result<DecisionRow> roll_back_for_harm(const std::string& reason_code, const std::string& reason_text);

  // Deletes the files of versions; their rows stay, in state pruned. All or none of them: kNotFound; kConflict for a state
  // that forbids it and for the anchor and the last proven version (gate.md §1).
  Status prune(const std::vector<VersionId>& versions);
  Status prune(VersionId version) { return prune(std::vector<VersionId>{version}); }

  VersionId serving() const;
  bool frozen() const;
  VersionId anchor() const;          // version 0 until an operator pins another
  VersionId last_proven() const;     // newest proven version that can still serve, else the base
  // Would promoting it by hand be "forced"? With the sentence of its latest gate decision, or why there is none.
  struct Unmet {
    bool forced = false;
    std::string why;
  };
  Unmet unmet_limits(VersionId version) const;

 private:
  class Turn;    // one change at a time, without holding a lock while the store or the host works
  struct Outbox;  // what the callbacks are told once the turn is over

  struct Change {
    DecisionRow row;
    std::vector<std::pair<VersionId, VersionState>> states;
    std::optional<VersionId> serving;
  };
  struct GateWord {
    Verdict verdict = Verdict::kHold;
    bool forced = false;
    std::string text;
  };

  Result<StartReport> start_in_turn(Outbox& out);
  Result<DecisionRow> act_in_turn(const ManualRequest& request, Outbox& out);
  Result<DecisionRow> apply_in_turn(DecisionRow row, Outbox& out);
  Result<DecisionRow> promote_by_hand(const ManualRequest& request, const VersionRow& version, Outbox& out);
  Result<DecisionRow> roll_back_by_hand(const ManualRequest& request, const VersionRow& version, Outbox& out);
  Result<DecisionRow> harm_in_turn(const std::string& code, const std::string& text, Outbox& out);
  Result<StartReport> recover(VersionId damaged, const Status& why, Outbox& out);
  Result<DecisionRow> commit(Change change, Outbox& out);
  Result<DecisionRow> commit_promotion(Change change, const VersionRow& target, Outbox& out);
  Result<DecisionRow> take_back(VersionId failed, VersionId previous, const Status& why, Outbox& out);

  Result<VersionRow> find(VersionId version) const;
  Status make_usable(const VersionRow& version);  // bytes checked, loaded and held
  Result<std::int64_t> publish(const CommittedDecision& decision);
  DecisionRow manual_row(const ManualRequest& request, const VersionRow& version) const;
  // The row that puts `target` in the place of `left` without a person or a measurement asking for it. The caller adds kind,
  // actor, stage and reason.
  DecisionRow automatic_row(const VersionRow& target, VersionId left) const;
  // Candidates, waiting or under measurement, that grew out of `ancestor`: they fall with it.
  std::vector<std::pair<VersionId, VersionState>> superseded_descendants(VersionId ancestor) const;
  void read_rows();
  void note_row(const DecisionRow& row);
  void hold_resident(VersionId version);
  void prune_files();
  Status may_prune(VersionId version) const;
  Status prune_in_turn(VersionId version);
  void remove_files(VersionId version) const;
  void flush(Outbox& out);
  void log(LogLevel level, const std::string& text) const;

  Store& store_;
  AdapterHost& host_;
  const RegistryOptions options_;

  mutable Mutex mu_;
  CondVar turn_free_;
  bool turn_taken_ SLUICE_GUARDED_BY(mu_) = false;
  bool frozen_ SLUICE_GUARDED_BY(mu_) = false;
  VersionId anchor_ SLUICE_GUARDED_BY(mu_) = kBaseVersion;
  std::vector<VersionId> resident_ SLUICE_GUARDED_BY(mu_);  // newest first, each prepared once
  std::map<VersionId, GateWord> gate_words_ SLUICE_GUARDED_BY(mu_);  // latest verdict of kind "gate" about a version
};

}  // namespace sluice
