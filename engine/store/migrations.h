// SPDX-License-Identifier: GPL-3.0-or-later
// Numbered schema steps of the workspace's database. Internal to engine/store; called once, on the opening thread.
#pragma once

#include "base/result.h"
#include "store/database.h"

namespace sluice {

inline constexpr int kSchemaVersion = 2;

// Brings the database to kSchemaVersion, one transaction a step. kInvalidArgument: newer, or another program's database.
Status migrate(Database& db, const std::string& path);

}  // namespace sluice
