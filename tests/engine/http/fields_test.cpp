// SPDX-License-Identifier: GPL-3.0-or-later
// Sampling fields, log-probs and what is kept of them, over a real socket (serving.md §1.3, §1.6, §4.5).
#include <thread>

#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class FieldsTest : public HttpTest {
 protected:
  // The field that a change to a good request makes the server refuse; "" when it is accepted.
  std::string refused(const json& change, const std::string& path = "/v1/completions") {
    json body = path == "/v1/chat/completions" ? chat("p") : prompt("p");
    body.update(change);
    const Got g = post(path, body);
    if (g.status == 200) return "";
    EXPECT_EQ(g.status, 400) << change << g.body;
    EXPECT_EQ(g.body["error"]["type"], "invalid_request_error");
    EXPECT_FALSE(g.code().empty());
    return g.param();
  }
  // The request with this JSON text for a field; the status and code.
  Got with_text(const std::string& field, const std::string& text) {
    return got(client_->post("/v1/completions", R"({"prompt":"p","max_tokens":1,")" + field + "\":" + text + "}",
                             "application/json"));
  }
};

// The metadata of OpenAI's own bounds: 16 keys of 64 characters, with 512 each; of characters that take most room.
json openai_most() {
  std::string value;
  for (int i = 0; i < 512; ++i) value += "\x01";
  json out;
  for (char key = 'a'; key < 'a' + 16; ++key) out[std::string(63, '\x01') + key] = value;
  return out;
}

TEST_F(FieldsTest, EveryBoundOfTheSheet) {
  start();
  const std::vector<std::tuple<const char*, std::vector<json>, std::vector<json>>> rows = {
      {"temperature", {0, 2, 0.5, nullptr}, {-0.1, 2.1, "1", true, json::array()}},
      {"top_p", {0, 1}, {-0.1, 1.1, "1"}},
      {"min_p", {0, 1}, {-0.1, 1.1}},
      {"top_k", {-1, 0, 1.0, 1000000, 1e15}, {-2, 1.5, "3"}},
      {"presence_penalty", {-2, 2}, {-2.1, 2.1}},
      {"frequency_penalty", {-2, 2}, {-2.1, 2.1}},
      {"repetition_penalty", {0.01, 10}, {0, -1, 10.5}},
      {"n", {1, 2, 16}, {0, 17, 1.5}},
      {"seed", {0, -1, INT64_MAX, INT64_MIN, 7.0}, {1.5, "7", 1e300}},
      {"max_tokens", {0, 1, 3.0, INT64_MAX}, {-1, 0.5, "4"}},
      {"min_tokens", {0, 5}, {-1}},
      {"stop", {"x", json::array(), json(std::vector<std::string>(16, "x")), std::string(256, 'x')},
       {"", json::array({""}), json::array({1}), json(std::vector<std::string>(17, "x")), std::string(257, 'x'), 5}},
      {"stop_token_ids", {json::array(), json(std::vector<int>(64, 65))}, {json(std::vector<int>(65, 65)), {259}, {-1}, 65}},
      {"ignore_eos", {true, false}, {1, "true"}},
      {"skip_special_tokens", {true, false}, {0}},
      {"logprobs", {0, 20}, {-1, 21, true}},
      {"prompt_logprobs", {0, 20}, {-1, 21}},
      {"echo", {true, false}, {1}},
      {"return_token_ids", {true}, {"yes"}},
      {"logit_bias", {json::object(), {{"65", -100}}, {{"65", 100.0}}}, {{{"65", 100.5}}, {{"65", "1"}}, {{"x", 1}}, json::array()}},
      {"metadata", {json::object(), {{"a", "b"}}, openai_most()}, {"text", {{"a", std::string(65536, 'x')}}}},
      {"user", {"someone", std::string(4096, 'x')}, {5, std::string(4097, 'x')}},
      {"store", {true, false}, {"no"}},
      {"stream", {false}, {"yes", 1}},
      {"response_format", {{{"type", "text"}}}, {{{"type", "json_object"}}, "text"}},
      {"sluice", {json::object(), {{"conversation", "c"}, {"turn", "side"}}}, {"x"}},
  };
  for (const auto& [field, good, bad] : rows) {
    for (const json& value : good) EXPECT_EQ(refused({{field, value}}), "") << field << " " << value;
    for (const json& value : bad) EXPECT_EQ(refused({{field, value}}), field) << field << " " << value;
  }
  EXPECT_EQ(refused({{"sluice", {{"turn", "maybe"}}}}), "sluice.turn");
  EXPECT_EQ(refused({{"best_of", 1}}), "");
  EXPECT_EQ(refused({{"best_of", 2}}), "best_of");
  EXPECT_EQ(refused({{"n", 2}, {"best_of", 2}}), "");
  EXPECT_EQ(refused({{"unknown_field", {{"deep", json::array()}}}}), "");
  std::map<std::string, int> many;
  for (int i = 0; i < 1025; ++i) many[std::to_string(i)] = 1;
  EXPECT_EQ(refused({{"logit_bias", many}}), "logit_bias");
  const std::string chat_path = "/v1/chat/completions";
  EXPECT_EQ(refused({{"logprobs", 2}}, chat_path), "logprobs");
  EXPECT_EQ(refused({{"top_logprobs", 2}}, chat_path), "top_logprobs");
  EXPECT_EQ(refused({{"logprobs", true}, {"top_logprobs", 21}}, chat_path), "top_logprobs");
  EXPECT_EQ(refused({{"logprobs", true}, {"top_logprobs", 20}}, chat_path), "");
  EXPECT_EQ(refused({{"suffix", "x"}}, chat_path), "suffix");
}

