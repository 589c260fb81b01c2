// SPDX-License-Identifier: GPL-3.0-or-later
// The local AdapterHost: resident adapter versions and the pointer new sequences read. Mutex + pointer; a swap is a pointer
// store, loads run on the caller's thread (never the engine's). Thread-safe.
//
// Which versions clients may pin (states serving, canary, retired) is told by the registry through set_pinnable().
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/guarded.h"
#include "model_api/adapter.h"
#include "serve/request.h"

namespace sluice {

class AdapterSlots final : public AdapterHost {
 public:
  using FolderOf = std::function<std::string(VersionId)>;

  AdapterSlots(const AdapterLoader& loader, FolderOf folder_of) : loader_(loader), folder_of_(std::move(folder_of)) {}

  Status prepare(VersionId version) override;
  void release(VersionId version) override;
  Result<std::int64_t> publish(const CommittedDecision& decision) override;
  VersionId serving() const override;

  // Versions a client may ask for by number; the base always is.
  void set_pinnable(std::set<VersionId> versions);

  struct Resolved {
    VersionId version;
    std::shared_ptr<const Adapter> adapter;  // null = base
  };
  // Engine thread, at admission. Never loads: kNotFound when the version may not be used, kUnavailable when it may but is
  // not resident (submit() prepares pinned versions first).
  Result<Resolved> resolve(const AdapterChoice& choice) const;
  bool pinnable(VersionId version) const;

 private:
  struct Slot {
    std::shared_ptr<const Adapter> adapter;
    int pins = 0;               // prepare() minus release()
    std::uint64_t last_used = 0;
  };
  Result<std::shared_ptr<const Adapter>> load(VersionId version);
  void evict() SLUICE_REQUIRES(mu_);

  const AdapterLoader& loader_;
  const FolderOf folder_of_;
  mutable Mutex mu_;
  std::map<VersionId, Slot> slots_ SLUICE_GUARDED_BY(mu_);
  std::set<VersionId> pinnable_ SLUICE_GUARDED_BY(mu_);
  VersionId serving_ SLUICE_GUARDED_BY(mu_) = kBaseVersion;
  std::uint64_t use_counter_ SLUICE_GUARDED_BY(mu_) = 0;
};

}  // namespace sluice
