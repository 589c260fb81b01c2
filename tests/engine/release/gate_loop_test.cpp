// SPDX-License-Identifier: GPL-3.0-or-later
// The gate on the real engine, chat, slots and store over the fake model: shadow answers go the way of live ones, and live
// traffic never meets a version that no decision promoted.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "release/evaluator.h"
#include "serve/engine.h"
#include "support/fake_model.h"
#include "support/temp_folder.h"
#include "support/text_fixture.h"

namespace sluice {
namespace {

using namespace sluice::testing;

SteadyTime soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(120); }

constexpr std::int64_t kBroken = 11, kBrokenLater = 13;  // NaN logits: always; on the pairs' prompts

// Odd versions answer as the user likes it, even ones (the base among them) do not; each says which version it is.
FakeModelOptions odd_versions_please() {
  FakeModelOptions options;
  options.answer = [](VersionId version, const std::vector<TokenId>&) {
    return (version.value % 2 == 1 ? "good topic v" : "bad topic v") + std::to_string(version.value);
  };
  options.score = [](VersionId, const std::vector<TokenId>&, TokenId) { return -1.0f; };
  options.not_finite = [](VersionId version, const std::vector<TokenId>& prompt, std::size_t) {
    return version.value == kBroken || (version.value == kBrokenLater && std::string(prompt.begin(), prompt.end()).find("question") != std::string::npos);
  };
  return options;
}

TaskRecipe recipe() {
  TaskRecipe r;
  r.name = "test";
  r.system_prompt = "Be good.";
  r.sampling = {0.7, 1.0, 32};
  for (int i = 0; i < 100; ++i) {
    const std::string id = "h" + std::to_string(i);
    r.held_out.push_back({id, "question " + std::to_string(i), "topic", {"topic"}, id});
  }
  for (int i = 0; i < 8; ++i) {
    const std::string id = "p" + std::to_string(i);
    r.probes.push_back({id, "probe " + std::to_string(i), "topic", {"topic"}, id});
  }
  r.user = {"user", "", {{RuleKind::kFinished, 0, 0, {}}, {RuleKind::kNoWords, 0, 0, {"bad"}}}};
  r.protected_metric = {"names the topic", "", {{RuleKind::kNamesTopic, 0, 0, {}}}};
  return r;
}

class GateLoop : public ::testing::Test {
 protected:
  GateLoop()
      : store(Store::open({folder.path()}).value()),
        model(FakeModel::make(odd_versions_please())),
        slots(model->adapter_loader(), [this](VersionId v) { return store->adapter_folder(v); }),
        engine(model, slots, {}, log),
        chat(engine, byte_tokenizer(), plain_template(), store.get(),
             [](VersionId v) { return v == kBaseVersion ? "base" : "test@" + std::to_string(v.value); }, Clock::system()),
        registry(*store, slots, registry_options()),
        answers(chat, *store, recipe(), SessionId()) {
    EXPECT_TRUE(registry.start().ok());
    GateSettings settings = gate_preset(GateProfile::kDemo);
    settings.invariants.kl_base = settings.invariants.kl_incumbent = 100;  // the fake's log-probs mean nothing
    settings.invariants.latency_ratio = 1000;                             // nor do its speeds
    EXPECT_TRUE(store_gate_settings(*store, settings, "test", "a test").ok());
    EvaluatorOptions options;
    options.seed = 3;
    options.pool = recipe().held_out;
    options.probes = recipe().probes;
    options.main = recipe().user;
    options.protected_metric = recipe().protected_metric;
    evaluator = std::make_unique<Evaluator>(*store, registry, answers, options);
  }

  RegistryOptions registry_options() {
    RegistryOptions options;
    options.on_pinnable = [this](std::set<VersionId> versions) { slots.set_pinnable(std::move(versions)); };
    return options;
  }

  VersionId add_candidate() {
    const VersionId id = store->reserve_version().value();
    write_fake_adapter(store->adapter_folder(id));
    VersionRow row;
    row.id = id;
    row.name = "test";
    row.parent = registry.serving();
    row.origin = "step";
    row.head_step = id.value;
    EXPECT_TRUE(store->add_version(row).ok());
    return id;
  }

  TempFolder folder;
  Log log;
  std::unique_ptr<Store> store;
  std::shared_ptr<const FakeModel> model;
  AdapterSlots slots;
  Engine engine;
  CompletionService chat;
  Registry registry;
  ChatAnswers answers;
  std::unique_ptr<Evaluator> evaluator;
};

// Its own fault, not the machine's: it must not stand in the way of the next.
TEST_F(GateLoop, ACandidateWithoutNumbersIsRejected) {
  for (const std::int64_t id : {kBroken, kBrokenLater}) {
    while (store->reserve_version().value().value < id - 1) {
    }
    const VersionId v = add_candidate();
    ASSERT_EQ(v.value, id);
    if (id == kBroken) evaluator->start();
    evaluator->notify();
    ASSERT_TRUE(evaluator->wait_idle(soon()));
    const DecisionRow row = store->decisions(-1, 1000).back();
    EXPECT_EQ(row.version, v);
    EXPECT_EQ(row.verdict, Verdict::kReject) << row.reason_text;
  }
}

TEST_F(GateLoop, GoodAndBadCandidatesUnderLiveTraffic) {
  std::atomic<bool> stop{false};
  std::atomic<int> answered{0}, wrong{0};
  std::thread client([&] {
    while (!stop) {
      CompletionRequest request;
      ChatMessage message;
      message.role = "user";
      message.content = "hello";
      request.messages = {message};
      request.max_tokens = 32;
      const auto reply = chat.complete(std::move(request));
      if (!reply.ok()) {
        ++wrong;
        continue;
      }
      ++answered;
      const std::string version = "v" + std::to_string(reply->version.value);
      if (reply->text.substr(reply->text.find('v')) != version) ++wrong;
      bool promoted = false;
      for (const DecisionRow& row : store->decisions(-1, 1000)) {
        promoted |= row.verdict == Verdict::kPromote && row.version == reply->version;
      }
      if (!promoted) ++wrong;
    }
  });
  evaluator->start();
  for (int i = 1; i <= 5; ++i) {
    const VersionId v = add_candidate();
    evaluator->notify();
    ASSERT_TRUE(evaluator->wait_idle(soon()));
    const DecisionRow row = store->decisions(-1, 1000).back();
    ASSERT_EQ(row.version, v);
    // v1 beats the base; v2 and v4 are worse than it; v3 and v5 equal it on every prompt.
    const Verdict expected = i == 1 ? Verdict::kPromote : i % 2 == 0 ? Verdict::kReject : row.verdict;
    EXPECT_EQ(row.verdict, expected) << row.reason_text;
    EXPECT_EQ(row.incumbent_n, row.n);
  }
  while (answered < 20) std::this_thread::yield();
  stop = true;
  client.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(store->verify().empty());
  const auto rows = store->evidence(VersionId{2});
  ASSERT_FALSE(rows.empty());
  const auto record = store->record(rows[0].candidate_record);
  ASSERT_TRUE(record);
  EXPECT_EQ(record->purpose, Purpose::kGate);
  EXPECT_EQ(record->split, Split::kHeldOut);
  EXPECT_EQ(record->version, VersionId{2});
  EXPECT_FLOAT_EQ(record->temperature, 0.7f);
  EXPECT_EQ(record->max_tokens, 32);
  EXPECT_EQ(record->finish_reason, "stop");
  EXPECT_EQ(record->lp_full.size(), record->token_ids.size());
}

}  // namespace
}  // namespace sluice
