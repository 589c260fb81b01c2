// SPDX-License-Identifier: GPL-3.0-or-later
// POST and DELETE /sluice/v1/adapters (serving.md §3.4).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class AdaptersApiTest : public HttpTest {};

TEST_F(AdaptersApiTest, FoldersBecomeCandidates) {
  start();
  const Got one = post("/sluice/v1/adapters", {{"name", "mine"}, {"path", "/a"}, {"note", "n"}});
  ASSERT_EQ(one.status, 201) << one.body;
  EXPECT_EQ(one.body, json({{"name", "mine@7"}, {"version", 7}, {"state", "candidate"}, {"modules", {"q_proj"}}, {"rank", 4}, {"bytes", 1000}}));
  const Got two = post("/sluice/v1/adapters", {{"adapters", {{{"name", "a"}, {"path", "/a"}}, {{"name", "b"}, {"path", "/b"}}}}});
  ASSERT_EQ(two.status, 201) << two.body;
  EXPECT_EQ(two.body["adapters"].size(), 2u);
}

TEST_F(AdaptersApiTest, LRA17_OneBadPathFailsTheWholeList) {
  start();
  const Got bad = post("/sluice/v1/adapters", {{"adapters", {{{"name", "a"}, {"path", "/a"}}, {{"name", "b"}, {"path", "/none"}}}}});
  EXPECT_EQ(bad.status, 400);
  EXPECT_EQ(bad.code(), "invalid_adapter");
  EXPECT_EQ(bad.param(), "path");
  EXPECT_THAT(bad.body["error"]["message"].get<std::string>(), HasSubstr("/none"));
  EXPECT_FALSE(bad.body.contains("adapters"));
}

TEST_F(AdaptersApiTest, WhatCannotBeTakenIsNamed) {
  start();
  for (const char* name : {"", "-a", "a b", "a/b", "a@1", "\u00e9"}) {
    EXPECT_EQ(post("/sluice/v1/adapters", {{"name", name}, {"path", "/a"}}).param(), "name") << name;
  }
  EXPECT_EQ(post("/sluice/v1/adapters", {{"name", std::string(65, 'a')}, {"path", "/a"}}).param(), "name");
  EXPECT_EQ(post("/sluice/v1/adapters", {{"name", "a"}}).param(), "path");
  EXPECT_EQ(post("/sluice/v1/adapters", {{"adapters", {{{"name", "a"}, {"path", "/a"}}, 5}}}).param(), "adapters[1]");
  EXPECT_EQ(post("/sluice/v1/adapters", {{"adapters", json::array()}}).param(), "adapters");
  const Got used = post("/sluice/v1/adapters", {{"name", "brief-alias"}, {"path", "/a"}});
  EXPECT_EQ(used.status, 409);
  EXPECT_EQ(used.code(), "name_in_use");
}

TEST_F(AdaptersApiTest, DeletingPrunesWhereTheStateAllowsIt) {
  start();
  const VersionId first = store_.new_version(), second = store_.new_version();
  EXPECT_THAT(del("/sluice/v1/adapters/test"), HasSubstr("illegal_transition"));  // candidates are rejected first
  ASSERT_TRUE(store_->set_version_state(first, VersionState::kSuperseded).ok());
  EXPECT_THAT(del("/sluice/v1/adapters/test/versions/" + std::to_string(first.value)), HasSubstr("202 Accepted"));
  EXPECT_EQ(store_->version(first)->state, VersionState::kPruned);
  EXPECT_EQ(store_->version(second)->state, VersionState::kCandidate);
  EXPECT_THAT(del("/sluice/v1/adapters/test/versions/" + std::to_string(first.value)), HasSubstr("model_not_found"));
  EXPECT_THAT(del("/sluice/v1/adapters/none"), HasSubstr("model_not_found"));
  EXPECT_THAT(del("/sluice/v1/adapters/base/versions/0"), HasSubstr("model_not_found"));
  ASSERT_TRUE(store_->set_version_state(second, VersionState::kSuperseded).ok());
  EXPECT_THAT(del("/sluice/v1/adapters/test"), HasSubstr("\"state\":\"pruned\""));
}

// A client may hand back the name that POST and GET gave it.
TEST_F(AdaptersApiTest, DeletingTakesTheNameThatTheAnswersGive) {
  start();
  const VersionId first = store_.new_version(), second = store_.new_version();
  for (const VersionId v : {first, second}) ASSERT_TRUE(store_->set_version_state(v, VersionState::kSuperseded).ok());
  const std::string name = get("/sluice/v1/adapters").body["data"].back()["name"];
  EXPECT_EQ(name, "test@" + std::to_string(second.value));
  const std::string path = "/sluice/v1/adapters/" + name;
  EXPECT_THAT(del(path + "/versions/" + std::to_string(first.value)), HasSubstr("model_not_found")) << "two versions";
  EXPECT_THAT(del(path), HasSubstr("202 Accepted"));
  EXPECT_EQ(store_->version(second)->state, VersionState::kPruned);
  EXPECT_EQ(store_->version(first)->state, VersionState::kSuperseded);
  EXPECT_THAT(del(path), HasSubstr("model_not_found"));
  const std::string number = std::to_string(first.value);
  for (const std::string& other : std::vector<std::string>{"test@", "test@0", "test@0" + number, "tes@" + number, "@" + number}) {
    EXPECT_THAT(del("/sluice/v1/adapters/" + other), HasSubstr("model_not_found")) << other;
  }
  EXPECT_THAT(del("/sluice/v1/adapters/test%40" + number + "/versions/" + number), HasSubstr("202 Accepted"));
}

}  // namespace
}  // namespace sluice
