// SPDX-License-Identifier: GPL-3.0-or-later
// The local AdapterHost: resident adapter versions and the pointer new sequences read. Mutex + pointer; a swap is a pointer
// store, loads run on the caller's thread (never the engine's). Thread-safe.
//
// Resident stay: the serving version, the last four promoted before it while clients may pin them, those set_kept() names (canary, last proven), and
// whatever is pinned by prepare() or in use by a sequence. Other versions clients may pin stay while the pool has room,
// least recently used leave first, and are read again when they are asked for; the rest leaves when its pins are gone.
// Which versions clients may pin (states serving, canary, retired) is told by the registry through set_pinnable().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "model_api/adapter.h"
#include "serve/request.h"

namespace sluice {

class AdapterSlots final : public AdapterHost {
 public:
  using FolderOf = std::function<std::string(VersionId)>;

  static constexpr std::int64_t kPoolBytes = std::int64_t{1} << 30;

  AdapterSlots(const AdapterLoader& loader, FolderOf folder_of, std::int64_t pool_bytes = kPoolBytes)
      : loader_(loader), folder_of_(std::move(folder_of)), pool_bytes_(pool_bytes) {}

  Status prepare(VersionId version, const std::string& content_hash) override;
  void release(VersionId version) override;
  // Besides: kConflict for a decision older than the one published last.
  Result<std::int64_t> publish(const CommittedDecision& decision) override;
  VersionId serving() const override;

  // Versions a client may ask for by number; the base and the serving version always are.
  void set_pinnable(std::set<VersionId> versions);
  // Versions that stay in memory once they are, whatever the size of the pool.
  void set_kept(std::set<VersionId> versions);

  struct Resolved {
    VersionId version;
    std::shared_ptr<const Adapter> adapter;  // null = base
  };
  // Engine thread, at admission. Never loads: kNotFound when the version may not be used, kUnavailable when it may but is
  // not resident (submit() prepares pinned versions first).
  Result<Resolved> resolve(const AdapterChoice& choice);
  bool pinnable(VersionId version) const;
  std::vector<VersionId> resident() const;  // ascending, without the base
  std::int64_t resident_bytes() const;

 private:
  struct Slot {
    std::shared_ptr<const Adapter> adapter;
    int pins = 0;               // prepare() minus release()
    std::uint64_t last_used = 0;
  };
  // The resident adapter, or the one read now. Callers that ask for one version at the same time wait for one read.
  Result<std::shared_ptr<const Adapter>> fetch(VersionId version, const std::string& content_hash) SLUICE_EXCLUDES(mu_);
  Result<std::shared_ptr<const Adapter>> load(VersionId version) const;
  Status check(const Adapter& adapter, const std::string& content_hash) const;
  bool pinnable_locked(VersionId version) const SLUICE_REQUIRES(mu_);
  bool protected_version(VersionId version, const Slot& slot) const SLUICE_REQUIRES(mu_);
  void evict() SLUICE_REQUIRES(mu_);

  const AdapterLoader& loader_;
  const FolderOf folder_of_;
  const std::int64_t pool_bytes_;
  mutable Mutex mu_;
  std::map<VersionId, Slot> slots_ SLUICE_GUARDED_BY(mu_);
  std::set<VersionId> pinnable_ SLUICE_GUARDED_BY(mu_);
  std::set<VersionId> kept_ SLUICE_GUARDED_BY(mu_);
  std::set<VersionId> loading_ SLUICE_GUARDED_BY(mu_);
  CondVar loaded_;
  VersionId serving_ SLUICE_GUARDED_BY(mu_) = kBaseVersion;
  DecisionId decision_ SLUICE_GUARDED_BY(mu_);                // published last
  std::deque<VersionId> promoted_ SLUICE_GUARDED_BY(mu_);     // newest first: the serving one and four before it
  std::uint64_t use_counter_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
