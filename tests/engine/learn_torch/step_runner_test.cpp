// SPDX-License-Identifier: GPL-3.0-or-later
// Steps on the tiny model: against PEFT and torch (tests/oracle/make_trajectory_golden.py), and the traps of learning.md §6.
#include "learn_torch/step_runner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/learn/labelled.h"
#include "model/format/safetensors.h"
#include "model/transformer.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string data(const std::string& name) { return std::string(SLUICE_TEST_DATA) + "/" + name; }

std::shared_ptr<const Model> tiny() {
  Result<LoadedModel> loaded = load_model(data("tiny-llama.gguf"));
  EXPECT_TRUE(loaded.ok()) << loaded.status().message();
  return loaded->model;
}

std::unique_ptr<StepRunner> runner(int threads = 1) {
  StepRunnerOptions options;
  options.lora.rank = 4;
  options.lora.alpha = 8;
  options.threads = threads;
  auto made = make_step_runner(tiny(), options);
  EXPECT_TRUE(made.ok()) << made.status().message();
  return std::move(made).value();
}

LearnSettings settings() {
  LearnSettings s;
  s.optimiser.lr = 1e-3;
  s.optimiser.beta2 = 0.99;
  s.optimiser.warmup_steps = 0;
  s.loss.aggregation = Aggregation::kTokenMean;
  s.loss.kl_beta = 0.05;
  return s;
}

TrainBatch from_json(const json& samples) {
  std::vector<RecordRow> records;
  std::vector<PackItem> items;
  for (const json& j : samples) {
    RecordRow r;
    r.prompt_ids = j["prompt"].get<std::vector<std::int32_t>>();
    r.token_ids = j["answer"].get<std::vector<std::int32_t>>();
    r.lp_full = j["lp_full"].get<std::vector<float>>();
    r.temperature = j["tau"].get<float>();
    r.version = VersionId(1);
    records.push_back(std::move(r));
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    items.push_back({&records[i], samples[i]["advantage"].get<double>(), 1, samples[i]["age"].get<int>()});
  }
  return pack(items).value();
}

// Records of unequal lengths whose log-probs are those of the runner's head: ratio 1.
TrainBatch fresh_batch(StepRunner& head, int samples, double first_advantage = 1) {
  std::vector<RecordRow> records;
  std::vector<PackItem> items;
  for (int i = 0; i < samples; ++i) records.push_back(testing::served(i * 7, 2 + (i * 5) % 13, VersionId(1)));
  for (int i = 0; i < samples; ++i) items.push_back({&records[static_cast<std::size_t>(i)], i % 2 == 0 ? first_advantage : -first_advantage, 1, 0});
  TrainBatch batch = pack(items).value();
  batch.lp_full = head.log_probs(batch).value();
  return batch;
}

class StepRunnerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("step_runner_test." + RecordId::make().text);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string save(StepRunner& head, const std::string& name, const CheckpointNotes& notes = {}) {
    const std::string path = folder_ / name;
    fs::create_directories(path);
    const auto saved = head.save(path, notes);
    EXPECT_TRUE(saved.ok()) << saved.status().message();
    return path;
  }
  static std::string bytes(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  }
  // By name, the values of every factor.
  static std::map<std::string, std::vector<float>> factors(const std::string& folder) {
    const auto file = SafetensorsFile::open(folder + "/adapter_model.safetensors").value();
    std::map<std::string, std::vector<float>> out;
    for (const SafeTensor& t : file->tensors()) {
      std::vector<float>& values = out[t.name];
      values.resize(t.bytes.size() / sizeof(float));
      std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
    }
    return out;
  }
  static std::string adapter(const std::string& folder) { return bytes(folder + "/adapter_model.safetensors"); }

  // |got - want| / |want| of each tensor of the folder against "<prefix>.<name>" of the golden file.
  void expect_tensors(const std::string& folder, const std::string& prefix, double tolerance) {
    const auto got = SafetensorsFile::open(folder + "/adapter_model.safetensors").value();
    const auto want = SafetensorsFile::open(data("golden/trajectory.safetensors")).value();
    std::size_t compared = 0;
    for (const SafeTensor& tensor : got->tensors()) {
      const SafeTensor* reference = want->find(prefix + "." + tensor.name);
      ASSERT_NE(reference, nullptr) << tensor.name;
      const auto n = static_cast<std::size_t>(tensor.elements());
      std::vector<float> a(n), b(n);
      ASSERT_EQ(tensor.bytes.size(), reference->bytes.size());
      std::memcpy(a.data(), tensor.bytes.data(), tensor.bytes.size());
      std::memcpy(b.data(), reference->bytes.data(), reference->bytes.size());
      double difference = 0, norm = 0;
      for (std::size_t i = 0; i < n; ++i) {
        difference += (a[i] - b[i]) * (a[i] - b[i]);
        norm += b[i] * b[i];
      }
      EXPECT_LT(std::sqrt(difference / norm), tolerance) << prefix << " " << tensor.name;
      ++compared;
    }
    EXPECT_EQ(compared, 28u) << "two layers of seven linears, A and B";
  }

  fs::path folder_;
};

