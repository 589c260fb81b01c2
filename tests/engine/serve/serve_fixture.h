// SPDX-License-Identifier: GPL-3.0-or-later
// An engine on the fake model with adapter folders, and how tests drain its answers. One test's, used by its thread; a StepLog by any.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/log.h"
#include "serve/engine.h"
#include "support/fake_model.h"
#include "support/temp_folder.h"

namespace sluice::testing {

// A limit no healthy run comes near: a test that would hang fails instead.
inline SteadyTime far() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

struct Answer {
  std::vector<TokenId> ids;
  FinishReason finish = FinishReason::kError;
  Status error;
  Timings timings;

  std::string text() const { return fake_text(ids); }
};

inline Answer drain(ResponseHandle& handle) {
  Answer answer;
  while (true) {
    std::optional<TokenEvent> event = handle->next(far());
    if (!event) {
      ADD_FAILURE() << "no event came";
      return answer;
    }
    if (event->kind == TokenEvent::Kind::kToken) {
      answer.ids.push_back(event->token.token);
      continue;
    }
    answer.finish = event->finish;
    answer.error = event->error;
    answer.timings = handle->timings();
    return answer;
  }
}

inline Request request(const std::string& prompt, int max_tokens = 12) {
  Request r;
  r.prompt = fake_tokens(prompt);
  r.max_tokens = max_tokens;
  r.sampling.temperature = 0;
  return r;
}

// An engine that runs n at once, whoever sends them.
inline EngineOptions places(int n, std::size_t queue = 256) {
  EngineOptions options;
  options.max_running = n;
  options.reserved_for_live = 0;
  options.queue_capacity = queue;
  return options;
}

// What each step held, for tests that look back.
class StepLog {
 public:
  void add(const FakeStep& step) {
    MutexLock lock(mu_);
    steps_.push_back(step);
  }
  std::vector<FakeStep> steps() const {
    MutexLock lock(mu_);
    return steps_;
  }

 private:
  mutable Mutex mu_;
  std::vector<FakeStep> steps_ SLUICE_GUARDED_BY(mu_);
};

class EngineUnderTest {
 public:
  explicit EngineUnderTest(FakeModelOptions model_options = {}, EngineOptions options = {},
                           std::int64_t pool_bytes = AdapterSlots::kPoolBytes)
      : model(FakeModel::make(std::move(model_options))),
        slots(model->adapter_loader(), [this](VersionId) { return adapter_folder(); }, pool_bytes),
        engine(std::make_unique<Engine>(model, slots, options, log)) {
    write_fake_adapter(adapter_folder());
  }

  std::string adapter_folder() const { return folder.path() + "/adapter"; }
  ResponseHandle submit(Request r) {
    Result<ResponseHandle> handle = engine->submit(std::move(r));
    EXPECT_TRUE(handle.ok()) << handle.status().message();
    return handle.ok() ? std::move(handle).value() : ResponseHandle();
  }
  Answer ask(Request r) {
    ResponseHandle handle = submit(std::move(r));
    return handle ? drain(handle) : Answer();
  }
  VersionId started(ResponseHandle& handle) {
    const Result<StartInfo> start = handle->wait_started(far());
    EXPECT_TRUE(start.ok()) << start.status().message();
    return start.ok() ? start->version : VersionId();
  }

  TempFolder folder;
  Log log;
  std::shared_ptr<const FakeModel> model;
  AdapterSlots slots;
  std::unique_ptr<Engine> engine;
};

}  // namespace sluice::testing
