// SPDX-License-Identifier: GPL-3.0-or-later
// Clients of other programs, each in the form it really sends (serving.md §2.3).
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class CompatTest : public HttpTest {
 protected:
  // As an editor asks: streamed, Bearer and api-key, no id of its own.
  std::string autocomplete(const std::string& prompt) {
    const Streamed got = stream("/v1/completions",
                                {{"model", "brief"}, {"prompt", prompt}, {"max_tokens", 64}, {"temperature", 0.01},
                                 {"top_p", 1}, {"frequency_penalty", 0}, {"presence_penalty", 0}, {"stop", json::array({"\n\n"})}},
                                {{"Authorization", "Bearer local"}, {"api-key", "local"}});
    EXPECT_TRUE(got.done());
    return got.got.header("X-Sluice-Record-Id");
  }
  static json event(const std::string& id, const std::string& prompt, const std::string& completion, json accepted) {
    return {{"completionId", id},     {"filepath", "file:///src/a.cpp"},
            {"prefix", "int a"},      {"suffix", "}"},
            {"prompt", prompt},       {"completion", completion},
            {"accepted", accepted},   {"modelProvider", "openai"},
            {"modelName", "brief"},   {"timestamp", 1'764'000'000'000},
            {"time", 412},            {"uniqueId", "machine-1"},
            {"numLines", 1},          {"cacheHit", false}};
  }
  static json hook(const std::string& name, json data, const std::string& level = "all") {
    return {{"name", name}, {"data", std::move(data)}, {"schema", "0.2.0"}, {"level", level}, {"profileId", "local"}};
  }
  static json chat_turn(const std::string& text) {
    json body = chat("first");
    body["messages"].push_back({{"role", "assistant"}, {"content", "answer"}});
    body["messages"].push_back({{"role", "user"}, {"content", text}});
    return body;
  }
};

TEST_F(CompatTest, AnEditorsSubmitFindsItsRecord) {
  start(says("  return a;\n}"));
  const std::string id = autocomplete("<fim>int a");
  const Got got = post("/api/training/submit", event("c-1", "<fim>int a", "return a;", true));
  ASSERT_EQ(got.status, 200) << got.body;
  EXPECT_EQ(got.body, (json{{"status", "submitted"},
                            {"message", "Training data submitted successfully"},
                            {"queue_position", 1},
                            {"sluice", {{"state", "waiting"}, {"record_id", id}}}}));
  const auto rows = store_->feedback_of({id});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].kind, FeedbackKind::kAccept);
  EXPECT_EQ(rows[0].shown, "return a;");
  EXPECT_THAT(rows[0].metadata_json, HasSubstr("a.cpp"));
  // The same event by the other way; then with another verdict.
  EXPECT_EQ(post("/sluice/v1/hooks/continue", hook("autocomplete", event("c-1", "<fim>int a", "return a;", true)))
                .body["sluice"]["state"], "duplicate");
  EXPECT_EQ(post("/api/training/submit", event("c-1", "<fim>int a", "return a;", false)).code(), "idempotency_conflict");
  EXPECT_EQ(post("/api/training/submit", event("c-2", "<fim>int b", "return a;", true)).body["sluice"]["state"], "unmatched");
  EXPECT_EQ(post("/api/training/submit", event("c-3", "<fim>int a", " \n", true)).body["sluice"]["state"], "ignored");
}

TEST_F(CompatTest, AcceptedMayBeANumberAndItsLackIsNamed) {
  start(says("x = 1"));
  const std::string id = autocomplete("p");
  for (const json& accepted : {json(0), json(0.5), json(1.0)}) {
    EXPECT_EQ(post("/api/training/submit", event("n" + accepted.dump(), "p", "x = 1", accepted)).status, 200);
  }
  const auto rows = store_->feedback_of({id});
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].kind, FeedbackKind::kReject);
  EXPECT_EQ(rows[1].kind, FeedbackKind::kScore);
  EXPECT_EQ(rows[1].score, 0.5);
  EXPECT_EQ(rows[2].kind, FeedbackKind::kAccept);
  for (const char* field : {"accepted", "prompt", "completion"}) {
    json without = event("m", "p", "x = 1", true);
    without[field] = nullptr;
    EXPECT_EQ(post("/api/training/submit", without).param(), field);
    without.erase(field);
    const Got got = post("/sluice/v1/hooks/continue", hook("autocomplete", without));
    EXPECT_EQ(got.status, 400);
    EXPECT_EQ(got.param(), std::string("data.") + field);
  }
  for (const json& accepted : {json("yes"), json(2), json(-0.1)}) {
    EXPECT_EQ(post("/api/training/submit", event("m", "p", "x = 1", accepted)).param(), "accepted");
  }
}

