// SPDX-License-Identifier: GPL-3.0-or-later
// What a workspace remembers from one start to the next, and what a server that cannot move leaves behind.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/net/http_client.h"
#include "engine/runtime/runtime_fixture.h"
#include "engine/store/store_fixture.h"
#include "runtime/maintenance.h"
#include "runtime/runtime.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;
using testing::test_data;

class WorkspaceTest : public ::testing::Test {
 protected:
  RuntimeOptions options(const std::string& model, int port = 0) const {
    RuntimeOptions o = testing::tiny_runtime(folder.path, model);
    o.port = port;
    return o;
  }
  std::unique_ptr<Runtime> open(const RuntimeOptions& o) {
    auto runtime = testing::open_runtime(o, log);
    ready = runtime->wait_ready(60);
    return runtime;
  }
  static CommandOutcome start_live(Runtime& runtime) {
    StartSession start;
    start.recipe = "be-brief";
    start.live_only = true;
    return runtime.run(start);
  }
  static int health(const std::string& url) {
    const auto client = HttpClient::create(url);
    const auto answer = client.ok() ? (*client)->get("/health") : Result<HttpResponse>(client.status());
    return answer.ok() ? answer->status : 0;
  }

  TempFolder folder;
  Log log;
  Status ready;
};

TEST_F(WorkspaceTest, AModelOfOnesOwnComesBack) {
  const std::string own = folder.path + "/own.gguf";
  std::filesystem::copy_file(test_data("tiny-llama.gguf"), own);
  const std::string name = open(options(own))->snapshot()->model_name;
  auto runtime = open(options(""));
  ASSERT_TRUE(ready.ok()) << ready.message();
  EXPECT_EQ(runtime->snapshot()->model_path, own);
  EXPECT_EQ(runtime->snapshot()->model_name, name);
  runtime.reset();
  // Asked for another one, it takes that, while nothing depends on the first.
  runtime = open(options(test_data("tiny-qwen2.gguf")));
  EXPECT_TRUE(ready.ok()) << ready.message();
}

// Its waiting records are the first model's tokens.
TEST_F(WorkspaceTest, AnOpenSessionKeepsItsModel) {
  auto runtime = open(options(test_data("tiny-llama.gguf")));
  ASSERT_TRUE(start_live(*runtime).ok());
  runtime.reset();
  runtime = open(options(test_data("tiny-qwen2.gguf")));
  EXPECT_TRUE(ready.ok()) << "a session without a record binds nothing";
  runtime.reset();
  runtime = open(options(test_data("tiny-llama.gguf")));
  const auto client = HttpClient::create(runtime->snapshot()->server_url).value();
  const auto answer = client->post("/v1/completions", R"({"prompt":"hello","max_tokens":3})", "application/json");
  ASSERT_TRUE(answer.ok() && answer->status == 200);
  runtime.reset();
  runtime = open(options(test_data("tiny-qwen2.gguf")));
  EXPECT_THAT(ready.message(), HasSubstr("open session of this workspace belongs to the model"));
  EXPECT_THAT(ready.message(), HasSubstr(test_data("tiny-llama.gguf")));
}

TEST_F(WorkspaceTest, AServerThatCannotMoveStaysWhereItIs) {
  const auto runtime = open(options(test_data("tiny-llama.gguf")));
  const std::string url = runtime->snapshot()->server_url;
  TempFolder other;
  RuntimeOptions theirs = options(test_data("tiny-llama.gguf"));
  theirs.data_folder = other.path + "/ws";
  const auto holder = open(theirs);
  const std::string taken = holder->snapshot()->server_url;
  const CommandOutcome moved = runtime->run(StartServer{"", std::stoi(taken.substr(taken.rfind(':') + 1))});
  EXPECT_FALSE(moved.ok());
  EXPECT_THAT(moved.text, HasSubstr(url + " as before"));
  EXPECT_EQ(runtime->snapshot()->server_url, url);
  EXPECT_EQ(runtime->snapshot()->server_error, "");
  EXPECT_EQ(health(url), 200);
}

TEST_F(WorkspaceTest, APortChosenByHandIsKept) {
  auto runtime = open(options(test_data("tiny-llama.gguf"), kPortOfWorkspace));  // 8080, or an error where that is taken
  ASSERT_TRUE(runtime->run(StartServer{"127.0.0.1", 0}).ok());
  const std::string url = runtime->snapshot()->server_url;
  ASSERT_TRUE(runtime->run(LoadModel{test_data("tiny-qwen2.gguf")}).ok());
  EXPECT_EQ(runtime->snapshot()->server_url, url) << "also for another model";
  runtime.reset();
  runtime = open(options("", kPortOfWorkspace));
  EXPECT_EQ(runtime->snapshot()->server_url, url);
  runtime.reset();
  runtime = open(options("", 0));
  EXPECT_NE(runtime->snapshot()->server_url, url) << "a port that was asked for goes first";
}

// A demo that found its port busy takes a free one: the address that clients know stays the workspace's.
TEST_F(WorkspaceTest, APortThatNobodyChoseIsNotKept) {
  auto runtime = open(options(test_data("tiny-llama.gguf"), kPortOfWorkspace));
  ASSERT_TRUE(runtime->run(StartServer{"127.0.0.1", 0}).ok());
  const std::string chosen = runtime->snapshot()->server_url;
  ASSERT_TRUE(runtime->run(StartServer{"127.0.0.1", 0, false}).ok());
  EXPECT_NE(runtime->snapshot()->server_url, chosen);
  runtime.reset();
  runtime = open(options("", kPortOfWorkspace));
  EXPECT_EQ(runtime->snapshot()->server_url, chosen);
}

}  // namespace
}  // namespace sluice
