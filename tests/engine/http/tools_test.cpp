// SPDX-License-Identifier: GPL-3.0-or-later
// Tools and tool calls (serving.md §1.3): the reader by itself, then both forms of answers over a real socket.
#include "http/tool_calls.h"
#include "http_fixture.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

struct Read {
  std::string content;
  std::vector<ToolCall> calls;
};

Read read_in_pieces(const std::string& text, std::size_t first, std::size_t size) {
  ToolCallReader reader;
  Read out;
  const auto add = [&](ToolCallReader::Piece piece) {
    out.content += piece.content;
    for (ToolCall& call : piece.calls) out.calls.push_back(std::move(call));
  };
  add(reader.push(text.substr(0, first)));
  for (std::size_t at = first; at < text.size(); at += size) add(reader.push(text.substr(at, size)));
  add(reader.flush());
  return out;
}

const std::string kCall = R"(<tool_call>{"name": "weather", "arguments": {"city": "Bern", "days": 2}}</tool_call>)";

TEST(ToolCallReader, FindsBlocksWhateverThePieces) {
  struct Row {
    std::string text, content;
    std::vector<std::string> names;
  };
  const std::vector<Row> rows = {
      {"no call at all ", "no call at all ", {}},
      {kCall, "", {"weather"}},
      {"\n" + kCall + "\n", "", {"weather"}},
      {"I look. \n\n" + kCall + "\n" + kCall + "\n", "I look.", {"weather", "weather"}},
      {kCall + " then text", "then text", {"weather"}},
      {"a <tool_call>not JSON</tool_call> b", "a <tool_call>not JSON</tool_call> b", {}},
      {"<tool_call>{\"name\": 5}</tool_call>" + kCall, "<tool_call>{\"name\": 5}</tool_call>", {"weather"}},
      {"<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>", "<tool_call>{\"name\": \"f\", \"arguments\": \"x\"}</tool_call>", {}},
      {"<tool_call>{\"name\":\"now\"}</tool_call>", "", {"now"}},
      {"open <tool_call>{\"name\": \"f\"", "open <tool_call>{\"name\": \"f\"", {}},
      {"begin <tool_c", "begin <tool_c", {}},
      {"a < b <tool> <tool_call", "a < b <tool> <tool_call", {}},
      {"", "", {}},
  };
  for (const Row& row : rows) {
    for (std::size_t first = 0; first <= row.text.size(); ++first) {
      for (const std::size_t size : {1, 3, 1000}) {
        const Read got = read_in_pieces(row.text, first, size);
        EXPECT_EQ(got.content, row.content) << row.text << " cut at " << first;
        std::vector<std::string> names;
        for (const ToolCall& call : got.calls) names.push_back(call.name);
        EXPECT_EQ(names, row.names) << row.text;
      }
    }
  }
  const Read one = read_in_pieces(kCall + kCall, 0, 1);
  EXPECT_EQ(one.calls[0].arguments, R"({"city":"Bern","days":2})");
  EXPECT_NE(one.calls[0].id, one.calls[1].id);
}

TEST(ToolCallReader, DeepJsonInABlockIsText) {
  const std::string text = "<tool_call>{\"name\":\"f\",\"arguments\":" + std::string(5000, '[') + "</tool_call>";
  EXPECT_EQ(read_in_pieces(text, 0, 7).content, text);
}

class ToolsTest : public HttpTest {
 protected:
  ToolsTest() { template_ = testing::tools_template(); }
  static json with_tools(const std::string& text) {
    json body = chat(text);
    body["max_tokens"] = 300;
    // Not in the order of the alphabet: the template must see what the client wrote.
    body["tools"] = json::array({{{"type", "function"},
                                  {"function", {{"name", "weather"}, {"description", "Tells the weather"},
                                                {"parameters", {{"type", "object"}, {"properties", json::object()}}}}}}});
    return body;
  }
};

