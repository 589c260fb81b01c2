// SPDX-License-Identifier: GPL-3.0-or-later
// Start-up and recovery, lines of candidates, files on disk, versions in memory.
#include <algorithm>
#include <filesystem>

#include "release/registry.h"
#include "release/registry_turn.h"
#include "release/sentence.h"

namespace sluice {
namespace {

constexpr int kPage = 500;

bool never_served(VersionState state) {
  return state == VersionState::kHeld || state == VersionState::kRejected || state == VersionState::kSuperseded;
}

}  // namespace

Result<StartReport> Registry::start() {
  Outbox out;
  Result<StartReport> result = [&] {
    Turn turn(*this);
    return start_in_turn(out);
  }();
  flush(out);
  return result;
}

Result<StartReport> Registry::start_in_turn(Outbox& out) {
  read_rows();
  const Result<CommittedDecision> stored = store_.serving_decision();
  if (!stored.ok()) return recover(serving(), stored.status(), out);
  SLUICE_ASSIGN_OR_RETURN(const VersionRow version, find(stored->version()));
  if (const Status usable = make_usable(version); !usable.ok()) return recover(version.id, usable, out);
  const Result<std::int64_t> published = publish(*stored);
  if (!published.ok()) {
    host_.release(version.id);
    return recover(version.id, published.status(), out);
  }
  out.swaps.push_back({version.id, version.id, *published});
  hold_resident(version.id);
  prune_files();
  return StartReport{version.id, false, ""};
}

// The newest proven version that loads, else the base.
Result<StartReport> Registry::recover(VersionId damaged, const Status& why, Outbox& out) {
  log(LogLevel::kError, version_text(damaged) + " can't serve: " + why.message());
  if (damaged == kBaseVersion) return why;
  std::vector<VersionRow> targets;
  for (VersionRow& row : store_.versions()) {
    const bool proven = row.proven && row.state == VersionState::kRetired;
    if (row.id == kBaseVersion || (proven && row.id != damaged)) targets.push_back(std::move(row));
  }
  Status last = why;
  for (auto target = targets.rbegin(); target != targets.rend(); ++target) {
    Change change{automatic_row(*target, damaged), superseded_descendants(damaged), target->id};
    change.states.emplace_back(damaged, VersionState::kQuarantined);
    DecisionRow& row = change.row;
    row.kind = "startup";
    row.actor = "registry";
    row.stage = "startup";
    row.reason_code = "damaged_adapter";
    row.reason_text = "Rolled back from " + version_text(damaged) + " to " + version_text(target->id) +
                      " at start-up: " + why.message();
    const std::string note = row.reason_text;
    const Result<DecisionRow> done = commit_promotion(std::move(change), *target, out);
    if (done.ok()) return StartReport{target->id, true, note};
    last = done.status();
  }
  return last;
}

VersionId Registry::last_proven() const {
  VersionId newest = kBaseVersion;
  for (const VersionRow& row : store_.versions()) {
    const bool can_serve = row.state == VersionState::kServing || row.state == VersionState::kRetired;
    if (row.proven && can_serve) newest = row.id;
  }
  return newest;
}

Status Registry::make_usable(const VersionRow& version) {
  const Status ready = host_.prepare(version.id, version.content_hash);
  if (ready.code() != Code::kNotFound) return ready;
  return corrupt("the file of " + version_text(version.id) + " is missing: " + ready.message());
}

// The only caller of AdapterHost::publish.
Result<std::int64_t> Registry::publish(const CommittedDecision& decision) { return host_.publish(decision); }

Status Registry::keep_loaded(VersionId version) {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find(version));
  return make_usable(row);
}

void Registry::let_go(VersionId version) { host_.release(version); }

std::vector<std::pair<VersionId, VersionState>> Registry::superseded_descendants(VersionId ancestor) const {
  std::vector<std::pair<VersionId, VersionState>> out;
  if (ancestor == kBaseVersion) return out;
  std::set<VersionId> family = {ancestor};
  for (const VersionRow& row : store_.versions()) {  // ascending: a parent comes before its children
    if (!family.contains(row.parent) || row.id == kBaseVersion) continue;
    family.insert(row.id);
    if (row.state == VersionState::kCandidate || row.state == VersionState::kEvaluating) {
      out.emplace_back(row.id, VersionState::kSuperseded);
    }
  }
  return out;
}

void Registry::read_rows() {
  for (std::int64_t after = -1;;) {
    const std::vector<DecisionRow> page = store_.decisions(after, kPage);
    for (const DecisionRow& row : page) note_row(row);
    if (static_cast<int>(page.size()) < kPage) return;
    after = page.back().id.value;
  }
}

