// SPDX-License-Identifier: GPL-3.0-or-later
// On a real model: 50 swaps with streams in flight at every one, each text compared with the version on its receipt; and a
// short request behind a long prompt. Each adapter is made so that the model can only say one word, a different one per
// version: in the last layer but one, two neurons take a random direction of the input with both signs, so that one of
// them is large whatever the input, and write the word's own embedding, far larger than all else, into the residual stream.
// Run by swap_50_real.sh. SLUICE_MODEL names the model file, SLUICE_SWAPS the number of swaps.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cmath>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <thread>

#include "chat/completion.h"
#include "model/kernels/dequant.h"
#include "model/peft_folder.h"
#include "model/sampler.h"
#include "model/weights.h"
#include "runtime/load.h"
#include "serve/engine.h"
#include "support/temp_folder.h"
#include "support/test_store.h"

namespace sluice::testing {
namespace {

constexpr int kClients = 6;

std::string model_path() {
  const char* named = std::getenv("SLUICE_MODEL");
  return named ? named : find_bundled_model();
}

int swaps() {
  const char* text = std::getenv("SLUICE_SWAPS");
  return text ? std::max(1, std::atoi(text)) : 50;
}

SteadyTime far() { return std::chrono::steady_clock::now() + std::chrono::seconds(120); }

// The model with the time of each step written down, the engine's thread writing.
class TimedModel final : public Model {
 public:
  explicit TimedModel(std::shared_ptr<const Model> inner) : inner_(std::move(inner)) {}
  const ModelInfo& info() const override { return inner_->info(); }
  const AdapterLoader& adapter_loader() const override { return inner_->adapter_loader(); }
  std::unique_ptr<ModelContext> make_context(const ContextOptions& options) const override {
    return std::make_unique<Context>(inner_->make_context(options), *this);
  }
  std::vector<double> step_ms() const {
    MutexLock lock(mu_);
    return step_ms_;
  }

 private:
  class Context final : public ModelContext {
   public:
    Context(std::unique_ptr<ModelContext> inner, const TimedModel& model) : inner_(std::move(inner)), model_(model) {}
    Result<OpenedSequence> open(std::shared_ptr<const Adapter> a, const std::vector<TokenId>& p, OpenOptions o) override {
      return inner_->open(std::move(a), p, o);
    }
    Status reserve(SequenceHandle s, int tokens) override { return inner_->reserve(s, tokens); }
    void close(SequenceHandle s, bool keep) override { inner_->close(s, keep); }
    Status step(const StepInput& input, StepOutput& output) override {
      const auto begin = std::chrono::steady_clock::now();
      Status done = inner_->step(input, output);
      MutexLock lock(model_.mu_);
      model_.step_ms_.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count());
      return done;
    }
    int exact_rows() const override { return inner_->exact_rows(); }
    void flush() override { inner_->flush(); }
    KvUsage usage() const override { return inner_->usage(); }
    void limit_threads(int threads) override { inner_->limit_threads(threads); }

   private:
    const std::unique_ptr<ModelContext> inner_;
    const TimedModel& model_;
  };

  const std::shared_ptr<const Model> inner_;
  mutable Mutex mu_;
  mutable std::vector<double> step_ms_ SLUICE_GUARDED_BY(mu_);
};

struct Word {
  TokenId token = 0;
  std::string text;
  std::vector<float> direction;  // [hidden]: with this as the residual stream the model says the word
};

// Embeddings of all tokens less their mean, and the words that a residual stream of their own embedding brings out.
class WordFinder {
 public:
  WordFinder(const TransformerWeights& weights, const Tokenizer& tokenizer) : w_(weights), tokenizer_(tokenizer) {
    const std::int64_t hidden = w_.config.hidden;
    head_.resize(static_cast<std::size_t>(w_.head.rows * hidden));
    mean_.assign(static_cast<std::size_t>(hidden), 0);
    for (std::int64_t t = 0; t < w_.head.rows; ++t) {
      float* row = head_.data() + t * hidden;
      dequantize_row(w_.head.type, w_.head.data + t * row_bytes(w_.head.type, hidden), hidden, row);
      for (std::int64_t i = 0; i < hidden; ++i) mean_[static_cast<std::size_t>(i)] += row[i] / static_cast<float>(w_.head.rows);
    }
  }

