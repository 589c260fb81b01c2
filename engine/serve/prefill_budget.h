// SPDX-License-Identifier: GPL-3.0-or-later
// How many prompt tokens a step may feed so that it takes about the time wanted: raised and lowered by what the steps
// before took. Whatever costs time is in that measure: decode rows, attention over long prefixes, a busy machine. One thread.
#pragma once

#include <algorithm>

namespace sluice {

class PrefillBudget {
 public:
  PrefillBudget(int most, double target_s)
      : most_(std::max(most, 1)), least_(std::min(kLeast, most_)), target_s_(target_s), tokens_(least_) {}

  // `decoding`: rows of the step that are no prompt. Where they alone take longer than the time wanted, prompts get their
  // share of the step nevertheless, about two fifths of it: a prompt token costs a third of a decoded one.
  int tokens(int decoding) const { return std::clamp(kPerDecoded * decoding, static_cast<int>(tokens_), most_); }

  // A step that fed `fed` prompt tokens (0 = decode alone) took `seconds`.
  void took(int fed, double seconds) {
    if (fed <= 0) return;
    const double ratio = std::clamp(target_s_ / std::max(seconds, 1e-6), 0.5, 1.5);
    const bool full = fed + 1 > tokens_ * 0.9;  // only then does it say that more would do
    if (ratio > 1 && !full) return;
    tokens_ = std::clamp((ratio < 1 ? std::min<double>(tokens_, fed) : tokens_) * ratio, static_cast<double>(least_),
                         static_cast<double>(most_));
  }

 private:
  static constexpr int kPerDecoded = 2;
  static constexpr int kLeast = 32;  // a prompt of 40 tokens is through in two steps, beside a long one

  const int most_;
  const int least_;
  const double target_s_;
  double tokens_;  // begins with least_
};

}  // namespace sluice
