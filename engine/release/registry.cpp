// SPDX-License-Identifier: GPL-3.0-or-later
// Ways to serve, freezing, evaluation states. Start-up, recovery, files and memory: registry_upkeep.cpp.
#include "release/registry.h"

#include <algorithm>

#include "release/registry_turn.h"
#include "release/sentence.h"

namespace sluice {

const char* manual_action_name(ManualAction action) {
  switch (action) {
    case ManualAction::kPromote: return "promote";
    case ManualAction::kReject: return "reject";
    case ManualAction::kHold: return "hold";
    case ManualAction::kRollback: return "rollback";
    case ManualAction::kPinAnchor: return "pin_anchor";
    case ManualAction::kFreeze: return "freeze";
    case ManualAction::kUnfreeze: return "unfreeze";
  }
  return "unknown";
}

Result<ManualAction> parse_manual_action(std::string_view text) {
  for (const ManualAction a : {ManualAction::kPromote, ManualAction::kReject, ManualAction::kHold, ManualAction::kRollback,
                               ManualAction::kPinAnchor, ManualAction::kFreeze, ManualAction::kUnfreeze}) {
    if (text == manual_action_name(a)) return a;
  }
  return invalid_argument("action \"" + std::string(text) +
                          "\" is unknown: use promote, reject, hold, rollback, pin_anchor, freeze or unfreeze");
}

Registry::Turn::Turn(Registry& registry) : registry_(registry) {
  MutexLock lock(registry_.mu_);
  while (registry_.turn_taken_) registry_.turn_free_.wait(registry_.mu_);
  registry_.turn_taken_ = true;
}

Registry::Turn::~Turn() {
  MutexLock lock(registry_.mu_);
  registry_.turn_taken_ = false;
  registry_.turn_free_.notify_one();
}

Registry::Registry(Store& store, AdapterHost& host, RegistryOptions options)
    : store_(store), host_(host), options_(std::move(options)) {}

Result<VersionRow> Registry::find(VersionId version) const {
  auto row = store_.version(version);
  if (!row) return not_found("there is no version " + std::to_string(version.value));
  return *std::move(row);
}

Result<VersionPass> Registry::make_pass(VersionId version) const {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find(version));
  if (row.state == VersionState::kPruned) return not_found("the files of " + version_text(version) + " were pruned");
  return VersionPass(version);
}

Status Registry::begin_evaluation(VersionId version) {
  Turn turn(*this);
  for (const VersionRow& row : store_.versions()) {
    if (row.state == VersionState::kEvaluating && row.id != version) {
      return conflict(version_text(row.id) + " is being evaluated; " + version_text(version) + " has to wait");
    }
    if (row.state == VersionState::kCandidate && row.id < version) {
      SLUICE_RETURN_IF_ERROR(store_.set_version_state(row.id, VersionState::kSuperseded));
    }
  }
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find(version));
  if (row.state == VersionState::kEvaluating) return {};
  return store_.set_version_state(version, VersionState::kEvaluating);
}

std::optional<VersionId> Registry::newest_candidate() const {
  std::optional<VersionId> newest;
  for (const VersionRow& row : store_.versions()) {
    if (row.state == VersionState::kCandidate) newest = row.id;
  }
  return newest;
}

std::optional<VersionId> Registry::evaluating() const {
  for (const VersionRow& row : store_.versions()) {
    if (row.state == VersionState::kEvaluating) return row.id;
  }
  return std::nullopt;
}

VersionId Registry::serving() const { return store_.serving_version(); }

bool Registry::frozen() const {
  MutexLock lock(mu_);
  return frozen_;
}

VersionId Registry::anchor() const {
  MutexLock lock(mu_);
  return anchor_;
}

Registry::Unmet Registry::unmet_limits(VersionId version) const {
  MutexLock lock(mu_);
  const auto it = gate_words_.find(version);
  if (it == gate_words_.end()) return {true, "the gate has not measured " + version_text(version)};
  const GateWord& word = it->second;
  return {word.verdict != Verdict::kPromote || word.forced, word.text};
}

Result<DecisionRow> Registry::apply(GateVerdict verdict) {
  Outbox out;
  Result<DecisionRow> result = [&] {
    Turn turn(*this);
    return apply_in_turn(std::move(verdict.row), out);
  }();
  flush(out);
  return result;
}

Result<DecisionRow> Registry::apply_in_turn(DecisionRow row, Outbox& out) {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow version, find(row.version));
  if (version.state != VersionState::kEvaluating) {
    return conflict(version_text(version.id) + " is " + version_state_name(version.state) + ", no longer evaluating");
  }
  if (row.incumbent != serving()) {
    return conflict(version_text(version.id) + " was compared with " + version_text(row.incumbent) + ", but " +
                    version_text(serving()) + " serves now");
  }
  row.kind = "gate";
  row.automatic = true;
  row.actor = "gate";
  row.parent = version.parent;
  row.content_hash = version.content_hash;
  Change change{std::move(row), {}, std::nullopt};
  if (change.row.verdict == Verdict::kPromote) {
    if (frozen()) return conflict("learning is frozen: " + version_text(version.id) + " can't be promoted");
    change.serving = version.id;
    return commit_promotion(std::move(change), version, out);
  }
  if (change.row.verdict == Verdict::kReject) {
    change.states = superseded_descendants(version.id);
    change.states.emplace_back(version.id, VersionState::kRejected);
  } else {
    change.states.emplace_back(version.id, VersionState::kHeld);
  }
  return commit(std::move(change), out);
}