  std::vector<Word> find(std::size_t wanted) const {
    std::vector<Word> words;
    for (TokenId t = 500; t < w_.head.rows && words.size() < wanted; t += 37) {
      const std::vector<TokenId> one{t};
      const std::string text = tokenizer_.decode(one);
      if (text.size() < 5 || text[0] != ' ' || !std::all_of(text.begin() + 1, text.end(), [](char c) { return std::islower(static_cast<unsigned char>(c)); })) continue;
      if (auto direction = direction_of(t)) words.push_back({t, text, std::move(*direction)});
    }
    return words;
  }

 private:
  // The final norm multiplies by its weights, so they are divided out here.
  std::optional<std::vector<float>> direction_of(TokenId t) const {
    const std::size_t hidden = mean_.size();
    const float* own = head_.data() + static_cast<std::size_t>(t) * hidden;
    std::vector<float> normed(hidden), direction(hidden);
    double square = 0;
    for (std::size_t i = 0; i < hidden; ++i) {
      normed[i] = own[i] - mean_[i];
      direction[i] = std::abs(w_.final_norm[i]) > 1e-3f ? normed[i] / w_.final_norm[i] : 0;
      square += direction[i] * direction[i];
    }
    for (float& x : direction) x = static_cast<float>(x / std::sqrt(square));
    const auto score = [&](std::int64_t other) {
      return std::inner_product(normed.begin(), normed.end(), head_.data() + static_cast<std::size_t>(other) * hidden, 0.0f);
    };
    const float mine = score(t), margin = 0.2f * std::abs(mine);
    for (std::int64_t other = 0; other < w_.head.rows; ++other) {
      if (other != t && score(other) > mine - margin) return std::nullopt;
    }
    return direction;
  }

  const TransformerWeights& w_;
  const Tokenizer& tokenizer_;
  std::vector<float> head_, mean_;
};

LoraData adapter_saying(const Word& word, const ModelConfig& config) {
  constexpr float kGain = 1e4f, kLoud = 1e3f;
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  LoraData data;
  data.config.rank = 1;
  data.config.alpha = 1;
  data.config.targets = {Linear::kGate, Linear::kUp, Linear::kDown};
  for (const Linear linear : data.config.targets) {
    LoraFactors f;
    f.layer = config.layers - 2;
    f.linear = linear;
    f.rank = 1;
    f.alpha = 1;
    f.scale = 1;
    f.a.assign(size(config.linear_cols(linear)), 0);
    f.b.assign(size(config.linear_rows(linear)), 0);
    if (linear == Linear::kDown) {
      f.a[0] = f.a[1] = 1;
      for (std::size_t i = 0; i < f.b.size(); ++i) f.b[i] = kLoud * word.direction[i];
    } else {
      for (std::size_t i = 0; i < f.a.size(); ++i) f.a[i] = static_cast<float>(counter_uniform(7, i) - 0.5) * 0.1f;
      f.b[0] = kGain;
      f.b[1] = -kGain;
    }
    data.modules.push_back(std::move(f));
  }
  return data;
}

class RealSystem {
 public:
  explicit RealSystem(EngineOptions options = {}) {
    Result<LoadedSystem> loaded = load_system(model_path());
    if (!loaded.ok()) {
      ADD_FAILURE() << loaded.status().message();
      std::exit(1);
    }
    system = std::move(*loaded);
    model = std::make_shared<TimedModel>(system.model);
    slots = std::make_unique<AdapterSlots>(model->adapter_loader(), [this](VersionId v) { return folder_of(v); });
    options.context.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    engine = std::make_unique<Engine>(model, *slots, options, log);
    chat = std::make_unique<CompletionService>(*engine, system.tokenizer, system.chat_template, &*store, TestStore::name_of,
                                               Clock::system());
  }
  std::string folder_of(VersionId v) const { return folder.path() + "/" + std::to_string(v.value); }
  void write(VersionId version, const Word& word) {
    std::filesystem::create_directories(folder_of(version));
    const auto weights = model_weights(*system.model);
    const auto hash = write_peft_folder(folder_of(version), adapter_saying(word, weights->config), weights->config, "base");
    EXPECT_TRUE(hash.ok()) << hash.status().message();
  }

