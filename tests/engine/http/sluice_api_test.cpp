// SPDX-License-Identifier: GPL-3.0-or-later
// /sluice/v1: feedback states, records, gate, decisions, sessions (serving.md §1.2, §2.2).
#include <thread>

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class SluiceApiTest : public HttpTest {
 protected:
  std::string answer(const std::string& conversation = "") {
    HttpHeaders headers;
    if (!conversation.empty()) headers.emplace_back("X-Session-Id", conversation);
    return post("/v1/chat/completions", chat("x"), headers).body["sluice"]["record_id"];
  }
  Got label(json body, HttpHeaders headers = {}) { return post("/sluice/v1/feedback", body, std::move(headers)); }
};

TEST_F(SluiceApiTest, FeedbackSaysWhatWillHappen) {
  start();
  const std::string id = answer();
  const Got first = label({{"record_id", id}, {"kind", "accept"}, {"key", "k1"}});
  ASSERT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.body["state"], "waiting");
  EXPECT_EQ(first.body["queue_position"], 1);
  EXPECT_EQ(first.body["adapter"], "base");
  EXPECT_EQ(first.body["version"], 0);
  const Got again = label({{"record_id", id}, {"kind", "accept"}, {"key", "k1"}});
  EXPECT_EQ(again.body["state"], "duplicate");
  EXPECT_EQ(again.body["feedback_id"], first.body["feedback_id"]);
  const Got other = label({{"record_id", id}, {"kind", "reject"}, {"key", "k1"}});
  EXPECT_EQ(other.status, 409);
  EXPECT_EQ(other.code(), "idempotency_conflict");
  EXPECT_EQ(other.header("x-should-retry"), "false");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "reject"}}, {{"Idempotency-Key", "k2"}}).body["state"], "waiting");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "reject"}}, {{"Idempotency-Key", "k2"}}).body["state"], "duplicate");
  EXPECT_EQ(label({{"record_id", answer("held")}, {"kind", "accept"}}).body["state"], "held_out");

  ASSERT_TRUE(batch_of(id).valid());
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}}).body["state"], "consumed");
  const Got list = get("/sluice/v1/feedback?record_id=" + id);
  ASSERT_EQ(list.body["data"].size(), 3u);
  EXPECT_EQ(list.body["data"][0]["state"], "replaced");
  EXPECT_EQ(list.body["data"][1]["state"], "used");
  HttpCall call;
  EXPECT_THAT(get("/metrics").response.body, HasSubstr("sluice_feedback_total{source=\"client\",kind=\"accept\",state=\"waiting\"} 1"));
}

TEST_F(SluiceApiTest, BadFeedbackIsNamed) {
  start();
  const std::string id = answer();
  const Got unknown = label({{"record_id", "rec_none"}, {"kind", "accept"}});
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.code(), "record_not_found");
  EXPECT_EQ(label({{"kind", "accept"}}).param(), "record_id");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "like"}}).param(), "kind");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "score"}}).param(), "score");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "score"}, {"score", true}}).param(), "score");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"source", "me"}}).param(), "source");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"choice", 1}}).param(), "choice");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"labeller", std::string(129, 'x')}}).param(), "labeller");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "accept"}, {"metadata", {{"a", std::string(5000, 'x')}}}}).param(), "metadata");
  EXPECT_EQ(label({{"record_id", id}, {"kind", "score"}, {"score", 0.5}, {"metadata", {{"a", 1}}}}).status, 200);
  EXPECT_EQ(get("/sluice/v1/feedback").param(), "record_id");
  EXPECT_EQ(get("/sluice/v1/feedback?record_id=rec_x").status, 404);
}

TEST_F(SluiceApiTest, BatchAnswersEachItem) {
  start();
  const std::string id = answer();
  const Got g = post("/sluice/v1/feedback/batch",
                     {{"items", {{{"record_id", id}, {"kind", "accept"}}, {{"record_id", "rec_none"}, {"kind", "accept"}}, 5}}});
  ASSERT_EQ(g.status, 200) << g.body;
  ASSERT_EQ(g.body["results"].size(), 3u);
  EXPECT_EQ(g.body["results"][0]["state"], "waiting");
  EXPECT_EQ(g.body["results"][1]["error"]["code"], "record_not_found");
  EXPECT_EQ(g.body["results"][2]["error"]["param"], "items");
  EXPECT_EQ(post("/sluice/v1/feedback/batch", {{"items", 1}}).param(), "items");
}

