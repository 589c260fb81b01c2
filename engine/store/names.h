// SPDX-License-Identifier: GPL-3.0-or-later
// The texts that stand for enum values in the database. Internal to engine/store; constants only.
#pragma once

#include <array>

#include "store/rows.h"

namespace sluice {

template <class E>
struct EnumNames;

template <>
struct EnumNames<SessionState> {
  static constexpr std::array<const char*, 3> kNames = {"running", "paused", "ended"};
};
template <>
struct EnumNames<Split> {
  static constexpr std::array<const char*, 2> kNames = {"train", "held_out"};
};
template <>
struct EnumNames<Purpose> {
  static constexpr std::array<const char*, 3> kNames = {"live", "gate", "probe"};
};
template <>
struct EnumNames<FeedbackKind> {
  static constexpr std::array<const char*, 4> kNames = {"accept", "reject", "score", "silent"};
};
template <>
struct EnumNames<FeedbackSource> {
  static constexpr std::array<const char*, 5> kNames = {"human", "judge", "verifier", "client", "persona"};
};
template <>
struct EnumNames<VersionState> {
  static constexpr std::array<const char*, 10> kNames = {"candidate", "evaluating", "held",       "canary",      "serving",
                                                         "retired",   "rejected",   "superseded", "quarantined", "pruned"};
};
template <>
struct EnumNames<Verdict> {
  static constexpr std::array<const char*, 3> kNames = {"promote", "reject", "hold"};
};

}  // namespace sluice
