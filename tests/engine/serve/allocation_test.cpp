// SPDX-License-Identifier: GPL-3.0-or-later
// The engine's loop takes no memory per decode step: operator new is counted on the engine's thread between one step of the
// model and the next. A program of its own, since it replaces operator new.
#include <gtest/gtest.h>

#include <chrono>

#include "base/log.h"
#include "serve/engine.h"
#include "support/counted_new.h"

namespace {
thread_local bool counting = false;
}  // namespace

bool sluice::testing::counts_new() { return counting; }

namespace sluice {
namespace {

constexpr int kWarmSteps = 50;

class NoLoader final : public AdapterLoader {
 public:
  Result<std::shared_ptr<const Adapter>> load(const std::string&, VersionId) const override { return not_found("none"); }
};

// Draws the same token again and again; counts what happens outside of it.
class SteadyModel final : public Model {
 public:
  SteadyModel() {
    info_.vocab_size = 100;
    info_.context_length = 4096;
  }
  const ModelInfo& info() const override { return info_; }
  const AdapterLoader& adapter_loader() const override { return loader_; }
  std::unique_ptr<ModelContext> make_context(const ContextOptions&) const override { return std::make_unique<Context>(); }

 private:
  class Context final : public ModelContext {
   public:
    Result<OpenedSequence> open(std::shared_ptr<const Adapter>, const std::vector<TokenId>&, OpenOptions) override {
      return OpenedSequence{SequenceHandle{++handles_}, 0};
    }
    Status reserve(SequenceHandle, int) override { return {}; }
    void close(SequenceHandle, bool) override { counting = false; }
    Status step(const StepInput& input, StepOutput& output) override {
      counting = false;
      output.results.resize(input.items.size());
      for (StepResult& r : output.results) r.sampled.token = 65;
      counting = ++steps_ > kWarmSteps;
      return {};
    }
    int exact_rows() const override { return 8; }
    void flush() override {}
    KvUsage usage() const override { return {}; }
    void limit_threads(int) override {}

   private:
    std::int64_t handles_ = 0;
    int steps_ = 0;
  };

  ModelInfo info_;
  NoLoader loader_;
};

TEST(EngineAllocation, DecodeStepsTakeNoMemory) {
  constexpr int kSequences = 4, kTokens = 900;
  const auto model = std::make_shared<SteadyModel>();
  AdapterSlots slots(model->adapter_loader(), [](VersionId) { return std::string(); });
  Log log;
  Engine engine(model, slots, {}, log);
  std::vector<ResponseHandle> handles;
  for (int i = 0; i < kSequences; ++i) {
    Request r;
    r.prompt.assign(10, 1);
    r.max_tokens = kTokens;
    Result<ResponseHandle> handle = engine.submit(std::move(r));
    ASSERT_TRUE(handle.ok());
    handles.push_back(std::move(handle).value());
  }
  for (ResponseHandle& handle : handles) {
    while (true) {
      const auto event = handle->next(std::chrono::steady_clock::now() + std::chrono::seconds(60));
      ASSERT_TRUE(event.has_value());
      if (event->kind == TokenEvent::Kind::kEnd) break;
    }
  }
  engine.stop();
  // A reader who lags lets its stream's buffer double a few times, and sequences come to their ends; no more than that.
  EXPECT_LT(testing::counted_new, kSequences * 20) << "over " << kSequences * kTokens << " tokens";
}

}  // namespace
}  // namespace sluice