TEST_F(FieldsTest, SMP1_SMP4_TemperatureZeroIsArgmaxWithRealLogprobs) {
  start();
  json body = prompt("greedy");
  body["logprobs"] = 1;
  const Got g = post("/v1/completions", body);
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["choices"][0]["text"],
            testing::fake_text(testing::fake_answer(kBaseVersion, testing::fake_tokens("greedy"), 12)));
  for (const json& value : g.body["choices"][0]["logprobs"]["token_logprobs"]) {
    EXPECT_LT(value.get<double>(), 0);
    EXPECT_GT(value.get<double>(), -10);
  }
  json chat_body = chat("greedy");
  chat_body["logprobs"] = true;
  const Got answer = post("/v1/chat/completions", chat_body);
  ASSERT_EQ(answer.status, 200) << answer.body;
  for (const json& token : answer.body["choices"][0]["logprobs"]["content"]) {
    EXPECT_LT(token["logprob"].get<double>(), 0);
    EXPECT_TRUE(token["top_logprobs"].empty());
  }
}

TEST_F(FieldsTest, SMP2_TopPOutsideItsBounds) {
  start();
  for (const char* text : {"-0.1", "2", "1e400", "-1e400", "\"0.5\"", "NaN", "true"}) {
    const Got g = with_text("top_p", text);
    EXPECT_EQ(g.status, 400) << text;
    EXPECT_EQ(g.body["error"]["type"], "invalid_request_error");
  }
  EXPECT_EQ(with_text("top_p", "0.5").status, 200);
}

TEST_F(FieldsTest, SMP3_TopKZeroAndAboveTheVocabularyAreOff) {
  start();
  json body = prompt("k");
  body["temperature"] = 1;
  body["seed"] = 3;
  const std::string plain = post("/v1/completions", body).body["choices"][0]["text"];
  for (const std::int64_t k : {0ll, -1ll, 1000000ll, 1ll << 40}) {
    body["top_k"] = k;
    EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], plain) << k;
  }
}

TEST_F(FieldsTest, SMP5_LogitBiasOutsideTheVocabulary) {
  start();
  EXPECT_EQ(refused({{"logit_bias", {{"-1", 1}}}}), "logit_bias");
  EXPECT_EQ(refused({{"logit_bias", {{"259", 1}}}}), "logit_bias");
  EXPECT_EQ(refused({{"logit_bias", {{"258", 1}}}}), "");
  EXPECT_EQ(post("/v1/completions", prompt("p")).status, 200);
}

TEST_F(FieldsTest, SMP6_SameSeedSameTextOnEverySlot) {
  start();
  json body = prompt("seeded");
  body["temperature"] = 1;
  body["seed"] = 99;
  body["max_tokens"] = 40;
  const std::string alone = post("/v1/completions", body).body["choices"][0]["text"];
  std::vector<std::string> texts(16);
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    clients.emplace_back([&, i] {
      auto client = HttpClient::create(server_->url()).value();
      texts[i] = got(client->post("/v1/completions", body.dump(), "application/json")).body["choices"][0]["text"];
    });
  }
  for (auto& t : clients) t.join();
  for (const std::string& text : texts) EXPECT_EQ(text, alone);
  body["seed"] = 100;
  EXPECT_NE(post("/v1/completions", body).body["choices"][0]["text"], alone);
}