TEST_F(SluiceApiTest, LabelsCanBeTakenBack) {
  start();
  const std::string id = answer();
  const auto feedback = label({{"record_id", id}, {"kind", "accept"}}).body["feedback_id"].get<std::int64_t>();
  const std::string path = "/sluice/v1/feedback/" + std::to_string(feedback);
  EXPECT_THAT(del(path), HasSubstr("\"retracted\":true"));
  EXPECT_THAT(del("/sluice/v1/feedback/999"), HasSubstr("404 Not Found"));
  EXPECT_THAT(del("/sluice/v1/feedback/abc"), HasSubstr("404 Not Found"));
  const auto second = label({{"record_id", id}, {"kind", "accept"}}).body["feedback_id"].get<std::int64_t>();
  ASSERT_TRUE(batch_of(id).valid());
  EXPECT_THAT(del("/sluice/v1/feedback/" + std::to_string(second)), HasSubstr("feedback_consumed"));
}

TEST_F(SluiceApiTest, FeedbackOnAnOpenAnswerMayBeSentAgain) {
  start(gated());
  const OpenAnswer begun = open_answer(2);
  const Got g = label({{"record_id", begun.record}, {"kind", "accept"}});
  EXPECT_EQ(g.status, 409);
  EXPECT_EQ(g.code(), "record_open");
  EXPECT_EQ(g.header("Retry-After"), "1");
  gate_.open();
  ::close(begun.fd);
}

TEST_F(SluiceApiTest, RecordsPageAndShow) {
  start();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(answer("conv" + std::to_string(i % 2)));
  Got page = get("/sluice/v1/records?limit=2");
  ASSERT_EQ(page.body["data"].size(), 2u);
  EXPECT_EQ(page.body["data"][0]["record_id"], ids[4]);
  page = get("/sluice/v1/records?limit=10&after=" + page.body["next"].dump());
  EXPECT_EQ(page.body["data"].size(), 3u);
  EXPECT_TRUE(page.body["next"].is_null());
  EXPECT_EQ(get("/sluice/v1/records?conversation=conv1").body["data"].size(), 2u);
  label({{"record_id", ids[0]}, {"kind", "reject"}, {"source", "human"}});
  EXPECT_EQ(get("/sluice/v1/records?label=reject").body["data"].size(), 1u);
  EXPECT_EQ(get("/sluice/v1/records?limit=0").param(), "limit");
  EXPECT_EQ(get("/sluice/v1/records?limit=1001").param(), "limit");
  EXPECT_EQ(get("/sluice/v1/records?version=x").param(), "version");
  EXPECT_EQ(get("/sluice/v1/records?label=maybe").param(), "label");
  EXPECT_EQ(get("/sluice/v1/records?version=0&session=1&state=waiting").body["data"].size(), 1u);
  EXPECT_EQ(get("/sluice/v1/records?session=99").body["data"].size(), 0u);
  const Got one = get("/sluice/v1/records/" + ids[0]);
  EXPECT_EQ(one.body["feedback"][0]["kind"], "reject");
  EXPECT_EQ(one.body["lp_full"].size(), one.body["token_ids"].size());
  EXPECT_EQ(one.body["messages"][0]["content"], "x");
  label({{"record_id", ids[1]}, {"kind", "score"}, {"score", 0.25}, {"labeller", "ann"}, {"metadata", {{"page", 3}}}});
  const json labels = get("/sluice/v1/records/" + ids[1]).body["feedback"];
  EXPECT_EQ(labels, get("/sluice/v1/feedback?record_id=" + ids[1]).body["data"]);
  EXPECT_EQ(labels[0]["score"], 0.25);
  EXPECT_EQ(labels[0]["labeller"], "ann");
  EXPECT_EQ(labels[0]["metadata"], json({{"page", 3}}));
  EXPECT_EQ(get("/sluice/v1/records/rec_none").code(), "record_not_found");
}

TEST_F(SluiceApiTest, GateSettingsWithRevision) {
  start();
  const Got g = get("/sluice/v1/gate");
  EXPECT_EQ(g.body["settings"]["alpha"], 0.2);
  EXPECT_EQ(g.header("ETag"), "\"1\"");
  const auto put = [&](const json& body, const std::string& match) {
    const std::string text = body.dump();
    return raw("PUT /sluice/v1/gate HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n" +
               (match.empty() ? "" : "If-Match: " + match + "\r\n") + "Content-Length: " + std::to_string(text.size()) +
               "\r\n\r\n" + text);
  };
  const json body = {{"settings", {{"alpha", 0.1}}}, {"who", "me"}, {"note", "stricter"}};
  EXPECT_THAT(put(body, "\"1\""), HasSubstr("\"revision\":2"));
  EXPECT_THAT(put(body, "\"1\""), HasSubstr("revision_mismatch"));
  EXPECT_THAT(put(body, "x"), HasSubstr("If-Match"));
  EXPECT_THAT(put({{"settings", {{"beta", 1}}}, {"who", "me"}}, ""), HasSubstr("alpha is missing"));
  EXPECT_THAT(put({{"settings", {{"beta", 1}}}, {"who", "me"}}, ""), HasSubstr("\"param\":\"settings\""));
  EXPECT_THAT(put({{"settings", {{"alpha", 1}}}}, ""), HasSubstr("\"param\":\"who\""));
}

