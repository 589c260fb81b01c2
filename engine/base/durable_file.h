// SPDX-License-Identifier: GPL-3.0-or-later
// Files that must survive a power cut: write all, fsync, then the caller renames and syncs the folder. Thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "base/result.h"

namespace sluice {

// Creates `path` (or replaces what is there), writes the parts one after the other and fsyncs the file. On failure the
// partial file is removed. kUnavailable, with the path and the reason: no such folder, no permission, disk full ...
Status write_and_sync(const std::string& path, std::span<const std::span<const std::byte>> parts);

// Makes creations and renames inside the folder durable.
Status sync_directory(const std::string& path);

}  // namespace sluice