TEST_F(FieldsTest, SeedsComeBackAndDiffer) {
  start();
  json body = prompt("p");
  for (const std::int64_t seed : {std::int64_t{-5}, std::int64_t{0}, INT64_MAX, INT64_MIN}) {
    body["seed"] = seed;
    const json answer = post("/v1/completions", body).body["sluice"];
    EXPECT_EQ(answer["seed"], seed);
    const json record = get("/sluice/v1/records/" + answer["record_id"].get<std::string>()).body;
    EXPECT_EQ(record["seed"].dump(), std::to_string(seed));  // as text: to the JSON library -5 equals 2^64 - 5
  }
  body.erase("seed");
  const std::int64_t a = post("/v1/completions", body).body["sluice"]["seed"];
  const std::int64_t b = post("/v1/completions", body).body["sluice"]["seed"];
  EXPECT_NE(a, b);
  body["temperature"] = 1;
  body["n"] = 2;
  body["seed"] = 40;
  const json two = post("/v1/completions", body).body["choices"];
  body["n"] = 1;
  body["seed"] = 41;  // choice i uses seed + i
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], two[1]["text"]);
}

TEST_F(FieldsTest, SMP7_MaskedLogprobsAreWrittenAsMinus9999) {
  FakeModelOptions options = says("ab");
  options.score = [](VersionId, const std::vector<TokenId>&, TokenId) { return -std::numeric_limits<float>::infinity(); };
  start(options);
  json body = prompt("xyz");
  body["echo"] = true;
  body["logprobs"] = 0;
  body["prompt_logprobs"] = 0;
  const Got g = post("/v1/completions", body);
  ASSERT_EQ(g.status, 200) << g.body;
  const json& choice = g.body["choices"][0];
  EXPECT_EQ(choice["logprobs"]["token_logprobs"][1], -9999.0);
  EXPECT_EQ(choice["prompt_logprobs"][2]["z"], -9999.0);
  EXPECT_THAT(g.response.body, HasSubstr("-9999.0"));
}

TEST_F(FieldsTest, SMP9_RepetitionPenaltyOnOneTokenPromptsInAFullBatch) {
  start();
  std::vector<std::thread> clients;
  std::atomic<int> good{0};
  for (int i = 0; i < 20; ++i) {
    clients.emplace_back([&, i] {
      auto client = HttpClient::create(server_->url()).value();
      json body = {{"prompt", std::string(1, static_cast<char>('a' + i))}, {"repetition_penalty", 1.3}, {"temperature", i % 2}};
      good += got(client->post("/v1/completions", body.dump(), "application/json")).status == 200;
    });
  }
  for (auto& t : clients) t.join();
  EXPECT_EQ(good, 20);
}

TEST_F(FieldsTest, SMP10_HugeCountsAreRefusedOrClamped) {
  start();
  EXPECT_EQ(refused({{"n", 1000000000}}), "n");
  json body = prompt(std::string(500, 'a'));
  body["max_tokens"] = INT64_MAX;
  const Got g = post("/v1/completions", body);
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["usage"]["completion_tokens"], 12);
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "length");
  body["min_tokens"] = INT64_MAX;
  EXPECT_EQ(post("/v1/completions", body).status, 200);
}

TEST_F(FieldsTest, SMP11_PromptLogprobsAboveTheirCap) {
  start();
  for (const int value : {-1, 21}) {
    EXPECT_EQ(refused({{"prompt_logprobs", value}}), "prompt_logprobs");
    EXPECT_EQ(refused({{"prompt_logprobs", value}}, "/v1/chat/completions"), "prompt_logprobs");
  }
}

TEST_F(FieldsTest, SMP12_GreedyIsTheSameAloneAndAmongSeven) {
  start();
  json body = prompt("alone");
  body["max_tokens"] = 40;
  const std::string alone = post("/v1/completions", body).body["choices"][0]["text"];
  std::vector<std::thread> others;
  for (int i = 0; i < 7; ++i) {
    others.emplace_back([this, i] {
      auto client = HttpClient::create(server_->url()).value();
      json other = prompt("other" + std::to_string(i));
      other["max_tokens"] = 60;
      EXPECT_EQ(got(client->post("/v1/completions", other.dump(), "application/json")).status, 200);
    });
  }
  for (int i = 0; i < 4; ++i) EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], alone);
  for (auto& t : others) t.join();
}

