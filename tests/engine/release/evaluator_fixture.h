// SPDX-License-Identifier: GPL-3.0-or-later
// An evaluator over a real store and registry whose answers come from a formula.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/seeds.h"
#include "release/evaluator.h"
#include "release/evidence.h"
#include "release_fixture.h"

namespace sluice::testing {

inline SteadyTime soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(60); }

// A share of prompts, fixed by seed, version and prompt, is answered well; every version writes its own words.
class FormulaAnswers final : public AnswerMaker {
 public:
  explicit FormulaAnswers(Store& store) : store_(store) {}

  std::map<VersionId, int> percent = {{kBaseVersion, 30}};  // accepted; protected_percent likewise
  std::map<VersionId, int> protected_percent;               // 100 where absent
  std::function<Status(VersionId, const TaskPrompt&)> on_start;
  std::map<VersionId, double> kl;                           // lp of a version's answers is 0, others see -kl
  bool all_alike = false;                                   // every version writes the same answer

  Result<std::unique_ptr<PendingAnswer>> start(const VersionPass& pass, const TaskPrompt& prompt, std::uint64_t seed,
                                               Purpose purpose, const std::function<bool()>&) override {
    ++started[{pass.version(), purpose}];
    if (on_start) {
      const Status status = on_start(pass.version(), prompt);
      if (!status.ok()) return std::unique_ptr<PendingAnswer>(std::make_unique<Ready>(status));
    }
    return std::unique_ptr<PendingAnswer>(std::make_unique<Ready>(answer(pass.version(), prompt, seed, purpose)));
  }
  Result<std::vector<float>> score(const VersionPass& pass, const ShadowAnswer& answer) override {
    const double kl_here = kl.contains(pass.version()) ? kl[pass.version()] : 0.1;
    return std::vector<float>(answer.token_ids.size(), static_cast<float>(-kl_here));
  }

  std::map<std::pair<VersionId, Purpose>, int> started;  // gate thread only; read when it is idle

 private:
  class Ready final : public PendingAnswer {
   public:
    explicit Ready(Result<ShadowAnswer> answer) : answer_(std::move(answer)) {}
    std::optional<Result<ShadowAnswer>> wait(SteadyTime) override { return answer_; }

   private:
    Result<ShadowAnswer> answer_;
  };

  static int lot(VersionId version, const TaskPrompt& prompt, std::uint64_t seed, const char* what) {
    return static_cast<int>(SplitMix64(prompt_seed(seed + static_cast<std::uint64_t>(version.value), prompt.id + what)).below(100));
  }

  Result<ShadowAnswer> answer(VersionId version, const TaskPrompt& prompt, std::uint64_t seed, Purpose purpose) {
    const int share = percent.contains(version) ? percent[version] : 50;
    const int kept = protected_percent.contains(version) ? protected_percent[version] : 100;
    ShadowAnswer out;
    out.text = lot(version, prompt, seed, "main") < share ? "good" : "bad";
    if (lot(version, prompt, seed, "protected") < kept) out.text += " topic";
    if (!all_alike) out.text += " by v" + std::to_string(version.value) + " on " + prompt.id;
    out.finished = true;
    out.prompt_ids = {1, 2, 3};
    for (const char c : out.text) out.token_ids.push_back(c);
    out.lp_full.assign(out.token_ids.size(), 0.0f);
    RecordRow row;
    row.id = RecordId::make();
    row.version = version;
    row.purpose = purpose;
    row.split = Split::kHeldOut;
    row.completion_text = out.text;
    row.token_ids = out.token_ids;
    row.finish_reason = "stop";
    const auto stored = store_.add_record(row);
    if (!stored.ok()) return stored.status();
    out.record = stored->id;
    return out;
  }

  Store& store_;
};

inline EvaluatorOptions evaluator_options() {
  EvaluatorOptions options;
  options.seed = 5;
  for (int i = 0; i < 200; ++i) {
    const std::string id = "held/" + std::to_string(i);
    options.pool.push_back({id, "question " + std::to_string(i), "topic", {"topic"}, id});
  }
  for (int i = 0; i < 32; ++i) {
    const std::string id = "probe/" + std::to_string(i);
    options.probes.push_back({id, "probe " + std::to_string(i), "topic", {"topic"}, id});
  }
  options.main = {"user", "", {{RuleKind::kNoWords, 0, 0, {"bad"}}}};
  options.protected_metric = {"names the topic", "", {{RuleKind::kNamesTopic, 0, 0, {}}}};
  return options;
}

class EvaluatorTest : public ::testing::Test {
 protected:
  EvaluatorTest() { set_up(); }
  // `score`: what training says of a probe answer, whose own log-probs are all 0.
  void train_with(std::function<Result<std::vector<float>>(VersionId, const ShadowAnswer&)> score) {
    trainer_score = std::move(score);
    evaluator.reset();
    make_evaluator();
  }

  void set_up() {
    answers = std::make_unique<FormulaAnswers>(*w.store);
    make_evaluator();
  }

  void make_evaluator() {
    EvaluatorOptions options = evaluator_options();
    options.trainer_score = trainer_score;
    options.on_decision = [this](const DecisionRow& row) { decided.push_back(row); };
    evaluator = std::make_unique<Evaluator>(*w.store, *w.registry, *answers, options);
  }

  void use(const GateSettings& settings) { ASSERT_TRUE(store_gate_settings(*w.store, settings, "test", "a test").ok()); }
  void run() {
    evaluator->start();
    ASSERT_TRUE(evaluator->wait_idle(soon()));
  }
  // A new process: what was in memory is gone.
  void restart() {
    evaluator.reset();
    answers.reset();
    ASSERT_TRUE(w.reopen().ok());
    set_up();
  }

  Workspace w;
  std::unique_ptr<FormulaAnswers> answers;
  std::unique_ptr<Evaluator> evaluator;
  std::function<Result<std::vector<float>>(VersionId, const ShadowAnswer&)> trainer_score;
  std::vector<DecisionRow> decided;  // gate thread; read when idle
};

}  // namespace sluice::testing
