// SPDX-License-Identifier: GPL-3.0-or-later
// Records redacted and deleted over the API, and what that does to training (serving.md §1.2).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class RecordsTest : public HttpTest {
 protected:
  std::string answer(const std::string& text) { return post("/v1/chat/completions", chat(text)).body["sluice"]["record_id"]; }
};

TEST_F(RecordsTest, RedactingTakesTheContentAndKeepsTheRow) {
  start();
  const std::string id = answer("my secret plan");
  ASSERT_EQ(post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}, {"comment", "secret too"}}).body["state"], "waiting");
  ASSERT_EQ(get("/sluice/v1/records?text=secret").body["data"].size(), 1u);
  ASSERT_EQ(store_->trainable(control_->session_.get(), 10).size(), 1u);
  const Got g = post("/sluice/v1/records/" + id + "/redact", json::object());
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["redacted"], true);
  EXPECT_EQ(g.body["feedback"], 1);
  EXPECT_TRUE(g.body["used_in_step"].is_null());
  EXPECT_THAT(g.body["training"].get<std::string>(), HasSubstr("will not be trained on"));
  EXPECT_EQ(store_->trainable(control_->session_.get(), 10).size(), 0u);
  EXPECT_EQ(get("/sluice/v1/records?text=secret").body["data"].size(), 0u);
  const json row = get("/sluice/v1/records/" + id).body;
  EXPECT_THAT(row.dump(), Not(HasSubstr("secret")));
  EXPECT_EQ(row["completion"], "");
  EXPECT_EQ(row["token_ids"], json::array());
  EXPECT_EQ(row["prompt_token_ids"], json::array());
  EXPECT_EQ(row["lp_full"], json::array());
  EXPECT_EQ(row["fate"], "redacted");
  EXPECT_EQ(row["feedback"][0]["kind"], "accept");
  EXPECT_EQ(get("/sluice/v1/records?state=redacted").body["data"].size(), 1u);
  // A later label is taken, and trains nothing.
  EXPECT_EQ(post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "reject"}}).body["state"], "ignored");
  EXPECT_EQ(post("/sluice/v1/records/" + id + "/redact", json::object()).status, 200);
  EXPECT_TRUE(store_->verify().empty());
}

TEST_F(RecordsTest, DeletingTakesTheRowWithItsLabels) {
  start();
  const std::string id = answer("gone soon");
  post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}});
  EXPECT_THAT(del("/sluice/v1/records/" + id), HasSubstr("\"deleted\":true"));
  EXPECT_EQ(get("/sluice/v1/records/" + id).code(), "record_not_found");
  EXPECT_EQ(get("/sluice/v1/records?text=gone").body["data"].size(), 0u);
  EXPECT_EQ(post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}}).code(), "record_not_found");
  EXPECT_THAT(del("/sluice/v1/records/" + id), HasSubstr("record_not_found"));
  EXPECT_EQ(post("/sluice/v1/records/rec_none/redact", json::object()).code(), "record_not_found");
  EXPECT_TRUE(store_->verify().empty());
}

TEST_F(RecordsTest, WhatTrainedIsSaidWithTheVersionsThatLearntFromIt) {
  start();
  const std::string id = answer("taught");
  post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}});
  const BatchId batch = batch_of(id);
  // In the trainer's hand: neither.
  EXPECT_THAT(del("/sluice/v1/records/" + id), HasSubstr("illegal_transition"));
  EXPECT_EQ(post("/sluice/v1/records/" + id + "/redact", json::object()).status, 409);
  StepRow step;
  step.session = control_->session_.get();
  step.batch = batch;
  step.number = 1;
  const StepId made = store_->add_step(step, {}).value();
  VersionRow version;
  version.id = store_->reserve_version().value();
  version.name = "brief";
  version.parent = kBaseVersion;
  version.session = control_->session_.get();
  version.origin = "step";
  version.step = made;
  ASSERT_TRUE(store_->add_version(version).ok());
  const Got g = post("/sluice/v1/records/" + id + "/redact", json::object());
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["used_in_step"], made.value);
  EXPECT_EQ(g.body["learnt_by"], json({version.id.value}));
  EXPECT_THAT(g.body["training"].get<std::string>(), HasSubstr("roll back"));
  EXPECT_EQ(get("/sluice/v1/records/" + id).body["fate"], "trained");
  EXPECT_THAT(del("/sluice/v1/records/" + id), HasSubstr("\"deleted\":true"));
  EXPECT_TRUE(store_->verify().empty());
}

TEST_F(RecordsTest, AnOpenAnswerIsNotForgottenYet) {
  start(gated());
  const OpenAnswer begun = open_answer(1);
  const Got g = post("/sluice/v1/records/" + begun.record + "/redact", json::object());
  EXPECT_EQ(g.code(), "record_open");
  EXPECT_EQ(g.header("Retry-After"), "1");
  gate_.open();
  ::close(begun.fd);
}

}  // namespace
}  // namespace sluice
