// SPDX-License-Identifier: GPL-3.0-or-later
// Held-out prompts never train, whoever asks them, by whichever way.
#include <gtest/gtest.h>

#include "base/net/http_client.h"
#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"
#include "runtime/live_split.h"
#include "runtime/load.h"
#include "runtime/runtime.h"

namespace sluice {
namespace {

class HeldOutTraffic : public ::testing::Test {
 protected:
  void SetUp() override {
    runtime = testing::open_runtime(testing::tiny_runtime(folder.path), log);
    ASSERT_TRUE(runtime);
    ASSERT_TRUE(runtime->wait_ready(60).ok());
    StartSession start;
    start.recipe = "be-brief";
    start.live_only = true;
    const CommandOutcome started = runtime->run(start);
    ASSERT_TRUE(started.ok()) << started.text;
    session = *started.session;
    client = HttpClient::create(runtime->snapshot()->server_url).value();
  }
  // Asks over HTTP, labels the answer; the state of the label and the side that the record stands on.
  std::pair<std::string, Split> label_answer(const std::string& path, const std::string& asked) {
    const std::string body = "{\"max_tokens\":2," + asked + "}";
    const auto answer = client->post(path, body, "application/json");
    EXPECT_TRUE(answer.ok() && answer->status == 200) << (answer.ok() ? answer->body : answer.status().message());
    return label(RecordId{std::string(answer->header("X-Sluice-Record-Id"))});
  }
  std::pair<std::string, Split> label(const RecordId& record) {
    const auto row = runtime->store().record(record);
    EXPECT_TRUE(row && row->session == session) << record.text;
    GiveLabel give;
    give.record = record;
    give.kind = FeedbackKind::kReject;
    const CommandOutcome given = runtime->run(give);
    EXPECT_TRUE(given.ok()) << given.text;
    return {given.feedback_state, row->split};
  }

  const std::pair<std::string, Split> held_out{"held_out", Split::kHeldOut};
  TempFolder folder;
  Log log;
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<HttpClient> client;
  SessionId session;
};

TEST_F(HeldOutTraffic, AClientsHeldOutPromptIsNotTrainedOn) {
  EXPECT_EQ(label_answer("/v1/chat/completions", R"("messages":[{"role":"user","content":"What is fog?"}])"), held_out);
  EXPECT_EQ(label_answer("/v1/chat/completions", R"("messages":[{"role":"user","content":[{"type":"text","text":"what is fog? "}]}])"), held_out);
  EXPECT_EQ(label_answer("/v1/chat/completions", R"("messages":[{"role":"user","content":"What is fog?"},
      {"role":"assistant","content":"Mist."},{"role":"user","content":"And in the hills?"}])"), held_out);
  EXPECT_EQ(label_answer("/v1/completions", R"("prompt":"What is fog?")"), held_out);
  EXPECT_EQ(label_answer("/v1/completions", R"("prompt":["Hello","user: What is fog?"])"), held_out);
  EXPECT_EQ(label_answer("/v1/chat/completions", R"("messages":[{"role":"user","content":"What is a valve?"}])").second, Split::kTrain);
  EXPECT_EQ(label_answer("/v1/completions", R"("prompt":"What is a valve?")").second, Split::kTrain);
}

TEST_F(HeldOutTraffic, NorIsTheWindowsOwnQuestion) {
  Ask ask;
  ask.max_tokens = 2;
  ask.prompt = "What is fog?";
  EXPECT_EQ(label(runtime->run(ask).answers.at(0).record), held_out);
  ask.prompt = "What is a valve?";
  EXPECT_EQ(label(runtime->run(ask).answers.at(0).record).second, Split::kTrain);
}

TEST_F(HeldOutTraffic, ProbesAndIdsCountToo) {
  const auto recipe = load_recipe("be-brief", std::string(SLUICE_SOURCE_DIR) + "/resources/recipes");
  ASSERT_TRUE(recipe.ok());
  const auto system = load_system(std::string(SLUICE_TEST_DATA) + "/tiny-llama.gguf");
  ASSERT_TRUE(system.ok());
  const auto split = [&](const std::string& text, bool ids) {
    CompletionRequest request;
    if (ids) request.prompt_ids = system->tokenizer->encode(text).value();
    else request.prompt = text;
    return live_split(*recipe, "salt", *system->tokenizer, request);
  };
  for (const bool ids : {false, true}) {
    EXPECT_EQ(split(recipe->task.probes.at(0).text, ids), Split::kHeldOut);
    EXPECT_EQ(split(recipe->task.held_out.at(0).text, ids), Split::kHeldOut);
    EXPECT_EQ(split("What is a valve?", ids), Split::kTrain);
  }
}

// A recipe without held-out prompts leaves out a share of the live ones, the window's among them.
TEST(LiveSplit, WithoutPromptsOfItsOwnAShareIsHeldOut) {
  Recipe recipe;
  const auto system = load_system(std::string(SLUICE_TEST_DATA) + "/tiny-llama.gguf");
  ASSERT_TRUE(system.ok());
  int held = 0;
  for (int i = 0; i < 1000; ++i) {
    CompletionRequest request;
    request.group_key = "c:" + std::to_string(i);
    held += live_split(recipe, "salt", *system->tokenizer, request) == Split::kHeldOut;
  }
  EXPECT_GT(held, 60);
  EXPECT_LT(held, 140);
}

}  // namespace
}  // namespace sluice
