// SPDX-License-Identifier: GPL-3.0-or-later
#include "learn/brakes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

BrakeReading well() {
  BrakeReading r;
  r.stats.fresh_tokens = 600;
  r.stats.fresh_abs_kl = 0.3;
  r.stats.fresh_entropy = 1.0;
  r.mean_length = 40;
  r.base_length = 80;
  return r;
}

TEST(Brakes, AHealthyRunGoesOn) {
  Brakes brakes{BrakeSettings()};
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(brakes.read(well()));
}

TEST(Brakes, KlOfFreshSamplesStopsWithItsNumber) {
  Brakes brakes{BrakeSettings()};
  BrakeReading r = well();
  r.stats.fresh_abs_kl = 1.75;
  const auto text = brakes.read(r);
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("1.75"), std::string::npos);
  r.stats.fresh_tokens = 0;
  EXPECT_FALSE(brakes.read(r)) << "stale samples alone must not trip it";
}

TEST(Brakes, OneOddShortAnswerIsNoDistance) {
  Brakes brakes{BrakeSettings()};
  BrakeReading odd = well();
  odd.stats.fresh_tokens = 12;
  odd.stats.fresh_abs_kl = 2.4;
  EXPECT_FALSE(brakes.read(odd));
  EXPECT_FALSE(brakes.read(well())) << "0.34 nats over both";
  odd.stats.fresh_tokens = 120;
  EXPECT_FALSE(brakes.read(odd));
  EXPECT_TRUE(brakes.read(odd)) << "240 tokens that far are a head that far";
}

TEST(Brakes, EntropyBelowHalfForAWholeWindow) {
  Brakes brakes{BrakeSettings()};
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(brakes.read(well()));
  BrakeReading low = well();
  low.stats.fresh_entropy = 0.4;
  for (int i = 0; i < 19; ++i) EXPECT_FALSE(brakes.read(low));
  EXPECT_TRUE(brakes.read(low));
}

TEST(Brakes, TrainerAndServerScoringApart) {
  Brakes brakes{BrakeSettings()};
  BrakeReading r = well();
  r.stats.fresh_outside = 10;
  EXPECT_FALSE(brakes.read(r)) << "too few tokens for a share";
  EXPECT_TRUE(brakes.read(r));
}

TEST(Brakes, NonFiniteStepsInARow) {
  Brakes brakes{BrakeSettings()};
  BrakeReading bad = well();
  bad.stats.skipped = true;
  EXPECT_FALSE(brakes.read(bad));
  EXPECT_FALSE(brakes.read(bad));
  EXPECT_FALSE(brakes.read(well()));
  EXPECT_FALSE(brakes.read(bad));
  EXPECT_FALSE(brakes.read(bad));
  EXPECT_TRUE(brakes.read(bad));
}

TEST(Brakes, LengthBiasAndLength) {
  Brakes bias{BrakeSettings()};
  BrakeReading r = well();
  r.length_bias = -0.6;
  for (int i = 0; i < 19; ++i) EXPECT_FALSE(bias.read(r));
  EXPECT_TRUE(bias.read(r));
  Brakes length{BrakeSettings()};
  r = well();
  r.mean_length = 7;
  EXPECT_TRUE(length.read(r));
  r.mean_length = 170;
  EXPECT_TRUE(length.read(r));
  r.base_length = 0;
  EXPECT_FALSE(length.read(r));
}

TEST(Brakes, OffMeansOff) {
  BrakeSettings s;
  s.enabled = false;
  Brakes brakes(s);
  BrakeReading r = well();
  r.stats.fresh_abs_kl = 9;
  EXPECT_FALSE(brakes.read(r));
}

}  // namespace
}  // namespace sluice
