// SPDX-License-Identifier: GPL-3.0-or-later
// A deterministic Model whose text proves which adapter version made it, for tests of what stands above the model.
//
// Tokens are bytes (ids 0..255) and three specials. By its formula, version 17 answers "v17k v17d v17x ...": each letter is a
// hash of the version and of every token before it, so a wrong prompt, a lost token or a foreign cache entry shows as well
// (fake_answer() computes what must come). FakeModelOptions replaces the formula by texts, blocks or fails steps, and makes
// logits non-finite. tests/support/text_fixture.h has the tokenizer and template that fit.
//
// A FakeModel is immutable and may be shared; its functions are called on the thread that calls the model. A context checks
// that one thread uses it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.h"
#include "model_api/model.h"

namespace sluice::testing {

inline constexpr TokenId kFakeTurnStart = 256;  // <|im_start|>
inline constexpr TokenId kFakeEos = 257;        // <|im_end|>, ends an answer
inline constexpr TokenId kFakeEndOfText = 258;  // <|endoftext|>, ends an answer
inline constexpr int kFakeVocab = 259;

// One step as a hook sees it.
struct FakeStep {
  std::int64_t number = 0;  // from 1
  int prefill_tokens = 0;   // fed by items of more than one token or without a sample before
  int decode_items = 0;
  int threads = 0;                  // that may work
  std::vector<VersionId> versions;  // one per item
};

struct FakeModelOptions {
  int context_length = 512;
  // Text that `version` answers this prompt with, then kFakeEos; nullopt = the formula.
  std::function<std::optional<std::string>(VersionId version, const std::vector<TokenId>& prompt)> answer;
  // At the begin of each step; may block (StepGate) or throw. A failed status fails the step.
  std::function<Status(const FakeStep&)> on_step;
  // True: this draw has a non-finite logit.
  std::function<bool(VersionId version, const std::vector<TokenId>& prompt, std::size_t drawn)> not_finite;
  // At the begin of each adapter load; may block. A failed status fails the load.
  std::function<Status(VersionId)> on_load;
  // Replaces the log-prob that scoring reports for `target` after `before` (all tokens before it).
  std::function<float(VersionId, const std::vector<TokenId>& before, TokenId target)> score;
};

class FakeModel final : public Model {
 public:
  static std::shared_ptr<const FakeModel> make(FakeModelOptions options = {});

  const ModelInfo& info() const override { return info_; }
  std::unique_ptr<ModelContext> make_context(const ContextOptions& options) const override;
  const AdapterLoader& adapter_loader() const override { return *loader_; }

  int live_adapters() const { return live_adapters_->load(); }  // loaded and not yet dead
  int loads() const { return loads_->load(); }                  // since the begin

 private:
  explicit FakeModel(FakeModelOptions options);

  FakeModelOptions options_;
  ModelInfo info_;
  std::shared_ptr<std::atomic<int>> live_adapters_ = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<int>> loads_ = std::make_shared<std::atomic<int>>(0);
  std::unique_ptr<AdapterLoader> loader_;
};

// A folder the fake loader accepts for any version: one small file. Real folders hold another; loading one of those, a
// missing folder, or a damaged file fails.
void write_fake_adapter(const std::string& folder, std::int64_t bytes = 1000, int rank = 4);

std::vector<TokenId> fake_tokens(std::string_view text);             // bytes
std::string fake_text(const std::vector<TokenId>& ids);              // specials left out

// What the formula answers: `count` tokens after `prompt`. At temperature 0 the seed does not matter.
std::vector<TokenId> fake_answer(VersionId version, const std::vector<TokenId>& prompt, int count,
                                 float temperature = 0, std::uint64_t seed = 0);
// The one version whose marks stand in a text of the formula; empty when there is none or more than one.
std::optional<VersionId> fake_version_of(std::string_view text);

// Lets a test say how many steps may run: put `[&gate](const FakeStep&) { return gate.pass(); }` in on_step.
class StepGate {
 public:
  explicit StepGate(std::int64_t allowed = 0) : allowed_(allowed) {}

  Status pass();                            // the model's side: waits for leave
  void allow(std::int64_t steps);           // this many more
  void allow_begun();                       // those that have begun, none of the later ones
  void open();                              // no limit from now on
  void wait_arrived(std::int64_t steps);    // until so many steps have begun (whether or not they had to wait)
  std::int64_t arrived();                   // steps begun so far

 private:
  Mutex mu_;
  CondVar changed_;
  std::int64_t allowed_ SLUICE_GUARDED_BY(mu_);
  std::int64_t arrived_ SLUICE_GUARDED_BY(mu_) = 0;
  bool open_ SLUICE_GUARDED_BY(mu_) = false;
};

}  // namespace sluice::testing
