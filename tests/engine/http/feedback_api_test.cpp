// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1/feedback: fields and their bounds, labels by text, many at once, what is not stored (serving.md §2.2).
#include "http/label_writer.h"
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class FeedbackApiTest : public HttpTest {
 protected:
  std::string answer(json body = chat("x"), const std::string& path = "/v1/chat/completions") {
    return post(path, body).body["sluice"]["record_id"];
  }
  Got label(const json& body, HttpHeaders headers = {}) { return post("/sluice/v1/feedback", body, std::move(headers)); }
};

TEST_F(FeedbackApiTest, BoundsCountCharacters) {
  start();
  const std::string id = answer();
  const auto text = [](std::size_t n) {
    std::string out;
    for (std::size_t i = 0; i < n; ++i) out += "é";
    return out;
  };
  const json good = {{"record_id", id}, {"kind", "accept"}, {"labeller", text(128)}, {"comment", text(4000)}, {"key", text(128)}};
  EXPECT_EQ(label(good).status, 200);
  const std::pair<const char*, json> kBad[] = {{"labeller", text(129)},
                                               {"comment", text(4001)},
                                               {"key", text(129)},
                                               {"metadata", {{"x", std::string(4096, 'm')}}},
                                               {"metadata", 5},
                                               {"kind", "good"},
                                               {"source", "robot"},
                                               {"choice", -1},
                                               {"choice", 1},
                                               {"choice", "0"},
                                               {"score", 1},
                                               {"match", {{"prompt", "p"}, {"completion", "c"}}}};
  for (const auto& [name, value] : kBad) {
    json body = {{"record_id", id}, {"kind", "reject"}};
    body[name] = value;
    const Got g = label(body);
    EXPECT_EQ(g.status, 400) << name;
    EXPECT_EQ(g.param(), name) << g.body;
  }
  for (const json& score : {json(true), json("1"), json()}) {
    const Got g = label({{"record_id", id}, {"kind", "score"}, {"score", score}});
    EXPECT_EQ(g.status, 400);
    EXPECT_EQ(g.param(), "score");
  }
  const std::string overflow = R"({"record_id":")" + id + R"(","kind":"score","score":1e400})";
  const std::string size = "Connection: close\r\nContent-Length: " + std::to_string(overflow.size()) + "\r\n";
  EXPECT_THAT(raw(post_head("/sluice/v1/feedback", size) + overflow), HasSubstr("400 Bad Request"));
  EXPECT_EQ(label({{"record_id", "rec_none"}, {"kind", "accept"}, {"choice", 3}}).code(), "record_not_found");
}

TEST_F(FeedbackApiTest, OnlyTheFirstChoiceTrains) {
  start();
  json body = chat("x");
  body["n"] = 2;
  const std::string id = answer(body);
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"choice", 1}}).body["state"], "ignored");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"choice", 2}}).param(), "choice");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}}).body["state"], "waiting");
}

TEST_F(FeedbackApiTest, ByText) {
  start(says("  return 0;\n}"));
  const std::string id = answer({{"prompt", "int main"}, {"max_tokens", 20}}, "/v1/completions");
  const auto by_text = [&](const std::string& prompt, const std::string& completion) {
    return label({{"match", {{"prompt", prompt}, {"completion", completion}}}, {"kind", "accept"}});
  };
  const Got found = by_text("int main", " return 0;\n");
  ASSERT_EQ(found.status, 200) << found.body;
  EXPECT_EQ(found.body["record_id"], id);
  EXPECT_EQ(found.body["state"], "waiting");
  const Got none = by_text("int main", "return 1;");
  EXPECT_EQ(none.body["state"], "unmatched");
  EXPECT_TRUE(none.body["record_id"].is_null());
  EXPECT_EQ(by_text("int main", " \n").body["state"], "ignored");
  EXPECT_EQ(label({{"match", {{"prompt", "p"}}}, {"kind", "accept"}}).param(), "match.completion");
  const auto rows = store_->feedback_of({id});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].shown, "return 0;");
  EXPECT_EQ(rows[0].shown_tokens, 11);  // bytes are tokens here: two spaces and what was shown
  const Got list = get("/sluice/v1/feedback/unmatched");
  ASSERT_EQ(list.body["data"].size(), 1u);
  EXPECT_EQ(list.body["data"][0]["shown"], "return 1;");
}