TEST_F(SluiceApiTest, DecisionsNeedActorNoteAndALegalState) {
  start();
  const VersionId v = store_.new_version();
  json body = {{"action", "reject"}, {"version", v.value}, {"actor", "me"}, {"note", "bad"}};
  for (const char* field : {"action", "version", "actor", "note"}) {
    json without = body;
    without.erase(field);
    EXPECT_EQ(post("/sluice/v1/decisions", without).param(), field);
  }
  EXPECT_EQ(post("/sluice/v1/decisions", body, {{"If-Match", "\"99\""}}).code(), "revision_mismatch");
  const std::string tag = get("/sluice/v1/decisions").header("ETag");
  const Got g = post("/sluice/v1/decisions", body, {{"If-Match", tag}});
  ASSERT_EQ(g.status, 201) << g.body;
  EXPECT_EQ(g.body["verdict"], "reject");
  EXPECT_EQ(g.body["note"], "bad");
  const Got twice = post("/sluice/v1/decisions", body);
  EXPECT_EQ(twice.status, 409);
  EXPECT_EQ(twice.code(), "illegal_transition");
  body["version"] = 77;
  EXPECT_EQ(post("/sluice/v1/decisions", body).status, 404);
  EXPECT_EQ(get("/sluice/v1/decisions").body["data"].size(), 2u);
  const Got adapters = get("/sluice/v1/adapters");
  EXPECT_EQ(adapters.body["serving"], 0);
  EXPECT_EQ(adapters.body["data"][1]["state"], "rejected");
  EXPECT_EQ(adapters.body["data"][1]["decision"]["actor"], "me");
}

// Of two operators who saw the same state only the first may decide, whenever the other's decision comes.
TEST_F(SluiceApiTest, ADecisionOnWhatIsNoLongerTrueIs409) {
  start();
  const VersionId v = store_.new_version();
  const std::string tag = get("/sluice/v1/decisions").header("ETag");
  control_->before_decide_ = [this] { store_.promote(kBaseVersion); };  // another operator's
  const json body = {{"action", "reject"}, {"version", v.value}, {"actor", "me"}, {"note", "bad"}};
  const Got g = post("/sluice/v1/decisions", body, {{"If-Match", tag}});
  EXPECT_EQ(g.status, 409) << g.body;
  EXPECT_EQ(g.code(), "revision_mismatch");
  EXPECT_EQ(store_->version(v)->state, VersionState::kCandidate);
}

// A refusal says why it was one, whatever happened since: its decision was looked at in time, the state forbids it.
TEST_F(SluiceApiTest, ARefusalIsNotBlamedOnALaterDecision) {
  start();
  const VersionId v = store_.new_version();
  const json body = {{"action", "reject"}, {"version", v.value}, {"actor", "me"}, {"note", "bad"}};
  ASSERT_EQ(post("/sluice/v1/decisions", body).status, 201);
  const std::string tag = get("/sluice/v1/decisions").header("ETag");
  control_->after_decide_ = [this] { store_.promote(kBaseVersion); };  // another operator's
  const Got g = post("/sluice/v1/decisions", body, {{"If-Match", tag}});
  EXPECT_EQ(g.status, 409) << g.body;
  EXPECT_EQ(g.code(), "illegal_transition");
}

TEST_F(SluiceApiTest, SessionsStartAndChange) {
  start();
  EXPECT_EQ(post("/sluice/v1/sessions", {{"recipe", "be-brief"}}).code(), "session_running");
  control_->session_.set(SessionId());
  EXPECT_EQ(post("/sluice/v1/sessions", json::object()).param(), "recipe");
  const Got unknown = post("/sluice/v1/sessions", {{"recipe", "none"}});
  EXPECT_EQ(unknown.status, 400);
  EXPECT_EQ(unknown.code(), "invalid_value");
  EXPECT_EQ(unknown.param(), "recipe");
  const Got g = post("/sluice/v1/sessions", {{"recipe", "be-brief"}, {"seed", 3}});
  ASSERT_EQ(g.status, 201) << g.body;
  EXPECT_EQ(g.body["recipe"], "be-brief");
  const std::string base = "/sluice/v1/sessions/" + g.body["id"].dump();
  EXPECT_EQ(post(base + "/pause", json::object()).body["state"], "paused");
  EXPECT_EQ(post(base + "/resume", json::object()).body["state"], "running");
  EXPECT_EQ(post(base + "/end", json::object()).body["state"], "ended");
  const Got ended = post(base + "/resume", json::object());
  EXPECT_EQ(ended.status, 409);
  EXPECT_EQ(ended.code(), "illegal_transition");
  EXPECT_EQ(post("/sluice/v1/sessions/99/pause", json::object()).status, 404);
  EXPECT_EQ(get("/sluice/v1/sessions").body["data"].size(), 2u);
  EXPECT_EQ(get("/sluice/v1/status").body["phase"], "ready");
}

}  // namespace
}  // namespace sluice
