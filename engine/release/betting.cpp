// SPDX-License-Identifier: GPL-3.0-or-later
#include "release/betting.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace sluice {

double BetProcess::next_lambda() const {
  const double lambda = (sum_ + rule_.mu0 * rule_.k) / (sum_squares_ + rule_.v0 * rule_.k);
  return std::clamp(lambda, 0.0, rule_.lam_max);
}

void BetProcess::add(double x) {
  const double factor = 1.0 + next_lambda() * x;
  assert(factor > 0 && "lam_max is too large for the range of X");
  log_value_ += std::log(factor);
  log_highest_ = std::max(log_highest_, log_value_);
  sum_ += x;
  sum_squares_ += x * x;
  ++count_;
}

void PairedBets::add(double d) {
  bets_.push_back({d, e_.next_lambda(), f_.next_lambda()});
  e_.add(d + delta_);
  f_.add(delta_ - d);
  sum_ += d;
}

// max over i of Σ_{j<=i} ln(1 + lam_j (D_j − u)), or with signs turned for the upper limit. A maximum of functions that fall
// (rise) in u, so it falls (rises) too and one bisection finds the best root over all i. The terms are the very ones of
// E at u = -delta (F at u = delta), which makes the two statements agree to the bit.
double PairedBets::highest_log(double u, bool lower) const {
  double sum = 0, highest = 0;
  for (const Bet& bet : bets_) {
    const double factor = lower ? 1.0 + bet.lam_e * (bet.d - u) : 1.0 + bet.lam_f * (u - bet.d);
    if (factor <= 0) break;
    sum += std::log(factor);
    highest = std::max(highest, sum);
  }
  return highest;
}

double PairedBets::limit(double alpha, bool lower) const {
  const double needed = std::log(1.0 / alpha);
  const auto excluded = [&](double u) { return highest_log(u, lower) >= needed; };
  const double toward = lower ? 1.0 : -1.0;  // where u can't be excluded
  double inside = toward, outside = -toward;  // `outside` is excluded, `inside` is not
  const double margin = lower ? -delta_ : delta_;
  if (!excluded(outside)) return outside;
  if (excluded(margin)) {
    outside = margin;
  } else {
    inside = margin;
  }
  for (int i = 0; i < 60; ++i) {
    const double middle = 0.5 * (inside + outside);
    if (middle == inside || middle == outside) break;
    (excluded(middle) ? outside : inside) = middle;
  }
  return outside;
}

double PairedBets::lower(double alpha) const { return limit(alpha, true); }
double PairedBets::upper(double alpha) const { return limit(alpha, false); }

Interval wilson(std::int64_t k, std::int64_t n, double z) {
  if (n <= 0) return {};
  const double count = static_cast<double>(n);
  const double p = static_cast<double>(k) / count;
  const double z2 = z * z;
  const double centre = p + z2 / (2 * count);
  const double half = z * std::sqrt(p * (1 - p) / count + z2 / (4 * count * count));
  const double scale = 1 + z2 / count;
  return {std::max(0.0, (centre - half) / scale), std::min(1.0, (centre + half) / scale)};
}

}  // namespace sluice