TEST_F(StepRunnerTest, TenStepsFollowPeftAndTorch) {
  const json golden = json::parse(std::ifstream(data("golden/trajectory.json")));
  auto head = runner();
  ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
  for (std::size_t k = 0; k < golden["batches"].size(); ++k) {
    const Result<StepStats> stats = head->step(from_json(golden["batches"][k]), settings());
    ASSERT_TRUE(stats.ok()) << stats.status().message();
    EXPECT_TRUE(stats->too_far.empty());
    const double loss = golden["steps"][k]["loss"], norm = golden["steps"][k]["grad_norm"];
    EXPECT_NEAR(stats->loss, loss, 1e-4 * std::max(std::abs(loss), 0.1)) << "step " << k + 1;
    EXPECT_NEAR(stats->grad_norm / norm, 1, 1e-4) << "step " << k + 1;
    if (k == 0) expect_tensors(save(*head, "one"), "step1", 1e-4);
  }
  expect_tensors(save(*head, "ten"), "step10", 1e-4);
}

TEST_F(StepRunnerTest, CuttingTheBatchChangesNothing) {
  std::vector<double> losses, norms;
  std::vector<std::vector<float>> after;
  for (int tokens : {100000, 40, 1}) {
    auto head = runner();
    ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
    LearnSettings s = settings();
    s.micro_batch_tokens = tokens;
    const TrainBatch batch = fresh_batch(*head, 16);
    const StepStats stats = head->step(batch, s).value();
    losses.push_back(stats.loss);
    norms.push_back(stats.grad_norm);
    after.push_back(head->log_probs(batch).value());
  }
  for (std::size_t i : {1u, 2u}) {
    EXPECT_NEAR(losses[i], losses[0], 1e-5 * std::abs(losses[0]) + 1e-7);
    EXPECT_NEAR(norms[i] / norms[0], 1, 1e-5);
    for (std::size_t t = 0; t < after[0].size(); ++t) EXPECT_NEAR(after[i][t], after[0][t], 1e-3);
  }
}

TEST_F(StepRunnerTest, ANewAdapterIsTheBaseAndBMovesFirst) {
  auto head = runner();
  const TrainBatch batch = fresh_batch(*head, 4);
  const auto tensors = [&](const std::string& name) { return factors(save(*head, name)); };
  const auto start = tensors("start");
  LearnSettings s = settings();
  const StepStats first = head->step(batch, s).value();
  EXPECT_NEAR(first.kl_base, 0, 1e-6);
  const auto one = tensors("one");
  head->step(batch, s).value();
  const auto two = tensors("two");
  for (const auto& [name, value] : start) {
    if (name.find("lora_A") != std::string::npos) {
      EXPECT_EQ(one.at(name), value) << name << ": B = 0, so A has no gradient";
      EXPECT_NE(two.at(name), one.at(name)) << name;
    } else {
      EXPECT_NE(one.at(name), value) << name;
    }
  }
}

TEST_F(StepRunnerTest, AnswersOfTheBaseBringTheirReference) {
  auto base = runner();
  TrainBatch batch = fresh_batch(*base, 8);  // scored by the base
  std::vector<StepStats> stats;
  std::vector<std::vector<float>> after;
  for (std::uint8_t from_base : {0, 1}) {
    auto head = runner();
    ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
    batch.from_base.assign(8, from_base);
    LearnSettings s = settings();
    s.loss.kl_beta = 1;
    stats.push_back(head->step(batch, s).value());
    after.push_back(head->log_probs(batch).value());
  }
  EXPECT_GT(std::abs(stats[0].kl_base), 1e-3);
  EXPECT_NEAR(stats[1].kl_base, stats[0].kl_base, 1e-5);
  EXPECT_NEAR(stats[1].grad_norm / stats[0].grad_norm, 1, 1e-5);
  for (std::size_t t = 0; t < after[0].size(); ++t) EXPECT_NEAR(after[1][t], after[0][t], 1e-3);
  EXPECT_GT(stats[0].reference_seconds, 0);
  EXPECT_EQ(stats[1].reference_seconds, 0) << "no pass of the base";
}