TEST_F(FieldsTest, PromptLogprobsOfBothRoutes) {
  start();
  json body = prompt("abc");
  body["prompt_logprobs"] = 2;
  body["echo"] = true;
  body["logprobs"] = 1;
  const json choice = post("/v1/completions", body).body["choices"][0];
  ASSERT_EQ(choice["prompt_logprobs"].size(), 3u);
  EXPECT_TRUE(choice["prompt_logprobs"][0].is_null());
  EXPECT_TRUE(choice["prompt_logprobs"][1].contains("b"));
  EXPECT_GE(choice["prompt_logprobs"][1].size(), 2u);
  EXPECT_LE(choice["prompt_logprobs"][1].size(), 3u);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_LE(choice["logprobs"]["top_logprobs"][i].size(), 2u) << "as many as asked for";
  const Streamed s = stream("/v1/completions", body);
  EXPECT_EQ(s.chunks[0]["choices"][0]["prompt_logprobs"], choice["prompt_logprobs"]);
  json chat_body = chat("abc");
  chat_body["prompt_logprobs"] = 0;
  const json chat_choice = post("/v1/chat/completions", chat_body).body["choices"][0];
  EXPECT_GT(chat_choice["prompt_logprobs"].size(), 10u);
  EXPECT_EQ(chat_choice["prompt_logprobs"][3].size(), 1u);
}

TEST_F(FieldsTest, OffsetsCountCharactersOfTheText) {
  start(says("h\xC3\xA9llo, no"));
  json body = prompt("<|im_start|>ab");
  body["echo"] = true;
  body["logprobs"] = 0;
  body["stop"] = "lo, ";
  const json whole = post("/v1/completions", body).body["choices"][0];
  EXPECT_EQ(whole["text"], "<|im_start|>abh\xC3\xA9l");
  // <|im_start|> a b, then h, two bytes, l, and what of the stop was drawn: past the text's end nothing counts on.
  EXPECT_EQ(whole["logprobs"]["text_offset"].back(), 17);
  json joined = json::array();
  for (const json& chunk : stream("/v1/completions", body).chunks) {
    const json& part = chunk["choices"][0]["logprobs"];
    if (part.is_object()) joined.insert(joined.end(), part["text_offset"].begin(), part["text_offset"].end());
  }
  EXPECT_EQ(joined, whole["logprobs"]["text_offset"]);
}

TEST_F(FieldsTest, BytesThatAreNoTextAreShownAsBytes) {
  start(says("\xF0\x9F\x98\x80"));
  json body = prompt("p");
  body["logprobs"] = 0;
  const json l = post("/v1/completions", body).body["choices"][0]["logprobs"];
  EXPECT_EQ(l["tokens"], json({"bytes:\\xf0", "bytes:\\x9f", "bytes:\\x98", "bytes:\\x80", "<|im_end|>"}));
  EXPECT_TRUE(l["top_logprobs"][0].contains("bytes:\\xf0"));
}

TEST_F(FieldsTest, PenaltiesBiasAndLimitsReachTheModel) {
  start(says("abcdef"));
  json body = prompt("p");
  body["min_tokens"] = 9;  // the end is held back: the fake model draws dots instead
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], "abcdef...");
  body["stop"] = "cd";  // held back as well
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], "abcdef...");
  body = prompt("p");
  body["stop_token_ids"] = {100};
  Got g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["text"], "abc");
  EXPECT_EQ(g.body["choices"][0]["stop_reason"], 100);
  body["stop_token_ids"] = {257};
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["stop_reason"], 257);
  body["stop"] = "100";  // a text that looks like an id
  body["stop_token_ids"] = {100};
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["stop_reason"], 100);
}

TEST_F(FieldsTest, AStopThatIsOneSpecialTokenStopsAtItsId) {
  start(says("abc"));
  json body = prompt("p");
  body["stop"] = {"<|im_end|>"};
  body["ignore_eos"] = true;
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(g.body["choices"][0]["text"], "abc");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(g.body["choices"][0]["stop_reason"], "<|im_end|>");
  body.erase("stop");
  body["max_tokens"] = 5;
  const Got on = post("/v1/completions", body);
  EXPECT_EQ(on.body["choices"][0]["finish_reason"], "length");
  EXPECT_EQ(on.body["usage"]["completion_tokens"], 5);
  body["skip_special_tokens"] = false;
  EXPECT_EQ(post("/v1/completions", body).body["choices"][0]["text"], "abc<|im_end|><|im_end|>");
}

