// SPDX-License-Identifier: GPL-3.0-or-later
// The server before, during and after the load of a model (serving.md §1.1), on the whole engine with tiny models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "base/net/http_client.h"
#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"
#include "runtime/runtime.h"
#include "support/held_file.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::test_data;
using testing::HeldFile;

class LoadingTest : public ::testing::Test {
 protected:
  RuntimeOptions options(const std::string& model, int port = 0) const {
    RuntimeOptions o = testing::tiny_runtime(folder.path, model);
    o.port = port;
    return o;
  }
  std::unique_ptr<Runtime> open(const RuntimeOptions& o) { return testing::open_runtime(o, log); }
  // A copy that may be held.
  std::string copy(const std::string& name) const {
    const std::string path = folder.path + "/" + name;
    std::filesystem::copy_file(test_data(name), path);
    return path;
  }
  static std::string url_of(const Runtime& runtime) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (runtime.snapshot()->server_url.empty() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return runtime.snapshot()->server_url;
  }
  static int port_of(const std::string& url) { return std::stoi(url.substr(url.rfind(':') + 1)); }
  static Result<HttpResponse> complete(HttpClient& client) {
    return client.post("/v1/completions", R"({"prompt":"a","max_tokens":2})", "application/json");
  }
  static void expect_loading(const Result<HttpResponse>& answer) {
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    EXPECT_EQ(answer->status, 503) << answer->body;
    EXPECT_THAT(answer->body, HasSubstr("model_loading"));
    EXPECT_NE(answer->header("Retry-After"), "");
  }

  TempFolder folder;
  Log log;
};

TEST_F(LoadingTest, TheServerSaysSoUntilTheModelIsThere) {
  const std::string model = copy("tiny-llama.gguf");
  HeldFile held(model);
  const auto runtime = open(options(model));
  const auto client = HttpClient::create(url_of(*runtime)).value();
  const auto health = client->get("/health");
  ASSERT_TRUE(health.ok());
  EXPECT_EQ(health->status, 503);
  EXPECT_EQ(health->body, R"({"status":"loading"})");
  expect_loading(complete(*client));
  expect_loading(client->get("/v1/models"));
  expect_loading(client->post("/sluice/v1/sessions", R"({"recipe":"be-brief"})", "application/json"));
  expect_loading(client->post("/sluice/v1/engine/pause", "{}", "application/json"));
  const auto metrics = client->get("/metrics");
  EXPECT_TRUE(metrics.ok() && metrics->status == 200);
  EXPECT_EQ(runtime->snapshot()->phase, EnginePhase::kLoading);
  held.release();
  ASSERT_TRUE(runtime->wait_ready(60).ok());
  EXPECT_EQ(client->get("/health")->status, 200);
  EXPECT_EQ(complete(*client)->status, 200);
}

TEST_F(LoadingTest, ATemplateThatIsGuessedIsLogged) {
  const std::string model = folder.path + "/llama";
  std::filesystem::copy(test_data("folders/llama"), model, std::filesystem::copy_options::recursive);
  for (const bool guessed : {false, true}) {
    if (guessed) std::ofstream(model + "/tokenizer_config.json") << R"({"bos_token":"<|im_start|>","eos_token":"<|im_end|>"})";
    std::string lines;
    log.set_sink([&lines](LogLevel, std::string_view, std::string_view text) { lines.append(text) += "\n"; }, LogLevel::kInfo);
    {
      const auto runtime = open(options(model));
      ASSERT_TRUE(runtime->wait_ready(60).ok());
      const auto client = HttpClient::create(url_of(*runtime)).value();
      const auto answer = client->post("/v1/chat/completions", R"({"messages":[{"role":"user","content":"a"}],"max_tokens":2})", "application/json");
      EXPECT_EQ(answer->status, 200) << answer->body;
    }
    log.set_sink(nullptr, LogLevel::kInfo);
    EXPECT_EQ(lines.find("no chat template: it chats in plain ChatML") != std::string::npos, guessed) << lines;
  }
}

TEST_F(LoadingTest, AnotherModelTakesOverTheSamePort) {
  const std::string next = copy("tiny-qwen2.gguf");
  const auto runtime = open(options(test_data("tiny-llama.gguf")));
  ASSERT_TRUE(runtime->wait_ready(60).ok());
  const std::string url = url_of(*runtime);
  const auto client = HttpClient::create(url).value();
  ASSERT_EQ(complete(*client)->status, 200);
  HeldFile held(next);
  std::promise<CommandOutcome> loaded;
  runtime->submit(LoadModel{next}, [&](const CommandOutcome& outcome) { loaded.set_value(outcome); });
  while (client->get("/health")->status == 200) std::this_thread::yield();
  expect_loading(complete(*client));
  expect_loading(client->post("/sluice/v1/sessions", R"({"recipe":"be-brief"})", "application/json"));
  held.release();
  const CommandOutcome outcome = loaded.get_future().get();
  EXPECT_TRUE(outcome.ok()) << outcome.text;
  EXPECT_EQ(complete(*client)->status, 200);
  EXPECT_EQ(runtime->snapshot()->server_url, url);
  EXPECT_FALSE(runtime->run(LoadModel{test_data("golden/losses.json")}).ok());
  EXPECT_EQ(complete(*client)->status, 200) << "the model from before serves on";
  EXPECT_EQ(runtime->snapshot()->server_url, url);
}

TEST_F(LoadingTest, AModelThatCantBeUsedLeavesNoOpenPort) {
  const std::string model = folder.path + "/rubbish.gguf";
  std::filesystem::copy_file(test_data("golden/losses.json"), model);
  HeldFile held(model);
  const auto runtime = open(options(model));
  const std::string url = url_of(*runtime);
  const auto client = HttpClient::create(url).value();
  ASSERT_EQ(client->get("/health")->status, 503);
  held.release();
  EXPECT_THAT(runtime->wait_ready(60).message(), HasSubstr("rubbish.gguf"));
  EXPECT_FALSE(client->get("/health").ok());
  ASSERT_TRUE(runtime->run(LoadModel{test_data("tiny-llama.gguf")}).ok());
  EXPECT_EQ(runtime->snapshot()->server_url, url) << "the address is kept";
  EXPECT_EQ(complete(*client)->status, 200);
}

TEST_F(LoadingTest, ABusyPortIsToldBeforeTheModelIsThere) {
  const auto holder = open(options(test_data("tiny-llama.gguf")));
  const int taken = port_of(url_of(*holder));
  const std::string model = copy("tiny-qwen2.gguf");
  HeldFile held(model);
  TempFolder other;
  RuntimeOptions o = options(model, taken);
  o.data_folder = other.path + "/ws";
  {
    const auto runtime = open(o);
    while (runtime->snapshot()->server_error.empty()) std::this_thread::yield();
    EXPECT_EQ(runtime->snapshot()->phase, EnginePhase::kLoading);
    // Another port can be had while the model loads.
    const CommandOutcome moved = runtime->run(StartServer{"127.0.0.1", 0});
    ASSERT_TRUE(moved.ok()) << moved.text;
    const auto client = HttpClient::create(runtime->snapshot()->server_url).value();
    expect_loading(complete(*client));
    held.release();
    ASSERT_TRUE(runtime->wait_ready(60).ok());
    EXPECT_EQ(complete(*client)->status, 200);
  }
  HeldFile again(model);
  o.port_required = true;
  const auto runtime = open(o);
  const Status refused = runtime->wait_ready(60);  // though the model is held
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_EQ(refused.message(), "Port " + std::to_string(taken) + " is in use by another program: close that program, or choose another port");
}

}  // namespace
}  // namespace sluice