TEST_F(CompatTest, TheContinueHookTakesCompletionsOnly) {
  start(says("x = 1"));
  const std::string id = autocomplete("p");
  json data = event("h-1", "p", "x = 1", false);
  data["completionOptions"] = {{"temperature", 0.01}};
  data["gitRepo"] = "r";
  data["eventName"] = "autocomplete";
  data["userAgent"] = "continue";
  data["createdAt"] = "2026-01-01T00:00:00Z";
  const Got got = post("/sluice/v1/hooks/continue", hook("autocomplete", data), {{"Authorization", "Bearer k"}});
  EXPECT_EQ(got.body["sluice"], (json{{"state", "waiting"}, {"record_id", id}}));
  EXPECT_EQ(post("/sluice/v1/hooks/continue", hook("chatInteraction", {{"prompt", "x"}})).body["sluice"]["state"], "ignored");
  const json no_code = {{"completionId", "h-2"}, {"accepted", true}, {"modelName", "brief"}, {"numLines", 2}};
  EXPECT_EQ(post("/sluice/v1/hooks/continue", hook("autocomplete", no_code, "noCode")).body["sluice"]["state"], "unmatched");
  EXPECT_EQ(post("/sluice/v1/hooks/continue", {{"data", data}}).param(), "name");
  EXPECT_EQ(post("/sluice/v1/hooks/continue", hook("autocomplete", 5)).param(), "data");
  EXPECT_EQ(store_->counts(SessionId()).accepted, 1);  // the one without text counts for the rate
}

// The user types on: the editor drops the connection, and shows what it had.
TEST_F(CompatTest, ADroppedCompletionIsMatchedByItsText) {
  FakeModelOptions model = says("abcdefghijklmnopqrstuvwxyz");
  model.on_step = [this](const testing::FakeStep&) { return gate_.pass(); };
  start(std::move(model));
  const int fd = open_post("/v1/completions", {{"prompt", "p"}, {"max_tokens", 26}, {"stream", true}});
  gate_.allow(4);
  read_until(fd, "\"b\"");
  ::close(fd);
  gate_.open();
  wait_running(0);
  while (store_->records({}, 0, 1).empty()) std::this_thread::yield();
  const RecordRow record = store_->records({}, 0, 1).front();
  ASSERT_FALSE(record.complete);
  EXPECT_EQ(post("/sluice/v1/feedback", {{"record_id", record.id.text}, {"kind", "accept"}}).body["state"], "ignored");
  EXPECT_EQ(post("/api/training/submit", event("d", "p", "ab", true)).body["sluice"],
            (json{{"state", "waiting"}, {"record_id", record.id.text}}));
}

TEST_F(CompatTest, ReefReceiptAndReport) {
  start();
  const Streamed got = stream("/v1/chat/completions", chat("x"), {{"x-reef-scenario", "math"}, {"x-reef-tag-Split", "train"}});
  ASSERT_GE(got.data.size(), 2u);
  EXPECT_EQ(got.data.back(), "[DONE]");
  const std::string id = got.got.header("x-reef-agent-record-id");
  const json receipt = json::parse(got.data[got.data.size() - 2]);
  EXPECT_EQ(receipt["choices"], json::array());
  EXPECT_EQ(receipt["reef"], (json{{"agent_record_id", id}}));
  EXPECT_EQ(store_->record({id})->stream, "math");
  EXPECT_EQ(store_->record({id})->tags_json, R"({"split":"train"})");
  EXPECT_FALSE(store_->record({id})->holds);
  EXPECT_EQ(store_->record({id})->closes_us - store_->record({id})->served_us, LabelWindows().chat_us);
  const std::string second = post("/v1/chat/completions", chat("y"), {{"x-reef-scenario", "math"}}).header("x-reef-agent-record-id");

  json report = {{"score", 0.75}, {"feedback", "good"}, {"references", {id, second}}, {"metadata", {{"k", 1}}}, {"agent_record_id", "rep-1"}};
  const Got stored = post("/reef/report", report, {{"x-reef-scenario", "math"}});
  ASSERT_EQ(stored.status, 200) << stored.body;
  EXPECT_EQ(stored.body["agent_record_id"], "rep-1");
  EXPECT_EQ(stored.body["scenario"], "math");
  EXPECT_EQ(stored.body["request_type"], "report");
  EXPECT_EQ(stored.body["sluice"]["states"], json::array({"waiting", "waiting"}));
  EXPECT_EQ(store_->feedback_of({second}).front().score, 0.75);
  EXPECT_EQ(post("/reef/report", report, {{"x-reef-scenario", "math"}}).body["sluice"]["states"], json::array({"duplicate", "duplicate"}));
  json changed = report;
  changed["score"] = 0.5;
  EXPECT_EQ(post("/reef/report", changed, {{"x-reef-scenario", "math"}}).code(), "idempotency_conflict");
  changed = report;
  changed["references"].push_back(id);
  EXPECT_EQ(post("/reef/report", changed, {{"x-reef-scenario", "math"}}).code(), "idempotency_conflict");
}