  TempFolder folder;
  Log log;
  TestStore store;
  LoadedSystem system;
  std::shared_ptr<TimedModel> model;
  std::unique_ptr<AdapterSlots> slots;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<CompletionService> chat;
};

CompletionRequest ask(const std::string& prompt, int max_tokens) {
  CompletionRequest r;
  r.prompt = prompt;
  r.max_tokens = max_tokens;
  r.ignore_eos = true;
  r.sampling.temperature = 0;
  r.route = "acceptance";
  return r;
}

std::string repeated(const std::string& word, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += word;
  return text;
}

struct Tally {
  std::atomic<int> answers{0}, failed{0}, wrong{0}, crossing{0}, base_wrong{0};
  std::atomic<int> published{0};
};

// `words[v]` belongs to version v. Every fifth request asks for the bare base, whose text no adapter may change (LRA-11).
void client(RealSystem& t, int number, const std::vector<Word>& words, const std::string& base_text, const std::atomic<bool>& end,
            Tally& tally) {
  for (int i = 0; !end; ++i) {
    const bool base = i % 5 == 4;
    const int budget = base ? 16 : 12 + (i * 7 + number) % 13;
    CompletionRequest r = ask(base ? "The capital of France is" : "Client " + std::to_string(number) + " asks for the " +
                                                                      std::to_string(i) + ". time: what is the weather like?",
                              budget);
    if (base) r.adapter = AdapterChoice::base();
    const int before = tally.published;
    auto exchange = t.chat->start(std::move(r));
    if (!exchange.ok()) {
      ++tally.failed;
      continue;
    }
    std::string text;
    FinishReason finish = FinishReason::kError;
    while (!(*exchange)->done()) {
      const auto event = (*exchange)->next(far());
      if (!event) break;
      if (event->kind == TextEvent::Kind::kText) text += event->text;
      else finish = event->finish;
    }
    if (finish != FinishReason::kLength) ++tally.failed;
    const VersionId version = (*exchange)->version();
    const auto row = t.store->record((*exchange)->record_id());
    if (!row || row->version != version || row->completion_text != text) ++tally.wrong;
    if (base) {
      if (version != kBaseVersion || text != base_text) ++tally.base_wrong;
    } else if (text != repeated(words[static_cast<std::size_t>(version.value)].text, budget)) {
      ++tally.wrong;
      std::printf("version %lld said '%s'\n", static_cast<long long>(version.value), text.c_str());
    }
    if (before != tally.published) ++tally.crossing;
    ++tally.answers;
  }
}

TEST(Swap50Real, EveryTextIsOfTheVersionOnItsReceipt) {
  RealSystem t;
  const int count = swaps();
  const auto weights = model_weights(*t.system.model);
  std::vector<Word> words = WordFinder(*weights, *t.system.tokenizer).find(static_cast<std::size_t>(count) + 1);
  ASSERT_EQ(words.size(), static_cast<std::size_t>(count) + 1) << "the vocabulary has too few plain words";
  words.insert(words.begin(), Word());  // versions count from 1
  std::vector<VersionId> versions;
  for (int i = 0; i <= count; ++i) {
    versions.push_back(t.store.new_version());
    ASSERT_EQ(versions.back().value, i + 1);
    t.write(versions.back(), words[static_cast<std::size_t>(i) + 1]);
  }
  CompletionRequest base = ask("The capital of France is", 16);
  base.adapter = AdapterChoice::base();
  const auto base_text = t.chat->complete(std::move(base));
  ASSERT_TRUE(base_text.ok());
  ASSERT_TRUE(t.slots->publish(t.store.promote(versions[0])).ok());

  std::atomic<bool> end = false;
  Tally tally;
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i) clients.emplace_back([&, i] { client(t, i, words, base_text->text, end, tally); });
  int without_streams = 0;
  std::int64_t slowest_us = 0;
  for (int i = 1; i <= count; ++i) {
    const VersionId version = versions[static_cast<std::size_t>(i)];
    const CommittedDecision decision = t.store.promote(version);
    EXPECT_TRUE(t.slots->prepare(version, "").ok());  // loads, off the engine's thread
    const std::int64_t before = t.engine->stats().generated_tokens;  // until the streams have moved on since the last swap
    while (t.engine->stats().generated_tokens < before + 8 || t.engine->stats().running < 2) std::this_thread::yield();
    if (t.engine->stats().running < 1) ++without_streams;
    const Result<std::int64_t> micros = t.slots->publish(decision);
    ASSERT_TRUE(micros.ok()) << micros.status().message();
    ++tally.published;
    t.slots->release(version);
    slowest_us = std::max(slowest_us, *micros);
    const auto after = t.chat->complete(ask("Right after the swap", 6));
    ASSERT_TRUE(after.ok()) << after.status().message();
    EXPECT_EQ(after->version, version);
    EXPECT_EQ(after->text, repeated(words[static_cast<std::size_t>(i) + 1].text, 6));
  }
  end = true;
  for (std::thread& c : clients) c.join();
  EXPECT_EQ(without_streams, 0);
  EXPECT_EQ(tally.failed, 0);
  EXPECT_EQ(tally.wrong, 0);
  EXPECT_EQ(tally.base_wrong, 0);
  EXPECT_GE(tally.crossing, count) << "too few answers were under way while a swap happened";
  EXPECT_TRUE(t.store->verify().empty());
  std::printf("%d swaps, %d answers, %d of them with a swap under way, slowest publish %lld us, failed %d, wrong %d\n", count,
              tally.answers.load(), tally.crossing.load(), static_cast<long long>(slowest_us), tally.failed.load(),
              tally.wrong.load() + tally.base_wrong.load());
}