// Measured from whoever sampled: the recorded log-probabilities are the reference, also of an adapter's answers.
TEST_F(StepRunnerTest, TheSamplerAsReferenceNeedsNoOtherPass) {
  auto head = runner();
  ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
  TrainBatch batch = fresh_batch(*head, 8);  // scored by the adapter that it goes on from
  LearnSettings s = settings();
  s.loss.kl_beta = 1;
  s.loss.kl_reference = KlReference::kSampler;
  for (int k = 0; k < 3; ++k) {
    const std::vector<float> now = head->log_probs(batch).value();
    double gap = 0;
    for (std::size_t t = 0; t < now.size(); ++t) gap += now[t] - batch.lp_full[t];
    const StepStats stats = head->step(batch, s).value();
    EXPECT_NEAR(stats.kl_base, gap / static_cast<double>(now.size()), 1e-5) << k;
    EXPECT_EQ(stats.reference_seconds, 0);
    EXPECT_EQ(std::abs(stats.kl_base) < 1e-6, k == 0) << stats.kl_base;
  }
  // The pull is towards the sampler: with nothing to learn, a head that moved comes back to it.
  const auto distance = [&] {
    const std::vector<float> now = head->log_probs(batch).value();
    double sum = 0;
    for (std::size_t t = 0; t < now.size(); ++t) sum += std::abs(now[t] - batch.lp_full[t]);
    return sum;
  };
  const double far = distance();
  std::fill(batch.advantage.begin(), batch.advantage.end(), 0.0f);
  for (int k = 0; k < 10; ++k) head->step(batch, s).value();
  EXPECT_LT(distance(), far / 2);
}

TEST_F(StepRunnerTest, AcceptedTokensBecomeLikelierAndRejectedOnesLess) {
  auto head = runner();
  const TrainBatch batch = fresh_batch(*head, 4);
  LearnSettings s = settings();
  s.loss.kl_beta = 0;
  for (int k = 0; k < 3; ++k) ASSERT_TRUE(head->step(batch, s).ok());
  const std::vector<float> after = head->log_probs(batch).value();
  for (std::int64_t i = 0; i < 4; ++i) {
    double change = 0;
    for (auto t = batch.resp_start[i]; t < batch.resp_start[i + 1]; ++t) change += after[t] - batch.lp_full[t];
    EXPECT_GT(change * batch.advantage[batch.resp_start[i]], 0) << i;
  }
}

TEST_F(StepRunnerTest, FreshRatiosAreOneAtEveryTemperature) {
  auto head = runner();
  ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
  TrainBatch batch = fresh_batch(*head, 4);
  batch.tau = {0.3f, 0.6f, 1.0f, 1.5f};
  batch.lp_full = head->log_probs(batch).value();
  const StepStats stats = head->step(batch, settings()).value();
  EXPECT_EQ(stats.fresh_outside, 0);
  EXPECT_EQ(stats.fresh_tokens, batch.response_tokens());
  EXPECT_EQ(stats.clip_fraction, 0);
  const StepStats again = head->step(batch, settings()).value();
  EXPECT_NE(again.loss, stats.loss) << "the sampler's log-probs are frozen with the batch";
}

TEST_F(StepRunnerTest, StopAndGoOnIsBitEqual) {
  auto straight = runner();
  const TrainBatch batch = fresh_batch(*straight, 6);
  for (int k = 0; k < 4; ++k) ASSERT_TRUE(straight->step(batch, settings()).ok());
  auto first = runner();
  for (int k = 0; k < 2; ++k) ASSERT_TRUE(first->step(batch, settings()).ok());
  const std::string half = save(*first, "half", {{"baseline", "x"}});
  first.reset();
  auto second = runner();
  EXPECT_EQ(second->load(half).value().at("baseline"), "x");
  for (int k = 0; k < 2; ++k) ASSERT_TRUE(second->step(batch, settings()).ok());
  EXPECT_EQ(adapter(save(*second, "b")), adapter(save(*straight, "a")));
  EXPECT_EQ(bytes(folder_ / "a" / "trainer.safetensors"), bytes(folder_ / "b" / "trainer.safetensors"));
}

TEST_F(StepRunnerTest, ASnapshotComesBackToTheBit) {
  auto head = runner();
  const TrainBatch batch = fresh_batch(*head, 4);
  ASSERT_TRUE(head->step(batch, settings()).ok());
  const auto kept = head->snapshot().value();
  const std::string before = adapter(save(*head, "before"));
  ASSERT_TRUE(head->reset_to_base(9).ok());
  ASSERT_TRUE(head->step(batch, settings()).ok());
  ASSERT_TRUE(head->restore(*kept).ok());
  EXPECT_EQ(adapter(save(*head, "after")), before);
  ASSERT_TRUE(head->step(batch, settings()).ok());
  EXPECT_NE(adapter(save(*head, "moved")), before) << "a restored head trains on";
}