TEST_F(CompatTest, ReefReportsThatNameNothingOrTooMuch) {
  start();
  const std::string id = post("/v1/chat/completions", chat("x")).header("x-reef-agent-record-id");
  const Got none = post("/reef/report", {{"score", 1}});
  EXPECT_EQ(none.status, 200);
  EXPECT_THAT(none.body["agent_record_id"].get<std::string>(), HasSubstr("rec_"));
  EXPECT_EQ(none.body["sluice"]["states"], json::array({"ignored"}));
  const Got unknown = post("/reef/report", {{"score", 1}, {"references", {id, "rec_none"}}});
  EXPECT_EQ(unknown.status, 404);
  EXPECT_EQ(unknown.code(), "record_not_found");
  EXPECT_TRUE(store_->feedback_of({id}).empty());  // all or none
  EXPECT_EQ(post("/reef/report", {{"score", true}, {"references", {id}}}).param(), "score");
  EXPECT_EQ(post("/reef/report", {{"references", {id}}}).param(), "score");
  EXPECT_EQ(post("/reef/report", {{"score", 1}, {"references", {5}}}).param(), "references");
  EXPECT_EQ(post("/reef/report", {{"score", 1}, {"references", "x"}}).param(), "references");
}

TEST_F(CompatTest, ConversationTurns) {
  start();
  const auto turn = [&](const json& body, HttpHeaders headers) {
    return post("/v1/chat/completions", body, std::move(headers));
  };
  const Got first = turn(chat("first"), {{"X-Session-Id", "c1"}});
  EXPECT_EQ(first.body["session_id"], "c1");
  const RecordId one{first.body["sluice"]["record_id"]};
  EXPECT_EQ(store_->record(one)->turn, "main");
  const RecordId side{turn(chat("heartbeat"), {{"X-Session-Id", "c1"}, {"X-Turn-Type", "side"}}).body["sluice"]["record_id"]};
  EXPECT_EQ(store_->record(side)->fate, "side");
  EXPECT_EQ(store_->record(one)->next_state, "");
  const RecordId two{turn(chat_turn("No tables, please."), {{"X-Session-Id", "c1"}, {"X-Turn-Type", "MAIN"}, {"X-Session-Done", "Yes"}})
                         .body["sluice"]["record_id"]};
  EXPECT_EQ(json::parse(store_->record(one)->next_state), (json{{"role", "user"}, {"content", "No tables, please."}}));
  EXPECT_TRUE(store_->record(two)->conversation_done);
  turn(chat_turn("again"), {{"X-Session-Id", "c1"}});
  EXPECT_EQ(store_->record(two)->next_state, "");
  EXPECT_EQ(post("/sluice/v1/feedback", {{"record_id", side.text}, {"kind", "accept"}}).body["state"], "ignored");
}