TEST_F(ToolsTest, BlocksBecomeCalls) {
  start(says("Let me look.\n" + kCall));
  const json body = with_tools("Weather in Bern?");
  const Got g = post("/v1/chat/completions", body);
  ASSERT_EQ(g.status, 200) << g.body;
  const json& choice = g.body["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "tool_calls");
  EXPECT_EQ(choice["message"]["content"], "Let me look.");
  ASSERT_EQ(choice["message"]["tool_calls"].size(), 1u);
  const json& call = choice["message"]["tool_calls"][0];
  EXPECT_EQ(call["type"], "function");
  EXPECT_EQ(call["id"].get<std::string>().rfind("call_", 0), 0u);
  EXPECT_EQ(call["function"]["name"], "weather");
  EXPECT_EQ(json::parse(call["function"]["arguments"].get<std::string>()), json({{"city", "Bern"}, {"days", 2}}));
  EXPECT_EQ(record_of(g.body).completion_text, "Let me look.\n" + kCall) << "the record keeps what was said";

  const Streamed s = stream("/v1/chat/completions", body);
  EXPECT_EQ(s.text(), "Let me look.");
  json calls = json::array();
  for (const json& chunk : s.chunks) {
    const json& delta = chunk["choices"][0]["delta"];
    if (delta.contains("tool_calls")) calls.insert(calls.end(), delta["tool_calls"].begin(), delta["tool_calls"].end());
  }
  ASSERT_EQ(calls.size(), 1u);
  EXPECT_EQ(calls[0]["index"], 0);
  EXPECT_EQ(calls[0]["function"], call["function"]);
  EXPECT_EQ(s.chunks.back()["choices"][0]["finish_reason"], "tool_calls");
  EXPECT_EQ(s.chunks.back()["choices"][0]["delta"], json::object());
  EXPECT_THAT(get("/metrics").response.body, HasSubstr("finish_reason=\"tool_calls\"} 2"));
}

TEST_F(ToolsTest, OnlyCallsHaveNullContent) {
  start(says(kCall + "\n" + kCall));
  const json message = post("/v1/chat/completions", with_tools("x")).body["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_EQ(message["tool_calls"].size(), 2u);
  const Streamed s = stream("/v1/chat/completions", with_tools("x"));
  EXPECT_EQ(s.chunks[0]["choices"][0]["delta"]["role"], "assistant");
  EXPECT_EQ(s.text(), "");
}

TEST_F(ToolsTest, BadBlocksStayText) {
  const std::string text = "Hm <tool_call>oops</tool_call>.";
  start(says(text));
  const json choice = post("/v1/chat/completions", with_tools("x")).body["choices"][0];
  EXPECT_EQ(choice["message"]["content"], text);
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_FALSE(choice["message"].contains("tool_calls"));
  EXPECT_EQ(stream("/v1/chat/completions", with_tools("x")).text(), text);
}

TEST_F(ToolsTest, WithoutToolsOrWithNoneBlocksAreText) {
  start(says(kCall));
  json body = with_tools("x");
  body["tool_choice"] = "none";
  EXPECT_EQ(post("/v1/chat/completions", body).body["choices"][0]["message"]["content"], kCall);
  body.erase("tools");
  body.erase("tool_choice");
  EXPECT_EQ(post("/v1/chat/completions", body).body["choices"][0]["message"]["content"], kCall);
}

TEST_F(ToolsTest, ACallCutByTheBudgetIsLength) {
  start(says(kCall));
  json body = with_tools("x");
  body["max_tokens"] = 20;
  const json choice = post("/v1/chat/completions", body).body["choices"][0];
  EXPECT_EQ(choice["finish_reason"], "length");
  EXPECT_EQ(choice["message"]["content"], kCall.substr(0, 20));
}

TEST_F(ToolsTest, TemplatesSeeToolsAndCallsInTheClientsOrder) {
  start(says("ok"));
  const std::string body =
      R"({"messages":[{"role":"user","content":"q"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function",)"
      R"("function":{"name":"weather","arguments":"{\"zone\":1,\"city\":\"Bern\"}"}}]},)"
      R"({"role":"tool","tool_call_id":"c1","content":"sunny"}],)"
      R"("tools":[{"type":"function","function":{"name":"weather","description":"d"}}]})";
  const Got g = got(client_->post("/v1/chat/completions", body, "application/json"));
  ASSERT_EQ(g.status, 200) << g.body;
  const std::string prompt = testing::fake_text(record_of(g.body).prompt_ids);
  EXPECT_THAT(prompt, HasSubstr(R"({"type": "function", "function": {"name": "weather", "description": "d"}})"));
  EXPECT_THAT(prompt, HasSubstr(R"(assistant)" "\n" R"({"zone": 1, "city": "Bern"})"));
  EXPECT_THAT(prompt, HasSubstr("tool\nsunny"));
}

TEST_F(ToolsTest, BadToolFieldsAreNamed) {
  start();
  const auto refused = [&](const json& change) {
    json body = with_tools("x");
    body.update(change);
    const Got g = post("/v1/chat/completions", body);
    EXPECT_EQ(g.status, 400) << change;
    return g.param() + ":" + g.code();
  };
  EXPECT_EQ(refused({{"tool_choice", "required"}}), "tool_choice:unsupported_parameter");
  EXPECT_EQ(refused({{"tool_choice", {{"type", "function"}}}}), "tool_choice:unsupported_parameter");
  EXPECT_EQ(refused({{"tools", "x"}}), "tools:invalid_value");
  EXPECT_EQ(refused({{"tools", {{{"type", "function"}}}}}), "tools:invalid_value");
  EXPECT_EQ(refused({{"functions", json::array({1})}}), "functions:unsupported_parameter");
  json messages = {{{"role", "assistant"}, {"tool_calls", {{{"id", "x"}}}}}};
  EXPECT_EQ(refused({{"messages", messages}}), "messages[0].tool_calls:invalid_value");
  json fine = with_tools("x");
  fine["max_tokens"] = 2;
  fine["tool_choice"] = "auto";
  EXPECT_EQ(post("/v1/chat/completions", fine).status, 200);
  fine["tools"] = json::array();
  EXPECT_EQ(post("/v1/chat/completions", fine).status, 200);
}

TEST_F(HttpTest, ToolsNeedATemplateThatHasThem) {
  start();
  json body = chat("x");
  body["tools"] = json::array({{{"type", "function"}, {"function", {{"name", "f"}}}}});
  const Got g = post("/v1/chat/completions", body);
  EXPECT_EQ(g.status, 400);
  EXPECT_EQ(g.code(), "unsupported_parameter");
  EXPECT_EQ(g.param(), "tools");
}

}  // namespace
}  // namespace sluice
