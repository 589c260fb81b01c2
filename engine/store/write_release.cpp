// SPDX-License-Identifier: GPL-3.0-or-later
// Writes of the gate: versions and their states, decisions, evidence, settings. The rules of gate.md §1 and §6 live here.
#include <algorithm>
#include <initializer_list>

#include "base/fault.h"
#include "store/chain.h"
#include "store/store_impl.h"

namespace sluice {
namespace {

using S = VersionState;

bool one_of(S state, std::initializer_list<S> states) {
  return std::find(states.begin(), states.end(), state) != states.end();
}

// Changes that need no decision (gate.md §1, "none (event)").
bool event_transition(S from, S to) {
  switch (to) {
    case S::kEvaluating: return one_of(from, {S::kCandidate, S::kHeld});
    case S::kSuperseded: return one_of(from, {S::kCandidate, S::kEvaluating});
    case S::kPruned: return one_of(from, {S::kRetired, S::kHeld, S::kRejected, S::kSuperseded, S::kQuarantined});
    default: return false;
  }
}

// The verdict that the decision behind a change must have.
Verdict needed_verdict(S from, S to) {
  if (to == S::kRejected || (from == S::kCanary && to == S::kQuarantined)) return Verdict::kReject;
  return to == S::kHeld ? Verdict::kHold : Verdict::kPromote;
}

std::string transition_text(VersionId version, S from, S to) {
  return "Version " + std::to_string(version.value) + " is " + version_state_name(from) + " and can't become " +
         version_state_name(to);
}

Result<VersionRow> find_version(Database& db, VersionId id) {
  auto row = query_row<VersionRow>(db, "WHERE id = ?", id);
  if (!row) return not_found("There is no version " + std::to_string(id.value));
  return std::move(*row);
}

void write_state(Tx& tx, VersionId id, S state) {
  run(tx.db, "UPDATE version SET state = ?, state_us = ? WHERE id = ?", state, tx.now_us, id);
  tx.announce(EventKind::kVersion, id.value);
}

// The version whose files a roll-back needs: the newest that left a watch without harm and is not out of service for harm.
VersionId last_proven(Database& db) {
  return query_value(db, kBaseVersion,
                     "SELECT id FROM version WHERE proven = 1 AND state IN ('serving', 'retired') ORDER BY id DESC LIMIT 1");
}

Status change_state(Tx& tx, VersionId id, S to, const DecisionRow* decision) {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find_version(tx.db, id));
  if (!legal_transition(row.state, to)) return conflict(transition_text(id, row.state, to));
  if (!event_transition(row.state, to)) {
    if (decision == nullptr) return conflict(transition_text(id, row.state, to) + " without a decision");
    if (decision->verdict != needed_verdict(row.state, to)) {
      return conflict(transition_text(id, row.state, to) + " by the verdict " + verdict_name(decision->verdict));
    }
  }
  if (to == S::kPruned && (id == kBaseVersion || id == last_proven(tx.db))) {
    return conflict("Version " + std::to_string(id.value) + " can't be pruned: it is the roll-back target");
  }
  write_state(tx, id, to);
  return Status();
}

VersionId current_serving(Database& db) {
  return query_value(db, kBaseVersion, "SELECT version FROM serving ORDER BY seq DESC LIMIT 1");
}

// What the states and the pointer must agree on before a decision is written.
Status check_decision(const DecisionWrite& write, VersionId serving) {
  const DecisionRow& row = write.row;
  if (!row.version.valid()) return invalid_argument("A decision needs the version that it is about");
  if (row.actor.empty()) return invalid_argument("A decision needs an actor");
  if (write.serving && row.verdict != Verdict::kPromote) {
    return invalid_argument("Only a promote decision may change the version in service");
  }
  const bool moves = write.serving && *write.serving != serving;
  for (const auto& [version, state] : write.states) {
    if (state == S::kServing && (!moves || version != *write.serving)) {
      return invalid_argument("Version " + std::to_string(version.value) +
                              " would be serving without being the version in service");
    }
  }
  return Status();
}

// Those that make room go first: one version at a time is serving, canary or evaluating.
Status apply_states(Tx& tx, const DecisionWrite& write, VersionId serving) {
  std::vector<std::pair<VersionId, S>> states = write.states;
  if (write.serving && *write.serving != serving) {
    const auto given = [&states](VersionId id) {
      return std::any_of(states.begin(), states.end(), [id](const auto& change) { return change.first == id; });
    };
    if (!given(serving)) states.emplace_back(serving, S::kRetired);
    if (!given(*write.serving)) states.emplace_back(*write.serving, S::kServing);
  }
  std::stable_partition(states.begin(), states.end(), [](const auto& change) {
    return !one_of(change.second, {S::kServing, S::kCanary, S::kEvaluating});
  });
  for (const auto& [version, state] : states) SLUICE_RETURN_IF_ERROR(change_state(tx, version, state, &write.row));
  const auto count = query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM version WHERE state = 'serving'");
  const auto served = query_value(tx.db, VersionId(), "SELECT id FROM version WHERE state = 'serving'");
  if (count != 1 || served != write.serving.value_or(serving)) {
    return conflict("Exactly one version must serve after a decision, and it must be the one in service");
  }
  return Status();
}

Status insert_version(Tx& tx, VersionRow& row) {
  const std::string name = "Version " + std::to_string(row.id.value);
  const auto last =
      query_value(tx.db, std::int64_t{0}, "SELECT CAST(value AS INTEGER) FROM value WHERE name = 'last_version'");
  if (row.id.value < 1 || row.id.value > last) return invalid_argument(name + " was not reserved");
  if (row.state != S::kCandidate) return invalid_argument(name + " must start as a candidate");
  if (query_value(tx.db, std::int64_t{0}, "SELECT count(*) FROM version WHERE id = ?", row.id) != 0) {
    return conflict(name + " exists already");
  }
  row.proven = false;
  row.state_us = tx.now_us;
  if (row.created_us == 0) row.created_us = tx.now_us;
  insert(tx.db, row);
  tx.announce(EventKind::kVersion, row.id.value);
  return Status();
}

}  // namespace

