// SPDX-License-Identifier: GPL-3.0-or-later
// LoRA adapter versions as the layers above the model see them: opaque, immutable, shared.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/passes.h"
#include "base/result.h"

namespace sluice {

// Immutable after construction; its tensors are known to `model` only. Any thread may hold it. It dies with its last holder.
class Adapter {
 public:
  virtual ~Adapter() = default;
  virtual VersionId version() const = 0;
  virtual const std::string& content_hash() const = 0;  // SHA-256, hex, of adapter_model.safetensors
  virtual int rank() const = 0;                          // largest rank of its modules
  virtual std::int64_t bytes() const = 0;                // resident size
};

// Folder in PEFT layout -> checked adapter. Thread-safe. Fails with the full list of what does not bind.
class AdapterLoader {
 public:
  virtual ~AdapterLoader() = default;
  virtual Result<std::shared_ptr<const Adapter>> load(const std::string& folder, VersionId version) const = 0;
};

// Where a request's adapter comes from. Thread-safe. The local one is serve/adapter_slots; serve/attach has another.
class AdapterHost {
 public:
  virtual ~AdapterHost() = default;

  // Loads a version off the engine thread and keeps it resident until release(). Blocks the caller. Version 0 always is.
  // `content_hash`: the SHA-256 its weights must have (Adapter::content_hash), kCorrupt else; empty = whatever it has.
  virtual Status prepare(VersionId version, const std::string& content_hash) = 0;
  // Gives up what prepare() pinned; memory goes when its last sequence ends.
  virtual void release(VersionId version) = 0;
  // Makes the decision's version the one new sequences get; visible at the next engine step. The version must be prepared
  // or loadable; on failure the incumbent serves on. Returns the microseconds from call to visible pointer.
  virtual Result<std::int64_t> publish(const CommittedDecision& decision) = 0;
  virtual VersionId serving() const = 0;
};

}  // namespace sluice
