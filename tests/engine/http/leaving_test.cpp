// SPDX-License-Identifier: GPL-3.0-or-later
// CON-1: a client that leaves frees its place within one step, at every stage, streamed or not (serving.md §1.1).
#include <thread>

#include "http_fixture.h"

namespace sluice {
namespace {

class LeavingTest : public HttpTest {
 protected:
  int send(json body, bool streamed) const {
    body["stream"] = streamed;
    return open_post("/v1/completions", body);
  }
  std::int64_t cancelled() {
    const std::string text = get("/metrics").response.body;
    const std::string line = "sluice_requests_total{route=\"completions\",finish_reason=\"cancelled\"} ";
    const auto at = text.find(line);
    return at == std::string::npos ? 0 : std::stoll(text.substr(at + line.size()));
  }
  // The client leaves while the engine stands in a step; once the server has seen it, the end of that step must do (or of
  // the next, when that was about to begin).
  void leave_and_expect_free(int fd, std::int64_t still_running) {
    const std::int64_t before = cancelled();
    ::close(fd);
    while (cancelled() == before) std::this_thread::yield();
    const std::int64_t steps = gate_.arrived();
    while (engine_->stats().running != still_running || engine_->stats().waiting != 0) {
      gate_.allow_begun();
      std::this_thread::yield();
    }
    EXPECT_LE(gate_.arrived(), steps + 2);
  }
};

TEST_F(LeavingTest, CON1_WhileItWaits) {
  EngineOptions engine;
  engine.max_running = 1;
  engine.reserved_for_live = 0;
  start(gated(), {}, engine);
  json body = prompt("p");
  body["max_tokens"] = 400;
  const int first = send(body, false);
  gate_.wait_arrived(1);
  for (const bool streamed : {false, true}) {
    const int fd = send(body, streamed);
    while (engine_->stats().waiting != 1) std::this_thread::yield();
    leave_and_expect_free(fd, 1);
  }
  gate_.open();
  ::close(first);
}

TEST_F(LeavingTest, CON1_InItsPrefill) {
  EngineOptions engine;
  engine.prefill_chunk = 16;
  start(gated(), {}, engine);
  std::int64_t steps = 0;
  for (const bool streamed : {false, true}) {
    const int fd = send(prompt(std::string(400, streamed ? 'a' : 'b')), streamed);
    gate_.wait_arrived(steps + 1);  // the first of many chunks
    leave_and_expect_free(fd, 0);
    steps = gate_.arrived();
    EXPECT_LT(steps, 25);
  }
}

TEST_F(LeavingTest, CON1_InItsDecode) {
  start(gated());
  std::int64_t steps = 0;
  std::size_t records = 0;
  for (const int n : {1, 4}) {
    for (const bool streamed : {false, true}) {
      json body = prompt("p" + std::to_string(n) + (streamed ? "s" : ""));
      body["max_tokens"] = 400;
      body["n"] = n;
      body["temperature"] = 1;
      const int fd = send(body, streamed);
      gate_.wait_arrived(steps + 1);
      while (engine_->stats().running != n) {  // the other choices begin behind the first
        gate_.allow_begun();
        std::this_thread::yield();
      }
      leave_and_expect_free(fd, 0);
      steps = gate_.arrived();
      ++records;
      while (store_->records({}, 0, 10).size() < records) std::this_thread::yield();
      EXPECT_LT(store_->records({}, 0, 1).at(0).token_ids.size(), 400u);
    }
  }
}

}  // namespace
}  // namespace sluice