Result<DecisionRow> Registry::act(const ManualRequest& request) {
  if (request.actor.empty()) return invalid_argument("a manual decision needs \"actor\": who makes it");
  if (request.note.empty()) return invalid_argument("a manual decision needs \"note\": why it is made");
  Outbox out;
  Result<DecisionRow> result = [&] {
    Turn turn(*this);
    if (request.latest && *request.latest != store_.last_decision_id()) {
      return Result<DecisionRow>(conflict("another decision was made since: look at it before deciding").with(Reason::kStale));
    }
    return act_in_turn(request, out);
  }();
  flush(out);
  return result;
}

Result<DecisionRow> Registry::act_in_turn(const ManualRequest& request, Outbox& out) {
  const bool about_serving = request.action == ManualAction::kFreeze || request.action == ManualAction::kUnfreeze;
  SLUICE_ASSIGN_OR_RETURN(const VersionRow version, find(about_serving ? serving() : request.version));
  const bool held_back = version.state == VersionState::kCandidate || version.state == VersionState::kHeld;
  Change change{manual_row(request, version), {}, std::nullopt};
  switch (request.action) {
    case ManualAction::kPromote: return promote_by_hand(request, version, out);
    case ManualAction::kRollback: return roll_back_by_hand(request, version, out);
    case ManualAction::kReject:
      if (!held_back && version.state != VersionState::kEvaluating) break;
      change.row.verdict = Verdict::kReject;
      change.states = superseded_descendants(version.id);
      change.states.emplace_back(version.id, VersionState::kRejected);
      return commit(std::move(change), out);
    case ManualAction::kHold:
      if (version.state != VersionState::kEvaluating) break;
      change.states.emplace_back(version.id, VersionState::kHeld);
      return commit(std::move(change), out);
    case ManualAction::kPinAnchor:
      if (version.state != VersionState::kServing && version.state != VersionState::kRetired) break;
      return commit(std::move(change), out);
    case ManualAction::kFreeze:
    case ManualAction::kUnfreeze:
      if (frozen() == (request.action == ManualAction::kFreeze)) {
        return conflict(frozen() ? "learning is frozen already" : "learning is not frozen");
      }
      return commit(std::move(change), out);
  }
  return conflict("can't " + std::string(manual_action_name(request.action)) + " " + version_text(version.id) + ": it is " +
                  version_state_name(version.state));
}

DecisionRow Registry::manual_row(const ManualRequest& request, const VersionRow& version) const {
  const std::string what = manual_action_name(request.action);
  DecisionRow row;
  row.session = request.session;
  row.version = version.id;
  row.parent = version.parent;
  row.content_hash = version.content_hash;
  row.incumbent = serving();
  row.anchor = anchor();
  row.verdict = Verdict::kHold;
  row.kind = request.action == ManualAction::kRollback ? "rollback" : "manual";
  row.actor = request.actor;
  row.note = request.note;
  row.stage = "manual";
  row.reason_code = what;
  row.reason_text = request.actor + ": " + what + " " + version_text(version.id) + ". " + request.note;
  if (const auto settings = store_.gate_settings()) row.settings = settings->id;
  return row;
}

DecisionRow Registry::automatic_row(const VersionRow& target, VersionId left) const {
  DecisionRow row;
  row.version = target.id;
  row.parent = target.parent;
  row.content_hash = target.content_hash;
  row.incumbent = left;
  row.anchor = anchor();
  row.verdict = Verdict::kPromote;
  row.scope = "full";
  row.automatic = true;
  return row;
}

Result<DecisionRow> Registry::promote_by_hand(const ManualRequest& request, const VersionRow& version, Outbox& out) {
  if (version.state == VersionState::kServing) return conflict(version_text(version.id) + " serves already");
  if (version.state == VersionState::kPruned) return conflict("the files of " + version_text(version.id) + " were pruned");
  if (frozen()) return conflict("learning is frozen: unfreeze first, or roll back to a version that served before");
  Change change{manual_row(request, version), {}, version.id};
  const Unmet unmet = unmet_limits(version.id);
  change.row.verdict = Verdict::kPromote;
  change.row.scope = "full";
  change.row.forced = unmet.forced;
  if (unmet.forced) change.row.reason_text += " Forced: " + unmet.why;
  return commit_promotion(std::move(change), version, out);
}

