// SPDX-License-Identifier: GPL-3.0-or-later
// How the sources of Runtime say what a command came to. Pure functions.
#pragma once

#include <string>
#include <utility>

#include "runtime/commands.h"

namespace sluice {

inline CommandOutcome refused(Status status) {
  CommandOutcome out;
  out.text = status.message();
  out.status = std::move(status);
  return out;
}

inline CommandOutcome accepted(std::string text) {
  CommandOutcome out;
  out.text = std::move(text);
  return out;
}

inline Status not_loaded() { return unavailable("The model is not loaded yet.").with(Reason::kLoading); }

}  // namespace sluice
