// SPDX-License-Identifier: GPL-3.0-or-later
// Gate settings (presets, JSON, in-flight rules) and the probe numbers behind the invariants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "release/gate.h"
#include "release/gate_json.h"
#include "engine/release/gate_fixture.h"

namespace sluice {
namespace {

using testing::HasSubstr;

TEST(GateSettings, PresetsAreValidAndNamed) {
  for (const GateProfile p : {GateProfile::kDemo, GateProfile::kStandard, GateProfile::kStrict, GateProfile::kOff}) {
    const GateSettings s = gate_preset(p);
    EXPECT_TRUE(check_gate_settings(s).ok());
    EXPECT_EQ(parse_gate_profile(gate_profile_name(p)).value(), p);
    const auto back = gate_settings_from_json(gate_settings_to_json(s), gate_preset(GateProfile::kStandard));
    ASSERT_TRUE(back.ok()) << back.status().message();
    EXPECT_EQ(*back, s);
  }
  EXPECT_EQ(parse_gate_profile("loose").code(), Code::kInvalidArgument);
}

TEST(GateSettings, JsonSaysWhatIsWrong) {
  const GateSettings base = gate_preset(GateProfile::kDemo);
  const auto message = [&](const char* text) {
    const auto result = gate_settings_from_json(text, base);
    return result.ok() ? std::string("no error") : result.status().message();
  };
  EXPECT_THAT(message("{\"alpha\": 0.9}"), HasSubstr("\"alpha\" is 0.9; it must lie between"));
  EXPECT_THAT(message("{\"alpha\": \"small\"}"), HasSubstr("\"alpha\" must be a number"));
  EXPECT_THAT(message("{\"cap\": 10.5}"), HasSubstr("\"cap\" must be a whole number"));
  EXPECT_THAT(message("{\"alfa\": 0.1}"), HasSubstr("no field \"alfa\""));
  EXPECT_THAT(message("{\"invariants\": {\"kl\": 1}}"), HasSubstr("no field \"kl\""));
  EXPECT_THAT(message("{\"n_min\": 500}"), HasSubstr("\"n_min\""));
  EXPECT_THAT(message("{\"lam_max\": 0.99}"), HasSubstr("\"lam_max\""));
  EXPECT_THAT(message("[1]"), HasSubstr("must be an object"));
  EXPECT_THAT(message("{"), HasSubstr("not valid JSON"));
  const auto partial = gate_settings_from_json("{\"cap\": 64, \"invariants\": {\"kl_base\": 2}}", base);
  ASSERT_TRUE(partial.ok());
  EXPECT_EQ(partial->cap, 64);
  EXPECT_EQ(partial->invariants.kl_base, 2);
  EXPECT_EQ(partial->alpha, base.alpha);
}

TEST(GateSettings, InFlightLimitsMoveButTheProcessesStay) {
  const GateSettings start = gate_preset(GateProfile::kDemo);
  GateSettings now = gate_preset(GateProfile::kStrict);
  now.invariants.kl_base = 0.5;
  const GateSettings used = in_flight(start, now);
  EXPECT_EQ(used.alpha, now.alpha);
  EXPECT_EQ(used.cap, now.cap);
  EXPECT_EQ(used.invariants.kl_base, 0.5);
  EXPECT_EQ(used.delta, start.delta);
  EXPECT_EQ(used.rule, start.rule);
  EXPECT_EQ(used.profile, start.profile);
}

TEST(GateSettings, LooseningIsNoticed) {
  const GateSettings demo = gate_preset(GateProfile::kDemo), strict = gate_preset(GateProfile::kStrict);
  EXPECT_TRUE(loosens(strict, demo));
  GateSettings s = demo;
  EXPECT_FALSE(loosens(demo, s));
  s.alpha = 0.05;
  s.cap = 800;
  s.n_min = 30;
  EXPECT_FALSE(loosens(demo, s));
  s.anchor = false;
  EXPECT_TRUE(loosens(demo, s));
  s = demo;
  s.protected_alpha = 0.3;
  EXPECT_TRUE(loosens(demo, s));
}

TEST(ProbeEvidenceJson, ComesBackWhole) {
  ProbeEvidence p = healthy_probe();
  p.mismatch = 2e-4;
  p.broken = "a \"quoted\" reason";
  const auto back = probe_from_json(probe_to_json(p));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_EQ(*back, p);
  Evidence e = healthy();
  const auto of_row = probe_of_decision(invariants_to_json(e.probe, decide(kDemo, e)));
  ASSERT_TRUE(of_row.ok());
  EXPECT_EQ(*of_row, e.probe);
  EXPECT_FALSE(probe_from_json("3").ok());
  EXPECT_FALSE(probe_of_decision("{}").ok());
}

// JSON has no NaN. What could not be measured must not come back, after a restart in the midst of an evaluation, as 0.
TEST(ProbeEvidenceJson, WhatIsNoNumberComesBackAsNone) {
  Evidence e = healthy();
  e.probe.kl_incumbent = e.probe.kl_base = std::numeric_limits<double>::quiet_NaN();
  e.probe.candidate.mean_length = std::numeric_limits<double>::infinity();
  const auto back = probe_from_json(probe_to_json(e.probe));
  ASSERT_TRUE(back.ok()) << back.status().message();
  EXPECT_TRUE(std::isnan(back->kl_incumbent));
  EXPECT_TRUE(std::isnan(back->kl_base));
  EXPECT_TRUE(std::isnan(back->candidate.mean_length));
  const std::string before = decide(kDemo, e).reason_code;
  EXPECT_EQ(before, "kl_incumbent");
  e.probe = *back;
  EXPECT_EQ(decide(kDemo, e).reason_code, before);
}

TEST(Invariants, SummariseCountsWhatIsThere) {
  const std::vector<ProbeAnswer> answers = {
      {"one two", {1, 2, 3, 4}, {}, true, 10}, {"one two", {1, 2, 3}, {}, true, 30}, {" \n", {7}, {}, false, 20}};
  const ProbeArm arm = summarise(answers);
  EXPECT_EQ(arm.answers, 3);
  EXPECT_DOUBLE_EQ(arm.eos_share, 2.0 / 3);
  EXPECT_DOUBLE_EQ(arm.cut_share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(arm.empty_share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(arm.duplicate_share, 1.0 / 3);
  EXPECT_DOUBLE_EQ(arm.mean_length, 8.0 / 3);
  EXPECT_DOUBLE_EQ(arm.distinct3, 2.0 / 3);
  EXPECT_EQ(arm.us_per_token, 20);
  EXPECT_EQ(summarise({}).answers, 0);
}

TEST(Invariants, KlIsTheMeanOverTokens) {
  const std::vector<ProbeAnswer> answers = {{"", {1, 2}, {-1.0f, -2.0f}, true, 0}, {"", {3}, {-0.5f}, true, 0}};
  const std::vector<std::vector<float>> other = {{-1.5f, -2.5f}, {-1.0f}};
  EXPECT_NEAR(mean_kl(answers, other), 0.5, 1e-6);
  EXPECT_EQ(mean_kl({}, {}), 0);
}

}  // namespace
}  // namespace sluice
