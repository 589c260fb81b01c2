// SPDX-License-Identifier: GPL-3.0-or-later
// How the rows of what a person asks in the workbench are told from a client's.
#pragma once

namespace sluice {

// RecordRow::route of such a request. It waits for that person, if for anybody (store/label_windows.h).
inline constexpr const char* kDeskRoute = "workbench";

}  // namespace sluice
