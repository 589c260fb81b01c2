// SPDX-License-Identifier: GPL-3.0-or-later
// POST /sluice/v1/tokenize, detokenize, apply-template and GET /v1/models/{id} (serving.md §1.2).
#include "http_fixture.h"

namespace sluice {
namespace {

using TextApiTest = HttpTest;

TEST_F(TextApiTest, TextGoesToTokensAndBack) {
  start();
  const Got g = post("/sluice/v1/tokenize", {{"content", "ab c"}});
  ASSERT_EQ(g.status, 200) << g.body;
  EXPECT_EQ(g.body["tokens"], json({97, 98, 32, 99}));
  EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", g.body["tokens"]}}).body["content"], "ab c");
  EXPECT_EQ(post("/sluice/v1/tokenize", {{"content", ""}}).body["tokens"], json::array());
  EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", json::array()}}).body["content"], "");
}

TEST_F(TextApiTest, TOK5_ParseSpecialDecidesWhatAMarkerIs) {
  start();
  for (const auto& [text, id] : {std::pair<const char*, int>{"<|im_start|>", 256}, {"<|im_end|>", 257}, {"<|endoftext|>", 258}}) {
    EXPECT_EQ(post("/sluice/v1/tokenize", {{"content", text}}).body["tokens"], json({id}));
    const json plain = post("/sluice/v1/tokenize", {{"content", text}, {"parse_special", false}}).body["tokens"];
    EXPECT_EQ(plain.size(), std::string(text).size());
    EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", plain}}).body["content"], text);
  }
}

TEST_F(TextApiTest, PiecesAreTextOrBytes) {
  start();
  const json tokens = post("/sluice/v1/tokenize", {{"content", "a\xc3\xa9"}, {"with_pieces", true}}).body["tokens"];
  ASSERT_EQ(tokens.size(), 3u);
  EXPECT_EQ(tokens[0], json({{"id", 97}, {"piece", "a"}}));
  EXPECT_EQ(tokens[1]["piece"], json({0xc3}));
  EXPECT_EQ(tokens[2]["piece"], json({0xa9}));
}

TEST_F(TextApiTest, TemplatesShowThePrompt) {
  start();
  const Got g = post("/sluice/v1/apply-template", {{"messages", {{{"role", "user"}, {"content", "hi"}}}}});
  ASSERT_EQ(g.status, 200) << g.body;
  const std::string whole = g.body["prompt"];
  EXPECT_NE(whole.find("hi"), std::string::npos);
  const std::string closed =
      post("/sluice/v1/apply-template", {{"messages", {{{"role", "user"}, {"content", "hi"}}}}, {"add_generation_prompt", false}})
          .body["prompt"];
  EXPECT_LT(closed.size(), whole.size());
  EXPECT_EQ(whole.compare(0, closed.size(), closed), 0);
}

TEST_F(TextApiTest, BadFieldsAreNamed) {
  start();
  EXPECT_EQ(post("/sluice/v1/tokenize", json::object()).param(), "content");
  EXPECT_EQ(post("/sluice/v1/tokenize", {{"content", 5}}).param(), "content");
  EXPECT_EQ(post("/sluice/v1/tokenize", {{"content", "a"}, {"add_special", "yes"}}).param(), "add_special");
  EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", "a"}}).param(), "tokens");
  EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", {1, 259}}}).param(), "tokens");
  EXPECT_EQ(post("/sluice/v1/detokenize", {{"tokens", {-1}}}).param(), "tokens");
  EXPECT_EQ(post("/sluice/v1/apply-template", {{"messages", json::array()}}).param(), "messages");
}

TEST_F(TextApiTest, ModelsHaveTheExactFields) {
  start();
  const Got list = get("/v1/models");
  EXPECT_EQ(list.body["object"], "list");
  const json first = list.body["data"][0];
  EXPECT_EQ(first, json({{"id", "brief"}, {"object", "model"}, {"created", 1}, {"owned_by", "sluice"}, {"root", "fake"},
                         {"parent", "fake"}, {"max_model_len", 512}, {"sluice", {{"version", 0}, {"state", "serving"}}}}));
  EXPECT_TRUE(list.body["data"][1]["parent"].is_null());
  EXPECT_EQ(get("/v1/models/dir/other").body["id"], "dir/other");
  EXPECT_EQ(get("/v1/models/dir%2Fother").body["id"], "dir/other");
  EXPECT_EQ(get("//v1//models").status, 200);  // PRO-12
  EXPECT_EQ(get("/v1/models/none").code(), "model_not_found");
  EXPECT_EQ(get("/v1/models/").status, 404);
}

}  // namespace
}  // namespace sluice