Result<DecisionRow> Registry::roll_back_by_hand(const ManualRequest& request, const VersionRow& version, Outbox& out) {
  if (version.state == VersionState::kServing) return conflict(version_text(version.id) + " serves already");
  if (version.state != VersionState::kRetired) {
    return conflict("can't roll back to " + version_text(version.id) + ": it is " + version_state_name(version.state) +
                    "; only a version that served before and was not taken out for harm can come back this way");
  }
  Change change{manual_row(request, version), superseded_descendants(serving()), version.id};
  change.row.verdict = Verdict::kPromote;
  change.row.scope = "full";
  change.row.forced = version.id != kBaseVersion && unmet_limits(version.id).forced;
  change.row.reason_text = request.actor + ": rolled back from " + version_text(serving()) + " to " + version_text(version.id) +
                           ". " + request.note;
  return commit_promotion(std::move(change), version, out);
}

Result<DecisionRow> Registry::roll_back_for_harm(const std::string& reason_code, const std::string& reason_text) {
  Outbox out;
  Result<DecisionRow> result = [&] {
    Turn turn(*this);
    return harm_in_turn(reason_code, reason_text, out);
  }();
  flush(out);
  return result;
}

Result<DecisionRow> Registry::harm_in_turn(const std::string& code, const std::string& text, Outbox& out) {
  const VersionId harmful = serving();
  if (harmful == kBaseVersion) return conflict("the base serves: there is nothing to roll back to");
  const VersionId proven = last_proven();
  SLUICE_ASSIGN_OR_RETURN(const VersionRow target, find(proven == harmful ? kBaseVersion : proven));
  Change change{automatic_row(target, harmful), superseded_descendants(harmful), target.id};
  change.states.emplace_back(harmful, VersionState::kQuarantined);
  DecisionRow& row = change.row;
  row.kind = "rollback";
  row.actor = "gate";
  row.stage = "watch";
  row.reason_code = code;
  row.reason_text = "Rolled back from " + version_text(harmful) + " to " + version_text(target.id) + ": " + text;
  return commit_promotion(std::move(change), target, out);
}

// Durable first, visible second (gate.md §7). The bytes are known to be usable before the row says that they serve.
Result<DecisionRow> Registry::commit_promotion(Change change, const VersionRow& target, Outbox& out) {
  SLUICE_RETURN_IF_ERROR(make_usable(target));
  const VersionId previous = serving();
  Result<CommittedDecision> committed = store_.commit_decision({change.row, change.states, change.serving});
  if (!committed.ok()) {
    host_.release(target.id);
    return committed.status();
  }
  const Result<std::int64_t> published = publish(*committed);
  if (!published.ok()) {
    host_.release(target.id);
    return take_back(target.id, previous, published.status(), out);
  }
  out.swaps.push_back({previous, target.id, *published});
  hold_resident(target.id);
  auto row = store_.decision(committed->decision());
  if (!row) return internal_error("decision " + std::to_string(committed->decision().value) + " can't be read back");
  note_row(*row);
  out.rows.push_back(*row);
  prune_files();
  return *std::move(row);
}

Result<DecisionRow> Registry::commit(Change change, Outbox& out) {
  SLUICE_ASSIGN_OR_RETURN(const CommittedDecision committed,
                          store_.commit_decision({std::move(change.row), std::move(change.states), change.serving}));
  auto row = store_.decision(committed.decision());
  if (!row) return internal_error("decision " + std::to_string(committed.decision().value) + " can't be read back");
  note_row(*row);
  out.rows.push_back(*row);
  prune_files();
  return *std::move(row);
}

// The row stands but the host refused: the previous version still answers, so a second row makes that the truth.
Result<DecisionRow> Registry::take_back(VersionId failed, VersionId previous, const Status& why, Outbox& out) {
  log(LogLevel::kError, version_text(failed) + " could not be published: " + why.message());
  SLUICE_ASSIGN_OR_RETURN(const VersionRow target, find(previous));
  Change change{automatic_row(target, failed), {{failed, VersionState::kQuarantined}}, previous};
  if (failed == kBaseVersion) change.states.clear();
  DecisionRow& row = change.row;
  row.kind = "rollback";
  row.actor = "registry";
  row.stage = "publish";
  row.reason_code = "publish_failed";
  row.reason_text = "Rolled back to " + version_text(previous) + ": " + version_text(failed) +
                    " could not be put into service: " + why.message();
  SLUICE_ASSIGN_OR_RETURN(const CommittedDecision committed, store_.commit_decision({row, change.states, change.serving}));
  if (auto stored = store_.decision(committed.decision())) {
    note_row(*stored);
    out.rows.push_back(*std::move(stored));
  }
  const Result<std::int64_t> published = publish(committed);
  if (!published.ok()) log(LogLevel::kError, version_text(previous) + " could not be published: " + published.status().message());
  return Status(why.code(), version_text(failed) + " could not be put into service; " + version_text(previous) +
                                " serves on: " + why.message());
}

}  // namespace sluice
