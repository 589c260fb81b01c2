// SPDX-License-Identifier: GPL-3.0-or-later
// POST /sluice/v1/engine/... (serving.md §3.2), and the metrics that tell of the engine (§1.9).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

using EngineApiTest = HttpTest;

TEST_F(EngineApiTest, PausedAnswersNothingAndResumedGoesOn) {
  start();
  const Got paused = post("/sluice/v1/engine/pause", json::object());
  ASSERT_EQ(paused.status, 200) << paused.body;
  EXPECT_EQ(paused.body["state"], "paused");
  EXPECT_EQ(post("/v1/completions", prompt("p")).code(), "engine_paused");
  EXPECT_EQ(get("/health").body["status"], "paused");
  EXPECT_EQ(post("/sluice/v1/engine/pause", json::object()).status, 200);
  EXPECT_EQ(post("/sluice/v1/engine/resume", json::object()).body["state"], "ready");
  EXPECT_EQ(post("/v1/completions", prompt("p")).status, 200);
}

TEST_F(EngineApiTest, LRA14_AsleepThenAwakeAnswersAsCold) {
  start();
  const std::string cold = post("/v1/completions", prompt("abc")).body["choices"][0]["text"];
  EXPECT_EQ(post("/sluice/v1/engine/sleep", json::object()).body["state"], "asleep");
  EXPECT_EQ(post("/v1/completions", prompt("abc")).code(), "engine_asleep");
  EXPECT_EQ(post("/sluice/v1/engine/pause", json::object()).code(), "illegal_transition");
  EXPECT_EQ(post("/sluice/v1/engine/wake", json::object()).body["state"], "ready");
  EXPECT_EQ(post("/v1/completions", prompt("abc")).body["choices"][0]["text"], cold);
  EXPECT_EQ(post("/sluice/v1/engine/flush", json::object()).status, 200);
  EXPECT_EQ(post("/v1/completions", prompt("abc")).body["choices"][0]["text"], cold);
}

TEST_F(EngineApiTest, BadBodiesAreNamed) {
  start();
  EXPECT_EQ(post("/sluice/v1/engine/pause", {{"weights", true}}).param(), "weights");
  EXPECT_EQ(post("/sluice/v1/engine/sleep", {{"weights", 1}}).param(), "weights");
  EXPECT_EQ(get("/sluice/v1/engine/pause").status, 405);
  EXPECT_EQ(post("/sluice/v1/engine/stop", json::object()).code(), "route_not_found");
  EXPECT_THAT(raw("POST /sluice/v1/engine/flush HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"), HasSubstr(" 200 "));
}

TEST_F(EngineApiTest, EveryMetricIsThere) {
  start();
  post("/v1/completions", prompt("p"));
  post("/v1/completions", prompt("p"));
  get("/nowhere");
  const std::string text = get("/metrics").response.body;
  for (const char* gauge : {"requests_running", "requests_waiting", "kv_cache_usage_ratio", "engine_state", "sequences_by_version",
                            "adapter_info", "records"}) {
    EXPECT_THAT(text, HasSubstr(std::string("# TYPE sluice_") + gauge + " gauge\n"));
  }
  for (const char* counter : {"requests", "errors", "prompt_tokens", "prompt_tokens_cached", "generation_tokens",
                              "prefix_cache_queries", "prefix_cache_hits", "adapter_swaps", "gate_decisions"}) {
    EXPECT_THAT(text, HasSubstr(std::string("# TYPE sluice_") + counter + "_total counter\n"));
  }
  for (const char* histogram : {"time_to_first_token_seconds", "inter_token_seconds", "queue_seconds", "prefill_seconds",
                                "decode_seconds", "e2e_request_seconds", "adapter_swap_seconds", "batch_tokens"}) {
    EXPECT_THAT(text, HasSubstr(std::string("# TYPE sluice_") + histogram + " histogram\n"));
    EXPECT_THAT(text, HasSubstr(std::string("sluice_") + histogram + "_bucket{le=\"+Inf\"}"));
  }
  EXPECT_THAT(text, HasSubstr("sluice_errors_total{code=\"route_not_found\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("sluice_requests_total{route=\"completions\",finish_reason=\"length\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("sluice_decode_seconds_count 2\n"));
  EXPECT_THAT(text, HasSubstr("sluice_generation_tokens_total 24\n"));
}

}  // namespace
}  // namespace sluice