// No timing decides here; the step count does. The times are printed beside their targets.
TEST(FairnessReal, AShortRequestBehindALongPromptBeginsWithinThreeSteps) {
  RealSystem t;
  std::vector<TokenId> text;
  for (int i = 0; text.size() < 2200; ++i) {
    const auto more = t.system.tokenizer->encode(" Paragraph " + std::to_string(i) + " of a long report on rivers and bridges.");
    ASSERT_TRUE(more.ok());
    text.insert(text.end(), more->begin(), more->end());
  }
  Request warm;
  warm.prompt.assign(text.begin() + 1000, text.begin() + 1300);
  warm.max_tokens = 4;
  Result<ResponseHandle> first = t.engine->submit(warm);
  ASSERT_TRUE(first.ok());
  while ((*first)->next(far())->kind != TokenEvent::Kind::kEnd) {
  }
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(t.engine->flush().ok());
    const std::size_t steps_before = t.model->step_ms().size();
    Request wide, small;
    wide.prompt.assign(text.begin(), text.begin() + 2000);
    wide.max_tokens = 4;
    small.prompt.assign(text.begin() + 2100 + round, text.begin() + 2140 + round);
    small.max_tokens = 4;
    Result<ResponseHandle> big = t.engine->submit(wide);
    ASSERT_TRUE(big.ok());
    while (t.model->step_ms().size() < steps_before + 3) std::this_thread::yield();
    const std::size_t asked = t.model->step_ms().size();
    const auto begin = std::chrono::steady_clock::now();
    Result<ResponseHandle> quick = t.engine->submit(small);
    ASSERT_TRUE(quick.ok());
    ASSERT_TRUE((*quick)->next(far()).has_value());
    const double first_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    const std::size_t steps = t.model->step_ms().size() - asked;
    while ((*big)->next(far())->kind != TokenEvent::Kind::kEnd) {
    }
    const std::vector<double> all = t.model->step_ms();
    const double longest = *std::max_element(all.begin() + static_cast<std::ptrdiff_t>(steps_before), all.end());
    EXPECT_LE(steps, 3u);
    std::printf("round %d: first token of the short one after %zu steps, %.0f ms; longest step %.0f ms (target 150); "
                "the long prompt took %zu steps, %lld us to its first token\n",
                round, steps, first_ms, longest, all.size() - steps_before,
                static_cast<long long>((*big)->timings().prefill_us));
  }
}

}  // namespace
}  // namespace sluice::testing
