// SPDX-License-Identifier: GPL-3.0-or-later
// Properties of the tests by betting (gate.md §9), by simulation. SLUICE_PROPERTY_SCALE multiplies the number of candidates
// (5 gives the counts of the sheet). Seeds are fixed, so a failure repeats.
#include "release/betting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <tuple>

#include "base/seeds.h"

namespace sluice {
namespace {

int candidates() {
  const char* scale = std::getenv("SLUICE_PROPERTY_SCALE");
  return 4000 * (scale != nullptr && std::atoi(scale) > 0 ? std::atoi(scale) : 1);
}

double uniform(SplitMix64& draws) { return static_cast<double>(draws.next() >> 11) * 0x1.0p-53; }

// One paired difference in {-1, 0, 1}: unequal with chance d, mean `mean`; |mean| <= d.
double draw(SplitMix64& draws, double d, double mean) {
  const double u = uniform(draws);
  if (u < (d + mean) / 2) return 1;
  return u < d ? -1 : 0;
}

double tolerance(double p, int n) { return 3 * std::sqrt(p * (1 - p) / n); }

constexpr double kDelta = 0.02;
constexpr int kCap = 800;

struct Shares {
  double promoted = 0, rejected = 0, mean_pairs = 0;
};

// The verdict rule of gate.md §3.3 on its own: ready E promotes, else ready F rejects, from n_min on.
Shares run(double mean, double d, std::uint64_t seed, int n_min = 30) {
  const int n = candidates();
  Shares out;
  for (int c = 0; c < n; ++c) {
    SplitMix64 draws(seed + static_cast<std::uint64_t>(c));
    BetProcess e(BettingRule{}), f(BettingRule{});
    int i = 0;
    while (i < kCap) {
      const double x = draw(draws, d, mean);
      e.add(x + kDelta);
      f.add(kDelta - x);
      ++i;
      if (i < n_min) continue;
      if (e.log_highest() >= std::log(20)) {
        out.promoted += 1.0 / n;
        break;
      }
      if (f.log_highest() >= std::log(10)) {
        out.rejected += 1.0 / n;
        break;
      }
    }
    out.mean_pairs += static_cast<double>(i) / n;
  }
  return out;
}

class TypeOne : public testing::TestWithParam<double> {};

TEST_P(TypeOne, PromotesTooBadCandidatesAtMostAlpha) {
  const Shares s = run(-kDelta, GetParam(), 1);
  EXPECT_LE(s.promoted, 0.05 + tolerance(0.05, candidates()));
}
INSTANTIATE_TEST_SUITE_P(Unequal, TypeOne, testing::Values(0.04, 0.1, 0.25, 0.4, 0.8));

// The share of streams whose E ever reaches 1/alpha: no rule of stopping, waiting or extending can do worse.
double share_ever(double alpha, const std::function<double(SplitMix64&, int, const BetProcess&)>& next, int cap = kCap) {
  const int n = candidates();
  int reached = 0;
  for (int c = 0; c < n; ++c) {
    SplitMix64 draws(7000000 + static_cast<std::uint64_t>(c));
    BetProcess e(BettingRule{});
    for (int i = 0; i < cap && e.log_highest() < std::log(1 / alpha); ++i) e.add(next(draws, i, e) + kDelta);
    reached += e.log_highest() >= std::log(1 / alpha);
  }
  return static_cast<double>(reached) / n;
}

TEST(Betting, OptionalStoppingAndExtendedCapKeepTheLevel) {
  for (const double alpha : {0.2, 0.1, 0.05, 0.01}) {
    const double share = share_ever(alpha, [](SplitMix64& r, int, const BetProcess&) { return draw(r, 0.25, -kDelta); }, 2 * kCap);
    EXPECT_LE(share, alpha + tolerance(alpha, candidates())) << alpha;
  }
}

TEST(Betting, HostileStreamsKeepTheLevel) {
  const auto check = [](const char* what, const std::function<double(SplitMix64&, int, const BetProcess&)>& next) {
    EXPECT_LE(share_ever(0.05, next), 0.05 + tolerance(0.05, candidates())) << what;
  };
  check("drifting share of unequal pairs", [](SplitMix64& r, int i, const BetProcess&) {
    return draw(r, 0.5 + 0.45 * std::sin(i / 40.0), -kDelta);
  });
  check("sorted: dull prompts first", [](SplitMix64& r, int i, const BetProcess&) {
    return draw(r, 0.03 + 0.9 * i / kCap, -kDelta);
  });
  check("sorted: telling prompts first", [](SplitMix64& r, int i, const BetProcess&) {
    return draw(r, 0.93 - 0.9 * i / kCap, -kDelta);
  });
  check("wilder while it wins", [](SplitMix64& r, int, const BetProcess& e) {
    return draw(r, e.log_value() > 0 ? 0.9 : 0.03, -kDelta);
  });
  check("bursts: conversations as fractional cluster means", [](SplitMix64& r, int i, const BetProcess&) {
    const int size = 1 + i % 7;
    double sum = 0;
    for (int j = 0; j < size; ++j) sum += draw(r, 0.4, -kDelta);
    return sum / size;
  });
}

// The same harness must be able to see a broken test: McNemar's statistic looked at every ten pairs.
TEST(Betting, NegativeControlPeekingMcNemarPromotesEqualCandidates) {
  const int n = candidates();
  int promoted = 0;
  for (int c = 0; c < n; ++c) {
    SplitMix64 draws(99 + static_cast<std::uint64_t>(c));
    double wins = 0, losses = 0;
    bool passed = false;
    for (int i = 1; i <= kCap && !passed; ++i) {
      const double x = draw(draws, 0.25, 0);
      wins += x > 0;
      losses += x < 0;
      passed = i % 10 == 0 && wins + losses > 0 && (wins - losses) / std::sqrt(wins + losses) > 1.645;
    }
    promoted += passed;
  }
  EXPECT_GT(static_cast<double>(promoted) / n, 0.25);
}

TEST(Betting, PowerOfTheStandardProfile) {
  const Shares good = run(0.05, 0.25, 11);
  EXPECT_GE(good.promoted, 0.91);
  EXPECT_NEAR(good.mean_pairs, 361, 36);
  const Shares bad = run(-0.05, 0.25, 12);
  EXPECT_LE(bad.promoted, 0.005);
  EXPECT_GE(bad.rejected, 0.94);
  const Shares equal = run(0, 0.25, 13);
  EXPECT_NEAR(equal.promoted, 0.133, 0.03);
  EXPECT_NEAR(equal.rejected, 0.224, 0.03);
}

TEST(Betting, PowerOfTheDemoProfile) {
  BettingRule rule;
  rule.k = 50;
  rule.mu0 = 0.10;
  const auto demo = [&](double mean, double d) {
    int promoted = 0, pairs = 0;
    const int n = candidates();
    for (int c = 0; c < n; ++c) {
      SplitMix64 draws(5 + static_cast<std::uint64_t>(c));
      BetProcess e(rule), f(rule);
      for (int i = 1; i <= 128; ++i, ++pairs) {
        const double x = draw(draws, d, mean);
        e.add(x + 0.05);
        f.add(0.05 - x);
        if (i < 16) continue;
        if (e.log_highest() >= std::log(10)) {
          ++promoted;
          break;
        }
        if (f.log_highest() >= std::log(10)) break;
      }
    }
    return std::pair(static_cast<double>(promoted) / n, static_cast<double>(pairs) / n);
  };
  const auto [good, good_pairs] = demo(0.20, 0.25);
  EXPECT_GE(good, 0.995);
  EXPECT_NEAR(good_pairs, 30, 5);
  EXPECT_LE(demo(-0.10, 0.25).first, 0.02);
}

TEST(Betting, IntervalSaysWhatTheVerdictSays) {
  int promoted = 0, rejected = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SplitMix64 draws(seed);
    PairedBets bets(BettingRule{}, kDelta);
    const double mean = 0.2 * (static_cast<double>(seed % 5) - 2) / 2;
    for (int i = 0; i < 200; ++i) {
      bets.add(draw(draws, 0.4, mean));
      const bool e_ready = bets.log_e_highest() >= std::log(1 / 0.05);
      const bool f_ready = bets.log_f_highest() >= std::log(1 / 0.05);
      ASSERT_EQ(bets.lower(0.05) >= -kDelta, e_ready) << seed << " " << i;
      ASSERT_EQ(bets.upper(0.05) <= kDelta, f_ready) << seed << " " << i;
      promoted += e_ready;
      rejected += f_ready;
    }
  }
  EXPECT_GT(promoted, 100);  // the walk met both cases
  EXPECT_GT(rejected, 100);
}

TEST(Betting, IntervalCoversTheMeanAtEveryLook) {
  const int n = candidates() / 2;
  for (const auto& [mean, d] : {std::pair(0.0, 0.25), std::pair(0.1, 0.4), std::pair(-0.05, 0.1)}) {
    int missed_low = 0, missed_high = 0;
    for (int c = 0; c < n; ++c) {
      SplitMix64 draws(31 + static_cast<std::uint64_t>(c));
      // The limits at the end are the extremes over all looks, so one look at the end sees every miss before it.
      PairedBets bets(BettingRule{}, kDelta);
      for (int i = 0; i < kCap; ++i) bets.add(draw(draws, d, mean));
      missed_low += bets.lower(0.05) > mean;
      missed_high += bets.upper(0.05) < mean;
    }
    EXPECT_LE(missed_low, n * (0.05 + tolerance(0.05, n))) << mean;
    EXPECT_LE(missed_high, n * (0.05 + tolerance(0.05, n))) << mean;
  }
}

TEST(Betting, NothingKnownBeforeData) {
  const PairedBets bets(BettingRule{}, kDelta);
  EXPECT_EQ(bets.lower(0.05), -1);
  EXPECT_EQ(bets.upper(0.05), 1);
  EXPECT_EQ(bets.log_e(), 0);
  EXPECT_EQ(bets.mean(), 0);
}

TEST(Betting, StakeLooksAtThePastOnly) {
  BetProcess process(BettingRule{});
  const double first = process.next_lambda();
  EXPECT_DOUBLE_EQ(first, 0.04 / 0.25);
  process.add(1);
  EXPECT_DOUBLE_EQ(process.log_value(), std::log(1 + first));
  process.add(-1);
  EXPECT_DOUBLE_EQ(process.log_highest(), std::log(1 + first));
}

TEST(Wilson, KnownValues) {
  const Interval a = wilson(52, 120);
  EXPECT_NEAR(a.lo, 0.348, 0.001);
  EXPECT_NEAR(a.hi, 0.523, 0.001);
  EXPECT_EQ(wilson(0, 0).lo, 0);
  EXPECT_EQ(wilson(0, 0).hi, 1);
  EXPECT_NEAR(wilson(0, 10).hi, 0.2775, 0.001);
  EXPECT_EQ(wilson(0, 10).lo, 0);
  EXPECT_NEAR(wilson(10, 10).lo, 0.7225, 0.001);
}

}  // namespace
}  // namespace sluice
