// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's value types that widgets read: rows, state, commands. Features include this, never an engine header.
#pragma once

#include "runtime/commands.h"
#include "runtime/snapshot.h"
#include "store/events.h"
#include "store/rows.h"
#include "store/store.h"
