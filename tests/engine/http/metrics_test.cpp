// SPDX-License-Identifier: GPL-3.0-or-later
// What /metrics says of answers (serving.md §1.9).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class MetricsTest : public HttpTest {
 protected:
  std::string metrics() { return get("/metrics").response.body; }
};

TEST_F(MetricsTest, GapsAreThoseOfOneChoice) {
  start(says("abcd"));
  json body = prompt("p");
  body["n"] = 3;
  body["echo"] = true;
  ASSERT_EQ(post("/v1/completions", body).status, 200);
  EXPECT_THAT(metrics(), HasSubstr("sluice_time_to_first_token_seconds_count 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_inter_token_seconds_count 9\n"));  // of 3 choices, between 4 tokens
  ASSERT_TRUE(stream("/v1/completions", body).done());
  EXPECT_THAT(metrics(), HasSubstr("sluice_time_to_first_token_seconds_count 2\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_inter_token_seconds_count 18\n"));
}

TEST_F(MetricsTest, AnAnswerWithoutTextHasNoFirstToken) {
  start();
  json body = prompt("p");
  body["max_tokens"] = 0;
  body["echo"] = true;
  ASSERT_EQ(post("/v1/completions", body).status, 200);
  EXPECT_THAT(metrics(), HasSubstr("sluice_time_to_first_token_seconds_count 0\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_inter_token_seconds_count 0\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_e2e_request_seconds_count 1\n"));
}

}  // namespace
}  // namespace sluice