TEST_F(FieldsTest, TokenIdsWhenAsked) {
  start(says("ok"));
  json body = prompt("abc");
  body["return_token_ids"] = true;
  const json choice = post("/v1/completions", body).body["choices"][0];
  EXPECT_EQ(choice["prompt_token_ids"], json({97, 98, 99}));
  EXPECT_EQ(choice["token_ids"], json({111, 107, 257}));
  const json last = stream("/v1/completions", body).chunks.back()["choices"][0];
  EXPECT_EQ(last["token_ids"], choice["token_ids"]);
  EXPECT_EQ(last["prompt_token_ids"], choice["prompt_token_ids"]);
  json chat_body = chat("abc");
  chat_body["return_token_ids"] = true;
  EXPECT_EQ(post("/v1/chat/completions", chat_body).body["choices"][0]["token_ids"], choice["token_ids"]);
}

TEST_F(FieldsTest, StoreFalseKeepsIdsAndVersionButNoText) {
  start(says("confidential words"));
  json body = chat("a secret question");
  body["store"] = false;
  body["max_tokens"] = 40;
  body["stop"] = "private stop";
  body["user"] = "somebody";
  body["metadata"] = {{"k", "v"}};
  body["n"] = 2;
  const HttpHeaders headers = {{"x-reef-tag-customer", "a private person"}, {"X-Session-Id", "c1"}};
  const RecordRow row = record_of(post("/v1/chat/completions", body, headers).body);
  EXPECT_EQ(row.prompt_text + row.prompt_json + row.completion_text, "");
  EXPECT_EQ(row.tags_json + row.prompt_digest, "");
  EXPECT_EQ(row.conversation, "c1") << "the next turn finds this one by it";
  EXPECT_EQ(row.group_key, "c:c1");
  for (const char* word : {"secret", "confidential", "private", "somebody", "metadata"}) {
    EXPECT_THAT(row.sampling_json, Not(HasSubstr(word)));
  }
  EXPECT_FALSE(row.prompt_ids.empty());
  EXPECT_EQ(testing::fake_text(row.token_ids), "confidential words");
  EXPECT_EQ(row.version, kBaseVersion);
  body["store"] = true;
  const RecordRow kept = record_of(post("/v1/chat/completions", body, headers).body);
  EXPECT_EQ(kept.prompt_text, "a secret question");
  EXPECT_EQ(kept.tags_json, R"({"customer":"a private person"})");
  EXPECT_THAT(kept.sampling_json, HasSubstr(R"("user":"somebody","metadata":{"k":"v"})"));
}

TEST_F(FieldsTest, TheSluiceObjectSaysWhatHeadersSay) {
  start(says("ok"));
  json body = chat("x");
  body["sluice"] = {{"conversation", "of-body"}, {"turn", "side"}};
  const Got g = post("/v1/chat/completions", body);
  EXPECT_EQ(record_of(g.body).conversation, "of-body");
  EXPECT_THAT(record_of(g.body).sampling_json, HasSubstr(R"("turn":"side")"));
  EXPECT_EQ(record_of(post("/v1/chat/completions", body, {{"X-Session-Id", "of-header"}}).body).conversation, "of-header");
}

// Keys are numbers, not JSON: a reader of JSON would take gigabytes for millions of brackets. Errors say no more of a value
// than its beginning.
TEST_F(FieldsTest, SMP5_KeysAndValuesOfAnyLengthAreRefusedBriefly) {
  start();
  const std::string brackets(4'000'000, '[');
  const std::string letters = "\"" + std::string(1'000'000, 'x') + "\"";
  const std::string cases[][2] = {{"{\"prompt\":\"p\",\"logit_bias\":{\"" + brackets + "\":1}}", "logit_bias"},
                                  {"{\"prompt\":[1," + letters + "]}", "prompt"},
                                  {"{\"prompt\":\"p\",\"stop_token_ids\":[" + letters + "]}", "stop_token_ids"}};
  for (const auto& c : cases) {
    const Got g = got(client_->post("/v1/completions", c[0], "application/json", HttpCall()));
    EXPECT_EQ(g.status, 400);
    EXPECT_EQ(g.param(), c[1]);
    EXPECT_LT(g.response.body.size(), 400u);
  }
  const std::string digits(30, '9'), e = "1e2";
  for (const std::string& key : {digits, e, std::string(" 1"), std::string("1.0"), std::string("+1")}) {
    json body = prompt("p");
    body["logit_bias"] = {{key, 1}};
    EXPECT_EQ(post("/v1/completions", body).param(), "logit_bias") << key;
  }
  const std::string name(8000, 'n');
  for (const std::string& path : {"/v1/models/" + name, "/sluice/v1/records/" + name, "/" + name}) {
    const Got g = get(path);
    EXPECT_EQ(g.status, 404);
    EXPECT_LT(g.response.body.size(), 400u) << path.substr(0, 20);
  }
}

}  // namespace
}  // namespace sluice
