// SPDX-License-Identifier: GPL-3.0-or-later
// Adapters of other programs brought in: candidates with files, all or none, never one of another base.
#include "runtime/adapter_import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "engine/store/store_fixture.h"
#include "learn_torch/step_runner.h"
#include "runtime/load.h"

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

}  // namespace
}  // namespace sluice