TEST_F(FeedbackApiTest, TextOfAnUnstoredRecordIsNeverMatched) {
  start(says("secret"));
  json body = {{"prompt", "p"}, {"store", false}};
  answer(body, "/v1/completions");
  const auto records = store_->records({}, 0, 10);
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].prompt_digest.empty(), records[0].completion_text.empty());
}

TEST_F(FeedbackApiTest, ManyAtOnce) {
  start();
  const std::string a = answer(), b = answer();
  json items = json::array({{{"record_id", a}, {"kind", "accept"}, {"key", "1"}},
                            {{"record_id", "rec_none"}, {"kind", "accept"}},
                            {{"record_id", b}, {"kind", "maybe"}},
                            5,
                            {{"record_id", b}, {"kind", "reject"}},
                            {{"record_id", a}, {"kind", "accept"}, {"key", "1"}}});
  const Got got = post("/sluice/v1/feedback/batch", {{"items", items}});
  ASSERT_EQ(got.status, 200) << got.body;
  const json& results = got.body["results"];
  ASSERT_EQ(results.size(), 6u);
  EXPECT_EQ(results[0]["state"], "waiting");
  EXPECT_EQ(results[1]["error"]["code"], "record_not_found");
  EXPECT_EQ(results[2]["error"]["param"], "kind");
  EXPECT_EQ(results[3]["error"]["code"], "invalid_value");
  EXPECT_EQ(results[4]["queue_position"], 2);
  EXPECT_EQ(results[5]["state"], "duplicate");
  EXPECT_EQ(results[5]["feedback_id"], results[0]["feedback_id"]);
  items = json::array();
  for (int i = 0; i < 1000; ++i) items.push_back({{"record_id", b}, {"kind", "score"}, {"score", i}});
  EXPECT_EQ(post("/sluice/v1/feedback/batch", {{"items", items}}).body["results"].size(), 1000u);
  items.push_back(items.back());
  EXPECT_EQ(post("/sluice/v1/feedback/batch", {{"items", items}}).param(), "items");
}

TEST_F(FeedbackApiTest, ANewerLabelOfTheSameSourceReplacesAWaitingOne) {
  start();
  const std::string id = answer();
  for (const char* kind : {"accept", "reject", "accept"}) {
    EXPECT_EQ(label({{"record_id", id}, {"kind", kind}}).body["state"], "waiting");
  }
  EXPECT_EQ(label({{"record_id", id}, {"kind", "reject"}, {"source", "judge"}}).body["state"], "waiting");
  const json rows = get("/sluice/v1/feedback?record_id=" + id).body["data"];
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0]["state"], "replaced");
  EXPECT_EQ(rows[1]["state"], "replaced");
  EXPECT_EQ(rows[2]["state"], "waiting");
  EXPECT_EQ(rows[3]["state"], "waiting");
}

TEST(LabelWriter, TokensBeforeCountsWhatBegins) {
  const auto tokenizer = testing::byte_tokenizer();
  const std::vector<TokenId> ids = {'a', 'b', testing::kFakeEos, 'c'};
  EXPECT_EQ(tokens_before(*tokenizer, ids, 0), 0);
  EXPECT_EQ(tokens_before(*tokenizer, ids, 1), 1);
  EXPECT_EQ(tokens_before(*tokenizer, ids, 2), 2);
  EXPECT_EQ(tokens_before(*tokenizer, ids, 3), 4);
  EXPECT_EQ(trim_space(" \t a b\n"), "a b");
  EXPECT_EQ(trim_space(" \n"), "");
}

}  // namespace
}  // namespace sluice
