// SPDX-License-Identifier: GPL-3.0-or-later
// Where a temperature is as good as 0. Pure, any thread.
#pragma once

namespace sluice {

// Divided by less, differences between logits leave no finite log-probs.
inline constexpr float kLeastTemperature = 1e-6f;

// The temperature that is drawn and recorded with: 0 (argmax) for what is too small to divide by.
inline float usable_temperature(float temperature) { return temperature < kLeastTemperature ? 0.0f : temperature; }

// The temperature of the log-probs that are recorded: greedy answers keep theirs at 1 (learning.md §2.1).
inline float recorded_temperature(float temperature) {
  const float drawn_with = usable_temperature(temperature);
  return drawn_with > 0 ? drawn_with : 1.0f;
}

}  // namespace sluice
