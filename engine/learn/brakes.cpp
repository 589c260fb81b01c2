// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/brakes.h"

#include <cmath>
#include <cstdio>
#include <numeric>

namespace sluice {
namespace {

constexpr std::int64_t kLeastRatioTokens = 1000;  // a share of 1 % needs this many to mean anything
constexpr std::int64_t kLeastKlTokens = 200;      // one odd short answer is not where the head stands

std::string notice(const char* what, double value, const char* relation, double limit) {
  char text[240];
  std::snprintf(text, sizeof text, "Learning stopped: %s is %.3g, %s the limit %.3g. Resume when you have looked into it.", what,
                value, relation, limit);
  return text;
}

}  // namespace

void Brakes::reset() { *this = Brakes(settings_); }

std::optional<std::string> Brakes::read_fresh(const StepStats& stats) {
  if (stats.fresh_tokens == 0) return std::nullopt;
  kl_tokens_ += stats.fresh_tokens;
  kl_sum_ += stats.fresh_abs_kl * static_cast<double>(stats.fresh_tokens);
  if (kl_tokens_ >= kLeastKlTokens) {
    const double mean = kl_sum_ / static_cast<double>(kl_tokens_);
    kl_tokens_ = 0;
    kl_sum_ = 0;
    if (settings_.mean_abs_kl > 0 && mean > settings_.mean_abs_kl) {
      return notice("the mean distance from the base (nats per token)", mean, "above", settings_.mean_abs_kl);
    }
  }
  fresh_tokens_ += stats.fresh_tokens;
  fresh_outside_ += stats.fresh_outside;
  if (fresh_tokens_ >= kLeastRatioTokens) {
    const double share = static_cast<double>(fresh_outside_) / static_cast<double>(fresh_tokens_);
    fresh_tokens_ = fresh_outside_ = 0;
    if (settings_.outside_ratio_share > 0 && share > settings_.outside_ratio_share) {
      return notice("the share of fresh tokens that trainer and server score differently", share, "above",
                    settings_.outside_ratio_share);
    }
  }
  if (entropy_readings_ < settings_.window_steps) {
    first_entropy_sum_ += stats.fresh_entropy;
    ++entropy_readings_;
    return std::nullopt;
  }
  const double limit = settings_.entropy_fraction * first_entropy_sum_ / entropy_readings_;
  low_entropy_ = stats.fresh_entropy < limit ? low_entropy_ + 1 : 0;
  if (settings_.entropy_fraction > 0 && low_entropy_ >= settings_.window_steps) {
    return notice("the mean entropy of answers", stats.fresh_entropy, "below", limit);
  }
  return std::nullopt;
}

std::optional<std::string> Brakes::read(const BrakeReading& reading) {
  if (!settings_.enabled) return std::nullopt;
  nonfinite_ = reading.stats.skipped ? nonfinite_ + 1 : 0;
  if (reading.stats.skipped) {
    if (settings_.nonfinite_steps > 0 && nonfinite_ >= settings_.nonfinite_steps) {
      return notice("the number of steps in a row with a gradient that is not finite", nonfinite_, "at", settings_.nonfinite_steps);
    }
    return std::nullopt;
  }
  if (auto tripped = read_fresh(reading.stats)) return tripped;
  biases_.push_back(reading.length_bias);
  if (static_cast<int>(biases_.size()) > settings_.window_steps) biases_.pop_front();
  if (settings_.length_bias > 0 && static_cast<int>(biases_.size()) == settings_.window_steps) {
    const double mean = std::accumulate(biases_.begin(), biases_.end(), 0.0) / static_cast<double>(biases_.size());
    if (std::abs(mean) > settings_.length_bias) {
      return notice("the bias of updates by answer length", std::abs(mean), "above", settings_.length_bias);
    }
  }
  if (reading.base_length > 0) {
    const double ratio = reading.mean_length / reading.base_length;
    if (settings_.length_low > 0 && ratio < settings_.length_low) {
      return notice("the answer length against the base", ratio, "below", settings_.length_low);
    }
    if (settings_.length_high > 0 && ratio > settings_.length_high) {
      return notice("the answer length against the base", ratio, "above", settings_.length_high);
    }
  }
  return std::nullopt;
}

}  // namespace sluice