TEST_F(CompatTest, ConversationInTheBody) {
  start();
  json body = chat("x");
  body["session_id"] = "b1";
  body["turn_type"] = "side";
  body["session_done"] = "on";
  const RecordRow row = *store_->record({post("/v1/chat/completions", body).body["sluice"]["record_id"]});
  EXPECT_EQ(row.conversation, "b1");
  EXPECT_EQ(row.turn, "side");
  EXPECT_TRUE(row.conversation_done);
  const RecordRow wins = *store_->record({post("/v1/chat/completions", body, {{"X-Session-Id", "b2"}, {"X-Turn-Type", "main"},
                                                                             {"X-Session-Done", "0"}}).body["sluice"]["record_id"]});
  EXPECT_EQ(wins.conversation, "b2");
  EXPECT_EQ(wins.turn, "main");
  EXPECT_FALSE(wins.conversation_done);
  const RecordRow plain = *store_->record({post("/v1/chat/completions", chat("x")).body["sluice"]["record_id"]});
  EXPECT_EQ(plain.turn, "");
  EXPECT_EQ(post("/v1/chat/completions", chat("x"), {{"X-Turn-Type", "middle"}}).param(), "X-Turn-Type");
  body["turn_type"] = "middle";
  EXPECT_EQ(post("/v1/chat/completions", body).status, 400);
  EXPECT_EQ(post("/v1/chat/completions", chat("x"), {{"X-Session-Id", std::string(257, 'c')}}).param(), "X-Session-Id");
}

// Sampling fields that an editor of RLinf leaves out are the recipe's to say, so that what it shows is what the gate measures.
TEST_F(CompatTest, AbsentFieldsOfEditorsAreTheRecipes) {
  HttpServerOptions options;
  options.editor_ports = {0};
  start({}, options);
  const auto editor = HttpClient::create("http://127.0.0.1:" + std::to_string(server_->editor_ports().at(0))).value();
  const auto sampled = [&](const std::string& path, const json& body, bool by_editor) {
    const Got g = by_editor ? got(editor->post(path, body.dump(), "application/json")) : post(path, body);
    EXPECT_EQ(g.status, 200) << g.body;
    return record_of(g.body);
  };
  const auto expect_sampling = [](const RecordRow& row, double temperature, double top_p, int max_tokens) {
    EXPECT_FLOAT_EQ(static_cast<float>(row.temperature), static_cast<float>(temperature));
    EXPECT_FLOAT_EQ(static_cast<float>(row.top_p), static_cast<float>(top_p));
    EXPECT_EQ(row.max_tokens, max_tokens);
  };
  const json bare = {{"prompt", "int a"}, {"stop", {"\n\n"}}};
  expect_sampling(sampled("/v1/completions", bare, true), 1, 1, 16);  // no session: no recipe
  control_->sampling_defaults_.set(SamplingDefaults{0.4, 0.9, 48});
  expect_sampling(sampled("/v1/completions", bare, true), 0.4, 0.9, 48);
  expect_sampling(sampled("/v1/completions", bare, false), 1, 1, 16);  // others have the defaults of the API
  json said = bare;
  said["temperature"] = 0.01;
  said["top_p"] = 0.5;
  said["max_tokens"] = 5;
  expect_sampling(sampled("/v1/completions", said, true), 0.01, 0.5, 5);
  json some = bare;
  some["temperature"] = nullptr;
  some["max_completion_tokens"] = 7;
  expect_sampling(sampled("/v1/completions", some, true), 0.4, 0.9, 7);
  json chatting = chat("x");
  chatting.erase("temperature");
  expect_sampling(sampled("/v1/chat/completions", chatting, true), 1, 1, 12);
}

// The first defect of this kind: an editor that never reports anything stalled training.
TEST_F(CompatTest, AnUnlabelledRequestOfAnotherClientHoldsNobodyUp) {
  start();
  post("/v1/chat/completions", chat("an outside client asks and says no word"));
  const std::string id = post("/v1/chat/completions", chat("x"), {{"X-Sluice-Stream", "persona"}}).body["sluice"]["record_id"];
  post("/sluice/v1/feedback", {{"record_id", id}, {"kind", "accept"}, {"source", "persona"}});
  const auto rows = store_->trainable(control_->session_.get(), 10);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].record.id.text, id);
}

TEST_F(CompatTest, OnlyAStreamThatAnswersItselfHoldsItsRecords) {
  start();
  const RecordRow named = record_of(post("/v1/chat/completions", chat("x"), {{"X-Sluice-Stream", "user"}}).body);
  EXPECT_EQ(named.stream, "user");
  EXPECT_TRUE(named.holds);
  EXPECT_EQ(named.closes_us - named.served_us, LabelWindows().stream_us);
  const RecordRow both =
      record_of(post("/v1/chat/completions", chat("x"), {{"x-reef-scenario", "math"}, {"X-Sluice-Stream", "user"}}).body);
  EXPECT_EQ(both.stream, "user");
  EXPECT_TRUE(both.holds);
  EXPECT_FALSE(record_of(post("/v1/chat/completions", chat("x")).body).holds);
}

}  // namespace
}  // namespace sluice
