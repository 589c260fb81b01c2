// SPDX-License-Identifier: GPL-3.0-or-later
// Fill in the middle over HTTP (serving.md §1.7): the route, the suffix of text completions, recipes' markers, cutting.
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

// Bytes 1, 2 and 3 are the markers before the prefix, the suffix and the answer; 4 pads.
class FimTest : public HttpTest {
 protected:
  FimTest() {
    tokenizer_ = testing::byte_tokenizer([](Vocabulary& v) {
      v.fim.prefix = 1;
      v.fim.suffix = 2;
      v.fim.middle = 3;
      v.fim.pad = 4;
    });
  }
  std::string prompt_of(const Got& g) {
    EXPECT_EQ(g.status, 200) << g.body;
    return g.status == 200 ? testing::fake_text(record_of(g.body).prompt_ids) : "";
  }
};

TEST_F(FimTest, TheRouteAnswersInTheChatShape) {
  start(says("return 1\n"));
  json body = {{"prompt", "def f():\n    "}, {"suffix", "\nprint(f())"}, {"temperature", 0}};
  const Got g = post("/v1/fim/completions", body);
  EXPECT_EQ(prompt_of(g), "\x01" "def f():\n    \x02\nprint(f())\x03");
  EXPECT_EQ(g.body["object"], "chat.completion");
  EXPECT_EQ(g.body["choices"][0]["message"]["content"], "return 1\n");
  EXPECT_EQ(g.body["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(record_of(g.body).route, "fim");
  EXPECT_THAT(record_of(g.body).sampling_json, HasSubstr("print(f())"));
  const Streamed s = stream("/v1/fim/completions", body);
  EXPECT_EQ(s.text(), "return 1\n");
  EXPECT_EQ(s.chunks[0]["object"], "chat.completion.chunk");
  EXPECT_EQ(s.chunks[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_TRUE(s.done());
  EXPECT_THAT(get("/metrics").response.body, HasSubstr("route=\"fim\""));
}

TEST_F(FimTest, DefaultsAndEmptySides) {
  start();
  EXPECT_EQ(post("/v1/fim/completions", {{"prompt", "a"}}).body["usage"]["completion_tokens"], 128);
  EXPECT_EQ(prompt_of(post("/v1/fim/completions", {{"prompt", ""}, {"suffix", "b"}, {"max_tokens", 1}})), "\x01\x02" "b\x03");
  EXPECT_EQ(prompt_of(post("/v1/fim/completions", {{"prompt", "a"}, {"suffix", nullptr}, {"max_tokens", 1}})), "\x01" "a\x02\x03");
  for (const json& wrong : {json(), json({"a"}), json({97}), json(5)}) {
    EXPECT_EQ(post("/v1/fim/completions", {{"prompt", wrong}}).param(), "prompt") << wrong;
  }
  EXPECT_EQ(post("/v1/fim/completions", {{"prompt", "a"}, {"suffix", 5}}).param(), "suffix");
}

TEST_F(FimTest, UserCodeIsNotParsedForSpecials) {
  start(says("x"));
  const Got g = post("/v1/fim/completions", {{"prompt", "<|im_start|>"}, {"suffix", "<|im_end|>"}});
  EXPECT_EQ(prompt_of(g), "\x01<|im_start|>\x02<|im_end|>\x03");
}

TEST_F(FimTest, TheMarkersEndTheAnswer) {
  start(says("abc\x04" "def"));
  const json choice = post("/v1/fim/completions", {{"prompt", "a"}}).body["choices"][0];
  EXPECT_EQ(choice["message"]["content"], "abc");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_TRUE(choice["stop_reason"].is_null());
}

TEST_F(FimTest, TooLongSidesAreCutThreeToOne) {
  start();
  const auto sent = [&](std::size_t before, std::size_t behind, int max_tokens) {
    const std::string prefix = std::string(before - 1, 'p') + "P", suffix = "S" + std::string(behind - 1, 's');
    const std::string p =
        prompt_of(post("/v1/fim/completions", {{"prompt", prefix}, {"suffix", suffix}, {"max_tokens", max_tokens}}));
    const std::size_t mid = p.find('\x02');
    EXPECT_EQ(p[mid - 1], 'P') << "the prefix loses its begin";
    EXPECT_EQ(p[mid + 1], 'S') << "the suffix loses its end";
    return std::pair<std::size_t, std::size_t>(mid - 1, p.size() - mid - 2);
  };
  // 512 positions, 12 for the answer, 3 markers: 497 for code.
  EXPECT_EQ(sent(5000, 5000, 12), (std::pair<std::size_t, std::size_t>(373, 124)));
  EXPECT_EQ(sent(5000, 10, 12), (std::pair<std::size_t, std::size_t>(487, 10)));
  EXPECT_EQ(sent(10, 5000, 12), (std::pair<std::size_t, std::size_t>(10, 487)));
  EXPECT_EQ(sent(200, 200, 12), (std::pair<std::size_t, std::size_t>(200, 200)));
  EXPECT_EQ(sent(5000, 5000, 1000000), (std::pair<std::size_t, std::size_t>(190, 63))) << "half the context stays for code";
}

TEST_F(FimTest, PRO10_ASuffixOfATextCompletionFillsIn) {
  start(says("mid"));
  json body = prompt("before");
  body["suffix"] = "after";
  const Got g = post("/v1/completions", body);
  EXPECT_EQ(prompt_of(g), "\x01" "before\x02" "after\x03");
  EXPECT_EQ(g.body["object"], "text_completion");
  EXPECT_EQ(g.body["choices"][0]["text"], "mid");
  body["suffix"] = "";
  EXPECT_EQ(prompt_of(post("/v1/completions", body)), "\x01" "before\x02\x03");
  body["suffix"] = nullptr;
  EXPECT_EQ(prompt_of(post("/v1/completions", body)), "before");
  body["suffix"] = "after";
  body["prompt"] = {97, 98};
  EXPECT_EQ(post("/v1/completions", body).param(), "prompt");
}

TEST_F(FimTest, AFormattedPromptIsNeverCut) {
  start();
  const Got g = post("/v1/completions", prompt("\x01" + std::string(600, 'a') + "\x02" "b\x03"));
  EXPECT_EQ(g.status, 400);
  EXPECT_EQ(g.code(), "context_length_exceeded");
}

TEST_F(HttpTest, PRO10_WithoutMarkersASuffixIsOneClear400) {
  start();
  for (const std::string path : {"/v1/completions", "/v1/fim/completions"}) {
    for (const char* suffix : {"b", ""}) {
      for (const bool streamed : {true, false}) {
        const Got g = post(path, {{"prompt", "a"}, {"suffix", suffix}, {"stream", streamed}});
        EXPECT_EQ(g.status, 400);
        EXPECT_EQ(g.code(), "fim_not_supported");
        EXPECT_THAT(g.body["error"]["message"].get<std::string>(), HasSubstr("fim.markers"));
      }
    }
  }
  json body = prompt("a");
  EXPECT_EQ(post("/v1/completions", body).status, 200);
  body["suffix"] = nullptr;
  EXPECT_EQ(post("/v1/completions", body).status, 200);
}

TEST_F(HttpTest, ARecipesMarkersServeModelsWithoutTheirOwn) {
  start(says("mid"));
  control_->fim_markers_.set({{"<before>", "<behind>", "<answer>"}});
  const Got g = post("/v1/fim/completions", {{"prompt", "a"}, {"suffix", "b"}});
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(testing::fake_text(record_of(g.body).prompt_ids), "<before>a<behind>b<answer>");
  EXPECT_EQ(g.body["choices"][0]["message"]["content"], "mid");
}

}  // namespace
}  // namespace sluice
