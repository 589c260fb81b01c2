// SPDX-License-Identifier: GPL-3.0-or-later
// Adapters of other programs brought in: candidates with files, all or none, never one of another base.
#include "runtime/adapter_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <set>

#include "engine/store/store_fixture.h"
#include "learn_torch/step_runner.h"
#include "release/registry.h"
#include "runtime/load.h"
#include "serve/engine.h"

namespace sluice {
namespace {

using ::testing::HasSubstr;

class AdapterImportTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    auto loaded = load_system(std::string(SLUICE_TEST_DATA) + "/tiny-llama.gguf");
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    system = std::move(loaded).value();
    auto runner = make_step_runner(system.model, {.lora = {}, .threads = 1});
    ASSERT_TRUE(runner.ok() && (*runner)->reset_to_base(1).ok());
    foreign = folder.path + "/foreign";
    std::filesystem::create_directories(foreign);
    ASSERT_TRUE((*runner)->save(foreign, {}).ok());
  }
  Result<std::vector<NewCandidate>> bring_in(const std::vector<AdapterImport>& wanted) {
    return import_adapters(*store, *system.model, SessionId(), wanted);
  }
  int folders_made() const {
    const std::string adapters = std::filesystem::path(store->adapter_folder(VersionId(1))).parent_path();
    if (!std::filesystem::exists(adapters)) return 0;
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(adapters), {}));
  }

  LoadedSystem system;
  std::string foreign;
};

TEST_F(AdapterImportTest, BecomesACandidateThatLoads) {
  const auto got = bring_in({{"theirs", foreign, "from a friend"}});
  ASSERT_TRUE(got.ok()) << got.status().message();
  const NewCandidate& made = got->front();
  EXPECT_THAT(made.modules_json, HasSubstr("q_proj"));
  const auto row = store->version(made.version);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->state, VersionState::kCandidate);
  EXPECT_EQ(row->origin, "import");
  EXPECT_EQ(row->name, "theirs");
  EXPECT_GT(row->rank, 0);
  const auto adapter = system.model->adapter_loader().load(store->adapter_folder(made.version), made.version);
  ASSERT_TRUE(adapter.ok()) << adapter.status().message();
  EXPECT_EQ((*adapter)->content_hash(), row->content_hash);
}

TEST_F(AdapterImportTest, OneOfAnotherBaseIsRefused) {
  const std::string path = foreign + "/sluice_provenance.json";
  std::ifstream in(path);
  std::string text(std::istreambuf_iterator<char>(in), {});
  const auto at = text.find("\"base_sha256\": \"");
  ASSERT_NE(at, std::string::npos) << text;
  text[at + 16] = text[at + 16] == '0' ? '1' : '0';
  std::ofstream(path) << text;
  const auto got = bring_in({{"theirs", foreign, ""}});
  EXPECT_EQ(got.code(), Code::kInvalidArgument);
  EXPECT_THAT(got.status().message(), HasSubstr("was trained on a base model"));
}

// Trying again does not help, so it is not kUnavailable, which clients repeat.
TEST_F(AdapterImportTest, APathThatCannotBeReadIsTheCallersMistake) {
  const std::string tensors = foreign + "/adapter_model.safetensors";
  std::filesystem::remove(tensors);
  std::filesystem::create_symlink(tensors, tensors);
  std::filesystem::remove(foreign + "/sluice_provenance.json");
  const auto got = bring_in({{"theirs", foreign, ""}});
  EXPECT_EQ(got.code(), Code::kInvalidArgument);
  EXPECT_THAT(got.status().message(), HasSubstr(tensors));
  EXPECT_EQ(folders_made(), 0);
}

TEST_F(AdapterImportTest, LRA17_AllOrNone) {
  const auto got = bring_in({{"theirs", foreign, ""}, {"none", folder.path + "/nothing", ""}});
  EXPECT_EQ(got.code(), Code::kInvalidArgument);
  EXPECT_THAT(got.status().message(), HasSubstr("/nothing"));
  EXPECT_EQ(store->versions().size(), 1u) << "the base alone";
  EXPECT_EQ(folders_made(), 0);
}

// Two adapters come in under one name, the first deleted before the second: its memory is back, and the second answers as it
// does on an engine that never knew the first.
class SameNameTest : public AdapterImportTest {
 protected:
  struct Served {
    Served(Store& store, const std::shared_ptr<const Model>& model)
        : slots(model->adapter_loader(), [&store](VersionId v) { return store.adapter_folder(v); }),
          engine(model, slots, {}, log),
          registry(store, slots, options()) {}
    RegistryOptions options() {
      RegistryOptions o;
      o.on_pinnable = [this](std::set<VersionId> v) { slots.set_pinnable(std::move(v)); };
      o.on_kept = [this](std::set<VersionId> v) { slots.set_kept(std::move(v)); };
      return o;
    }
    Status act(ManualAction action, VersionId version) {
      const auto done = registry.act({action, version, "test", "by hand", SessionId(), std::nullopt});
      return done.ok() ? Status() : done.status();
    }
    // Log-probabilities of a prompt and of greedy tokens behind it, under what serves.
    std::vector<float> answer() {
      Request r;
      r.prompt = {5, 6, 7, 8, 9, 10};
      r.max_tokens = 8;
      r.sampling.temperature = 0;
      r.ignore_stop_ids = true;
      r.score_prompt = true;
      auto stream = std::move(engine.submit(std::move(r))).value();
      const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(60);
      std::vector<float> out;
      while (const auto event = stream->next(soon)) {
        if (event->kind == TokenEvent::Kind::kEnd) break;
        out.push_back(event->token.lp_raw);
      }
      const auto started = stream->wait_started(soon);
      EXPECT_TRUE(started.ok());
      if (started.ok()) out.insert(out.end(), started->prompt_scores.begin(), started->prompt_scores.end());
      return out;
    }

    Log log;
    AdapterSlots slots;
    Engine engine;
    Registry registry;
  };
  VersionId import_mine(const char* which) {
    const auto got = bring_in({{"mine", std::string(SLUICE_TEST_DATA) + "/golden/" + which, ""}});
    EXPECT_TRUE(got.ok()) << got.status().message();
    return got.ok() ? got->front().version : VersionId();
  }
};

TEST_F(SameNameTest, LRA3_DeleteThenImportAnotherUnderTheSameName) {
  std::vector<float> first, second;
  {
    Served served(*store, system.model);
    ASSERT_TRUE(served.registry.start().ok());
    const std::vector<float> base = served.answer();
    const VersionId one = import_mine("tiny-lora");
    ASSERT_TRUE(served.act(ManualAction::kPromote, one).ok());
    first = served.answer();
    EXPECT_NE(first, base);
    ASSERT_TRUE(served.act(ManualAction::kRollback, kBaseVersion).ok());
    ASSERT_TRUE(served.registry.prune(one).ok());
    EXPECT_FALSE(served.slots.pinnable(one));
    EXPECT_THAT(served.slots.resident(), ::testing::IsEmpty());
    EXPECT_EQ(served.answer(), base);
    const VersionId other = import_mine("tiny-lora-patterns");
    EXPECT_NE(other, one) << "a number is never used again";
    ASSERT_TRUE(served.act(ManualAction::kPromote, other).ok());
    second = served.answer();
    EXPECT_NE(second, first);
    EXPECT_EQ(served.slots.resident(), std::vector<VersionId>{other});
  }
  Served cold(*store, system.model);
  ASSERT_TRUE(cold.registry.start().ok());
  EXPECT_EQ(cold.answer(), second) << "as on an engine that never knew the first";
}

}  // namespace
}  // namespace sluice