bool legal_transition(VersionState from, VersionState to) {
  if (event_transition(from, to)) return true;
  switch (to) {
    case S::kServing:
    case S::kCanary:
      return one_of(from, {S::kCandidate, S::kHeld, S::kSuperseded, S::kRejected, S::kRetired, S::kQuarantined,
                           S::kEvaluating}) ||
             (from == S::kCanary && to == S::kServing);
    case S::kRejected: return one_of(from, {S::kEvaluating, S::kCandidate, S::kHeld});
    case S::kHeld: return one_of(from, {S::kEvaluating, S::kCanary});
    case S::kQuarantined: return one_of(from, {S::kCanary, S::kServing});
    case S::kRetired: return from == S::kServing;
    default: return false;
  }
}

void append_decision(Tx& tx, DecisionRow& row) {
  row.id = DecisionId(query_value(tx.db, std::int64_t{0}, "SELECT max(id) FROM decision") + 1);
  row.time_us = tx.now_us;
  row.prev_hash = query_value(tx.db, chain_start(), "SELECT hash FROM decision ORDER BY id DESC LIMIT 1");
  row.hash = decision_hash(row);
  insert(tx.db, row);
  tx.announce(EventKind::kDecision, row.id.value);
}

Result<VersionId> Store::reserve_version() {
  VersionId id;
  SLUICE_RETURN_IF_ERROR(impl_->write([&id](Tx& tx) {
    id.value = query_value(tx.db, std::int64_t{0},
                           "UPDATE value SET value = CAST(CAST(value AS INTEGER) + 1 AS TEXT) WHERE name = 'last_version' "
                           "RETURNING CAST(value AS INTEGER)");
    return Status();
  }));
  return id;
}

Status Store::add_version(VersionRow row) { return add_versions({std::move(row)}); }

Status Store::add_versions(std::vector<VersionRow> rows) {
  return impl_->write([&rows](Tx& tx) -> Status {
    for (VersionRow& row : rows) SLUICE_RETURN_IF_ERROR(insert_version(tx, row));
    return Status();
  });
}

Status Store::set_version_state(VersionId version, VersionState state) {
  return impl_->write([=](Tx& tx) { return change_state(tx, version, state, nullptr); });
}

Status Store::set_version_proven(VersionId version) {
  return impl_->write([version](Tx& tx) -> Status {
    SLUICE_RETURN_IF_ERROR(find_version(tx.db, version).ok() ? Status() : find_version(tx.db, version).status());
    run(tx.db, "UPDATE version SET proven = 1 WHERE id = ?", version);
    tx.announce(EventKind::kVersion, version.value);
    return Status();
  });
}

Result<CommittedDecision> Store::commit_decision(DecisionWrite write) {
  VersionId before;
  SLUICE_RETURN_IF_ERROR(impl_->write([&write, &before](Tx& tx) -> Status {
    before = current_serving(tx.db);
    SLUICE_RETURN_IF_ERROR(check_decision(write, before));
    if (auto found = find_version(tx.db, write.row.version); !found.ok()) return found.status();
    SLUICE_RETURN_IF_ERROR(apply_states(tx, write, before));
    append_decision(tx, write.row);
    if (write.serving) {
      run(tx.db, "INSERT INTO serving(version, previous, decision) VALUES (?, ?, ?)", *write.serving, before, write.row.id);
      tx.announce(EventKind::kServing, write.serving->value);
    }
    return Status();
  }));
  fault_point("store.decision_committed");
  return make_committed(write.row.id, write.serving.value_or(before), before);
}

Result<CommittedDecision> Store::serving_decision() {
  struct Pointer {
    DecisionId decision;
    VersionId version;
  };
  const Pointer p = impl_->readers.read([](Database& db) {
    Pointer out;
    Statement s = db.prepare("SELECT decision, version FROM serving ORDER BY seq DESC LIMIT 1");
    if (s.step()) get(s, 0, out.decision), get(s, 1, out.version);
    return out;
  });
  if (!p.decision.valid()) return corrupt("The workspace " + folder() + " does not say which version serves");
  return make_committed(p.decision, p.version, p.version);
}

Status Store::add_evidence(std::vector<EvidenceRow> rows) {
  return impl_->write([&rows](Tx& tx) {
    for (EvidenceRow& row : rows) {
      row.seq = 0;
      tx.announce(EventKind::kEvidence, insert(tx.db, row));
    }
    return Status();
  });
}

Result<SettingsId> Store::add_gate_settings(GateSettingsRow row) {
  row.id = SettingsId();
  SLUICE_RETURN_IF_ERROR(impl_->write([&row](Tx& tx) {
    row.time_us = tx.now_us;
    row.id = SettingsId(insert(tx.db, row));
    tx.announce(EventKind::kSettings, row.id.value);
    return Status();
  }));
  return row.id;
}

}  // namespace sluice