TEST_F(StepRunnerTest, ASkippedStepNamesItsTensorsAndMovesNothing) {
  auto head = runner();
  ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
  TrainBatch batch = fresh_batch(*head, 4);
  batch.advantage[0] = std::numeric_limits<float>::infinity();
  const std::string before = adapter(save(*head, "before"));
  const StepStats stats = head->step(batch, settings()).value();
  EXPECT_TRUE(stats.skipped);
  EXPECT_NE(stats.skipped_tensors.find("model.layers.0.self_attn.q_proj"), std::string::npos);
  EXPECT_EQ(adapter(save(*head, "after")), before);
}

TEST_F(StepRunnerTest, AFarStaleSampleAddsNothing) {
  auto head = runner();
  ASSERT_TRUE(head->load(data("golden/tiny-lora")).ok());
  TrainBatch batch = fresh_batch(*head, 1);
  batch.age = {2};
  for (float& lp : batch.lp_full) lp -= 1;  // mean ratio e
  const StepStats stats = head->step(batch, settings()).value();
  EXPECT_EQ(stats.too_far, (std::vector<std::int64_t>{0}));
  EXPECT_EQ(stats.grad_norm, 0);
}

TEST_F(StepRunnerTest, TokensOutsideTheVocabularyAreAnErrorAndTheHeadStays) {
  auto head = runner();
  TrainBatch batch = fresh_batch(*head, 2);
  const std::string before = adapter(save(*head, "before"));
  batch.ids[1] = 320;
  EXPECT_FALSE(head->step(batch, settings()).ok());
  EXPECT_EQ(adapter(save(*head, "after")), before);
}

// Half of a line's way: of every weight's change from the base, and of the factors' from another adapter.
TEST_F(StepRunnerTest, ShrinkingGoesBackPartOfTheWay) {
  auto head = runner();
  const TrainBatch batch = fresh_batch(*head, 4);
  for (int i = 0; i < 3; ++i) head->step(batch, settings()).value();
  const std::string near = save(*head, "near");
  ASSERT_TRUE(head->shrink("", 0.5).ok());
  const auto whole = factors(near), half = factors(save(*head, "half"));
  for (const auto& [name, values] : whole) {
    const float share = name.find("lora_B") != std::string::npos ? 0.5f : 1.0f;
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(half.at(name)[i], share * values[i]) << name;
  }
  EXPECT_EQ(bytes(folder_ / "half" / "trainer.safetensors"), bytes(folder_ / "near" / "trainer.safetensors")) << "moments stay";

  ASSERT_TRUE(head->load(near).ok());
  for (int i = 0; i < 3; ++i) head->step(batch, settings()).value();
  const auto far = factors(save(*head, "far"));
  ASSERT_TRUE(head->shrink(near, 0.25).ok());
  const auto between = factors(save(*head, "between"));
  for (const auto& [name, values] : whole) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(between.at(name)[i], values[i] + 0.25f * (far.at(name)[i] - values[i]), 1e-7) << name;
    }
  }
  EXPECT_TRUE(head->step(batch, settings()).ok()) << "and it still learns";

  StepRunnerOptions other;
  other.lora.rank = 2;
  auto narrow = std::move(make_step_runner(tiny(), other)).value();
  const std::string before = adapter(save(*narrow, "before"));
  const Status refused = narrow->shrink(near, 0.5);
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.message().find(near), std::string::npos);
  EXPECT_EQ(narrow->shrink(folder_ / "nothing", 0.5).code(), Code::kNotFound);
  EXPECT_EQ(adapter(save(*narrow, "after")), before);
}

TEST_F(StepRunnerTest, AFolderOfAnotherShapeIsRefused) {
  auto head = runner();
  EXPECT_EQ(head->load(folder_ / "nothing").code(), Code::kNotFound);
  const std::string before = adapter(save(*head, "before"));
  EXPECT_EQ(adapter(save(*head, "after")), before);
}

TEST_F(StepRunnerTest, AForeignModelCannotLearn) {
  class Foreign final : public Model {
   public:
    const ModelInfo& info() const override { return info_; }
    std::unique_ptr<ModelContext> make_context(const ContextOptions&) const override { return nullptr; }
    const AdapterLoader& adapter_loader() const override { std::abort(); }

   private:
    ModelInfo info_;
  };
  EXPECT_EQ(make_step_runner(std::make_shared<Foreign>(), {}).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace sluice
