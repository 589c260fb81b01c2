// SPDX-License-Identifier: GPL-3.0-or-later
// Tests by betting on paired differences (gate.md §3.3, §3.4): e-processes that may be looked at after every pair, the
// confidence interval that belongs to them, and Wilson's interval. No I/O. Values; used by one thread at a time.
//
// A process multiplies 1 + lam_i X_i. When E[X_i | past] <= 0 its product is a non-negative supermartingale from 1, so by
// Ville's inequality P(it ever reaches c) <= 1/c, for any stopping rule. lam_i looks at past values only.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice {

// lam_i = clip((Σ X + mu0 k) / (Σ X² + v0 k), 0, lam_max), sums over past values.
struct BettingRule {
  double k = 200;       // weight of the prior, in pairs
  double mu0 = 0.04;    // mean it expects
  double v0 = 0.25;     // mean square it expects
  double lam_max = 0.5;  // lam_max · |lowest X| must stay below 1

  bool operator==(const BettingRule&) const = default;
};

class BetProcess {
 public:
  explicit BetProcess(const BettingRule& rule) : rule_(rule) {}

  double next_lambda() const;
  void add(double x);
  double log_value() const { return log_value_; }  // natural log of the product so far
  double log_highest() const { return log_highest_; }  // its highest value so far, 0 before any
  std::int64_t count() const { return count_; }

 private:
  BettingRule rule_;
  double sum_ = 0, sum_squares_ = 0;
  double log_value_ = 0, log_highest_ = 0;
  std::int64_t count_ = 0;
};

// E (against "worse by delta or more") and F (against "better by delta or more") on differences D in [-1, 1], with the
// interval for their mean.
class PairedBets {
 public:
  PairedBets(const BettingRule& rule, double delta) : delta_(delta), e_(rule), f_(rule) {}

  void add(double d);
  double log_e() const { return e_.log_value(); }
  double log_f() const { return f_.log_value(); }
  double log_e_highest() const { return e_.log_highest(); }
  double log_f_highest() const { return f_.log_highest(); }
  std::int64_t count() const { return e_.count(); }
  double mean() const { return count() == 0 ? 0.0 : sum_ / static_cast<double>(count()); }

  // Time-uniform limits: each misses E[D] at any n with probability <= alpha. lower >= -delta exactly when E has reached
  // 1/alpha, upper <= delta exactly when F has. -1 and 1 where the data exclude nothing.
  double lower(double alpha) const;
  double upper(double alpha) const;

 private:
  struct Bet {
    double d, lam_e, lam_f;
  };
  double highest_log(double u, bool lower) const;
  double limit(double alpha, bool lower) const;

  double delta_;
  double sum_ = 0;
  BetProcess e_, f_;
  std::vector<Bet> bets_;
};

struct Interval {
  double lo = 0, hi = 1;
};

// Wilson's interval for k successes of n. z: 1.96 = 95 %, 2.576 = 99 %. [0, 1] for n = 0.
Interval wilson(std::int64_t k, std::int64_t n, double z = 1.959963984540054);

}  // namespace sluice