void Registry::note_row(const DecisionRow& row) {
  MutexLock lock(mu_);
  if (row.kind == "gate") gate_words_[row.version] = {row.verdict, row.forced, row.reason_text};
  if (row.kind != "manual") return;
  if (row.reason_code == "freeze") frozen_ = true;
  if (row.reason_code == "unfreeze") frozen_ = false;
  if (row.reason_code == "pin_anchor") anchor_ = row.version;
}

// Takes over the hold that make_usable() put on the version.
void Registry::hold_resident(VersionId version) {
  std::vector<VersionId> let_go;
  {
    MutexLock lock(mu_);
    const auto it = std::find(resident_.begin(), resident_.end(), version);
    if (it != resident_.end()) {
      resident_.erase(it);
      let_go.push_back(version);
    }
    resident_.insert(resident_.begin(), version);
    while (static_cast<int>(resident_.size()) > std::max(1, options_.keep_resident)) {
      let_go.push_back(resident_.back());
      resident_.pop_back();
    }
  }
  for (const VersionId id : let_go) host_.release(id);
}

// Row first: files without a row saying so are only a waste, a row without its files would be a broken promise.
void Registry::prune_files() {
  std::vector<VersionRow> rows = store_.versions();
  const VersionId pinned = anchor();
  int kept = 0;
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    if (row->id == kBaseVersion) continue;
    if (never_served(row->state)) {
      if (++kept <= options_.keep_last || row->id == pinned) continue;
      if (!store_.set_version_state(row->id, VersionState::kPruned).ok()) continue;
      row->state = VersionState::kPruned;
    }
    if (row->state != VersionState::kPruned) continue;
    remove_files(row->id);
  }
}

void Registry::remove_files(VersionId version) const {
  std::error_code error;
  std::filesystem::remove_all(store_.adapter_folder(version), error);
  if (error) log(LogLevel::kWarning, "the files of " + version_text(version) + " could not be removed: " + error.message());
}

Status Registry::prune(const std::vector<VersionId>& versions) {
  Outbox out;
  const Status done = [&]() -> Status {
    Turn turn(*this);
    for (const VersionId version : versions) SLUICE_RETURN_IF_ERROR(may_prune(version));
    for (const VersionId version : versions) SLUICE_RETURN_IF_ERROR(prune_in_turn(version));
    return Status();
  }();
  flush(out);  // clients may no longer ask for them
  return done;
}

Status Registry::may_prune(VersionId version) const {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find(version));
  if (row.state == VersionState::kPruned) return Status();
  if (version == anchor() || version == last_proven()) {
    return conflict(version_text(version) + (version == anchor() ? " is the anchor" : " is the last proven version") +
                    ": its files stay");
  }
  if (legal_transition(row.state, VersionState::kPruned)) return Status();
  return conflict(version_text(version) + " is " + version_state_name(row.state) + ": its files stay");
}

Status Registry::prune_in_turn(VersionId version) {
  SLUICE_ASSIGN_OR_RETURN(const VersionRow row, find(version));
  if (row.state == VersionState::kPruned) return Status();
  SLUICE_RETURN_IF_ERROR(store_.set_version_state(version, VersionState::kPruned));
  bool held = false;
  {
    MutexLock lock(mu_);
    const auto it = std::find(resident_.begin(), resident_.end(), version);
    held = it != resident_.end();
    if (held) resident_.erase(it);
  }
  if (held) host_.release(version);  // memory goes with its last sequence
  remove_files(version);
  return Status();
}

void Registry::flush(Outbox& out) {
  std::set<VersionId> kept = {last_proven()}, pinnable = {kBaseVersion};
  for (const VersionRow& row : store_.versions()) {
    const bool canary = row.state == VersionState::kCanary;
    if (canary) kept.insert(row.id);
    if (canary || row.state == VersionState::kServing || row.state == VersionState::kRetired) pinnable.insert(row.id);
  }
  if (options_.on_kept) options_.on_kept(std::move(kept));
  if (options_.on_pinnable) options_.on_pinnable(std::move(pinnable));
  for (const DecisionRow& row : out.rows) {
    log(LogLevel::kInfo, row.reason_text);
    if (options_.on_decision) options_.on_decision(row);
  }
  for (const SwapNotice& swap : out.swaps) {
    if (options_.on_swap) options_.on_swap(swap);
  }
}

void Registry::log(LogLevel level, const std::string& text) const {
  if (options_.log != nullptr) options_.log->write(level, "gate", text);
}

}  // namespace sluice
