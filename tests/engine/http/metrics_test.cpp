// SPDX-License-Identifier: GPL-3.0-or-later
// What /metrics says of answers, records and versions (serving.md §1.9).
#include "http/metrics.h"

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(MetricsTest, RecordsAreAGaugeThatFalls) {
  start();
  const std::string id = post("/v1/completions", prompt("p")).body["sluice"]["record_id"];
  post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}});
  EXPECT_THAT(metrics(), HasSubstr("# TYPE sluice_records gauge\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_records{state=\"live\"} 1\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_records{state=\"waiting\"} 1\n"));
  EXPECT_THAT(metrics(), Not(HasSubstr("records_total")));
  EXPECT_THAT(del("/sluice/v1/records/" + id), HasSubstr("\"deleted\":true"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_records{state=\"live\"} 0\n"));
  EXPECT_THAT(metrics(), HasSubstr("sluice_records{state=\"waiting\"} 0\n"));
}

// A control under which sequences of many versions run.
class BusyControl final : public FakeControl {
 public:
  using FakeControl::FakeControl;
  ServingCounters counters() const override {
    ServingCounters out = FakeControl::counters();
    out.generator.running_by_version = running_;
    return out;
  }
  std::map<VersionId, std::int64_t> running_;
};

TEST_F(MetricsTest, Past64VersionsTheOldestFoldIntoOther) {
  start();
  BusyControl control(*store_, *engine_, service_);
  std::vector<VersionId> versions{kBaseVersion};
  while (versions.size() < 64) versions.push_back(store_.new_version());
  for (const VersionId v : versions) control.running_[v] = 2;
  Metrics counted(*store_);
  EXPECT_THAT(counted.text(*store_, control), Not(HasSubstr("\"other\"")));
  while (versions.size() < 67) {
    versions.push_back(store_.new_version());
    control.running_[versions.back()] = 2;
  }
  const std::string text = counted.text(*store_, control);
  EXPECT_THAT(text, HasSubstr("sluice_adapter_info{adapter=\"other\",version=\"other\",state=\"other\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("sluice_sequences_by_version{adapter=\"other\",version=\"other\"} 6\n"));
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string label = ",version=\"" + std::to_string(versions[i].value) + "\"";
    EXPECT_EQ(text.find("sluice_adapter_info{adapter=\"test\"" + label) != std::string::npos, i >= 3) << i;
    EXPECT_EQ(text.find("sluice_sequences_by_version{adapter=\"test\"" + label) != std::string::npos, i >= 3) << i;
  }
}

}  // namespace
}  // namespace sluice
