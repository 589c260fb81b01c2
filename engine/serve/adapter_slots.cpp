// SPDX-License-Identifier: GPL-3.0-or-later
#include "serve/adapter_slots.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <exception>

namespace sluice {
namespace {

constexpr std::size_t kKeptPromoted = 5;  // the serving version and the four promoted before it

}  // namespace

Result<std::shared_ptr<const Adapter>> AdapterSlots::load(VersionId version) const {
  if (version.value < 0) return invalid_argument("adapter version " + std::to_string(version.value) + " is no version");
  // A loader is built on a library that throws, and a version whose load never ended would be waited for without end.
  try {
    return loader_.load(folder_of_(version), version);
  } catch (const std::exception& error) {
    return internal_error("loading adapter version " + std::to_string(version.value) + " failed: " + error.what());
  } catch (...) {
    return internal_error("loading adapter version " + std::to_string(version.value) + " failed for an unknown reason");
  }
}

Status AdapterSlots::check(const Adapter& adapter, const std::string& content_hash) const {
  if (content_hash.empty() || adapter.content_hash() == content_hash) return {};
  return corrupt("the file of adapter version " + std::to_string(adapter.version().value) +
                 " is damaged (its SHA-256 differs from the recorded one): " + folder_of_(adapter.version()));
}

Result<std::shared_ptr<const Adapter>> AdapterSlots::fetch(VersionId version, const std::string& content_hash) {
  {
    MutexLock lock(mu_);
    while (loading_.contains(version)) loaded_.wait(mu_);
    if (const auto it = slots_.find(version); it != slots_.end()) {
      SLUICE_RETURN_IF_ERROR(check(*it->second.adapter, content_hash));
      return it->second.adapter;
    }
    loading_.insert(version);
  }
  Result<std::shared_ptr<const Adapter>> adapter = load(version);
  if (adapter.ok()) {  // before anybody can find it
    if (Status same = check(**adapter, content_hash); !same.ok()) adapter = std::move(same);
  }
  MutexLock lock(mu_);
  loading_.erase(version);
  loaded_.notify_all();
  if (adapter.ok()) {  // for those who waited; whoever asked takes a pin or makes it serve before anything evicts
    Slot& slot = slots_[version];
    slot.adapter = *adapter;
    slot.last_used = ++use_counter_;
  }
  return adapter;
}

Status AdapterSlots::prepare(VersionId version, const std::string& content_hash) {
  if (version == kBaseVersion) return {};
  SLUICE_ASSIGN_OR_RETURN(std::shared_ptr<const Adapter> adapter, fetch(version, content_hash));
  MutexLock lock(mu_);
  Slot& slot = slots_[version];
  if (!slot.adapter) slot.adapter = std::move(adapter);
  ++slot.pins;
  slot.last_used = ++use_counter_;
  evict();
  return {};
}

void AdapterSlots::release(VersionId version) {
  if (version == kBaseVersion) return;
  MutexLock lock(mu_);
  const auto it = slots_.find(version);
  assert(it != slots_.end() && it->second.pins > 0);
  if (it == slots_.end() || it->second.pins == 0) return;
  --it->second.pins;
  evict();
}

Result<std::int64_t> AdapterSlots::publish(const CommittedDecision& decision) {
  const auto begin = std::chrono::steady_clock::now();
  const VersionId version = decision.version();
  std::shared_ptr<const Adapter> adapter;  // held here, whatever is evicted before it serves
  if (version != kBaseVersion) {
    SLUICE_ASSIGN_OR_RETURN(adapter, fetch(version, ""));
  }
  MutexLock lock(mu_);
  if (decision.decision() < decision_) {
    evict();
    return conflict("decision " + std::to_string(decision.decision().value) + " is older than decision " +
                    std::to_string(decision_.value) + ", which already took effect");
  }
  if (version != kBaseVersion) {
    Slot& slot = slots_[version];
    if (!slot.adapter) slot.adapter = std::move(adapter);
    slot.last_used = ++use_counter_;
    promoted_.erase(std::remove(promoted_.begin(), promoted_.end(), version), promoted_.end());
    promoted_.push_front(version);
    if (promoted_.size() > kKeptPromoted) promoted_.pop_back();
  }
  serving_ = version;
  decision_ = decision.decision();
  const auto visible = std::chrono::steady_clock::now();
  evict();
  return std::chrono::duration_cast<std::chrono::microseconds>(visible - begin).count();
}

VersionId AdapterSlots::serving() const {
  MutexLock lock(mu_);
  return serving_;
}

void AdapterSlots::set_pinnable(std::set<VersionId> versions) {
  MutexLock lock(mu_);
  pinnable_ = std::move(versions);
  // One that may never serve again, its files deleted perhaps, is kept for no roll-back.
  std::set<VersionId> useful = pinnable_;
  useful.insert(serving_);
  std::erase_if(promoted_, [&useful](VersionId v) { return !useful.contains(v); });
  evict();
}

void AdapterSlots::set_kept(std::set<VersionId> versions) {
  MutexLock lock(mu_);
  kept_ = std::move(versions);
  evict();
}

Result<AdapterSlots::Resolved> AdapterSlots::resolve(const AdapterChoice& choice) {
  if (choice.kind() == AdapterChoice::Kind::kHeld) return Resolved{choice.version(), choice.held()};
  MutexLock lock(mu_);
  const VersionId version = choice.kind() == AdapterChoice::Kind::kServing ? serving_ : choice.version();
  if (choice.kind() == AdapterChoice::Kind::kVersion && !pinnable_locked(version)) {
    return not_found("adapter version " + std::to_string(version.value) +
                     " can't be asked for: only versions that are serving, canary or retired can");
  }
  if (version == kBaseVersion) return Resolved{version, nullptr};
  const auto it = slots_.find(version);
  if (it == slots_.end()) {
    return unavailable("adapter version " + std::to_string(version.value) + " is not in memory: try again").with(Reason::kLoading);
  }
  it->second.last_used = ++use_counter_;
  return Resolved{version, it->second.adapter};
}

bool AdapterSlots::pinnable(VersionId version) const {
  MutexLock lock(mu_);
  return pinnable_locked(version);
}

bool AdapterSlots::pinnable_locked(VersionId version) const {
  return version == kBaseVersion || version == serving_ || pinnable_.contains(version);
}

std::vector<VersionId> AdapterSlots::resident() const {
  MutexLock lock(mu_);
  std::vector<VersionId> out;
  for (const auto& [version, slot] : slots_) out.push_back(version);
  return out;
}

std::int64_t AdapterSlots::resident_bytes() const {
  MutexLock lock(mu_);
  std::int64_t bytes = 0;
  for (const auto& [version, slot] : slots_) bytes += slot.adapter->bytes();
  return bytes;
}

bool AdapterSlots::protected_version(VersionId version, const Slot& slot) const {
  return slot.pins > 0 || version == serving_ || kept_.contains(version) ||
         std::find(promoted_.begin(), promoted_.end(), version) != promoted_.end();
}

// What nobody may ask for leaves at once. What clients may pin leaves by age when the pool is over its size; a version in
// use by a sequence is skipped there, since dropping it would free nothing and a reload would hold it twice.
void AdapterSlots::evict() {
  std::int64_t bytes = 0;
  for (auto it = slots_.begin(); it != slots_.end();) {
    if (!protected_version(it->first, it->second) && !pinnable_locked(it->first)) {
      it = slots_.erase(it);
    } else {
      bytes += it->second.adapter->bytes();
      ++it;
    }
  }
  while (bytes > pool_bytes_) {
    auto oldest = slots_.end();
    for (auto it = slots_.begin(); it != slots_.end(); ++it) {
      if (protected_version(it->first, it->second) || it->second.adapter.use_count() > 1) continue;
      if (oldest == slots_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
    }
    if (oldest == slots_.end()) return;
    bytes -= oldest->second.adapter->bytes();
    slots_.erase(oldest);
  }
}

}  // namespace sluice
