// SPDX-License-Identifier: GPL-3.0-or-later
// The gate of a session compares what serving and training make of a candidate (gate.md §3.1), on the tiny model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"
#include "held_recipe.h"
#include "release/gate_json.h"
#include "runtime/runtime.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class ProbeTest : public ::testing::Test {
 protected:
  // One batch, one candidate: the gate's decision about it, with this limit on the gap.
  DecisionRow decision(const std::string& limit) {
    std::filesystem::create_directories(folder.path + "/recipes");
    std::ofstream(folder.path + "/recipes/held.json")
        << testing::changed(testing::kHeldRecipe, "\"probe_mismatch\": 10", "\"probe_mismatch\": " + limit);
    RuntimeOptions o = testing::tiny_runtime(folder.path);
    o.recipe_folder = folder.path + "/recipes";
    const std::unique_ptr<Runtime> runtime = testing::open_runtime(o, log);
    if (!runtime) return {};
    EXPECT_TRUE(runtime->wait_ready(60).ok());
    StartSession start;
    start.recipe = "held";
    start.max_requests = 8;
    const CommandOutcome started = runtime->run(start);
    EXPECT_TRUE(started.ok()) << started.text;
    EXPECT_TRUE(runtime->wait_session_finished(240)) << "stands at " << runtime->snapshot()->train.doing;
    for (const DecisionRow& row : runtime->store().decisions(0, 1000)) {
      if (row.kind == "gate") return row;
    }
    ADD_FAILURE() << "no candidate was judged";
    return {};
  }

  TempFolder folder;
  Log log;
};

TEST_F(ProbeTest, ServingAndTrainingAgreeAndTheDecisionSaysHowWell) {
  const DecisionRow row = decision("0.001");
  EXPECT_EQ(row.verdict, Verdict::kHold) << row.reason_text;
  const auto probe = probe_of_decision(row.invariants_json);
  ASSERT_TRUE(probe.ok()) << probe.status().message();
  ASSERT_TRUE(probe->mismatch) << "it was measured";
  EXPECT_GT(*probe->mismatch, 0);
  EXPECT_LT(*probe->mismatch, 1e-3);
  EXPECT_THAT(row.invariants_json, HasSubstr("\"name\":\"probe_mismatch\",\"passed\":true"));
}

TEST_F(ProbeTest, AGapAboveTheLimitRejects) {
  const DecisionRow row = decision("0");
  EXPECT_EQ(row.verdict, Verdict::kReject);
  EXPECT_EQ(row.reason_code, "probe_mismatch");
  EXPECT_THAT(row.reason_text, HasSubstr("the gap between the server's and the trainer's log-probs is "));
}

}  // namespace
}  // namespace sluice
