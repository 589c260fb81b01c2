// SPDX-License-Identifier: GPL-3.0-or-later
// Strong ids: a version can't be passed where a step is due. All but RecordId are row ids of the store.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace sluice {

template <class Tag>
struct Id {
  std::int64_t value = -1;  // -1 = none

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t v) : value(v) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr auto operator<=>(const Id&) const = default;
};

using FeedbackId = Id<struct FeedbackTag>;
using BatchId = Id<struct BatchTag>;
using StepId = Id<struct StepTag>;
using VersionId = Id<struct VersionTag>;    // adapter version; 0 = the base, no adapter
using DecisionId = Id<struct DecisionTag>;
using SessionId = Id<struct SessionTag>;    // the operator's run, not a client's conversation
using SettingsId = Id<struct SettingsTag>;  // a versioned row of gate settings

inline constexpr VersionId kBaseVersion{0};

// The receipt: "rec_" + ULID (26 Crockford base-32 digits, sortable by time). Made when a request is accepted.
struct RecordId {
  std::string text;

  bool valid() const { return !text.empty(); }
  auto operator<=>(const RecordId&) const = default;

  // Fresh, unique in this process and, by 80 random bits, across processes. Thread-safe.
  static RecordId make();
};

}  // namespace sluice

template <class Tag>
struct std::hash<sluice::Id<Tag>> {
  std::size_t operator()(const sluice::Id<Tag>& id) const noexcept { return std::hash<std::int64_t>()(id.value); }
};
template <>
struct std::hash<sluice::RecordId> {
  std::size_t operator()(const sluice::RecordId& id) const noexcept { return std::hash<std::string>()(id.text); }
};
