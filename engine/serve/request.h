// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine is asked for and what it sends back. Token ids only; text belongs to `chat`. Values, moved once.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/ids.h"
#include "base/passes.h"
#include "base/result.h"
#include "model_api/model.h"

namespace sluice {

enum class Priority { kLive, kGate, kBackground };  // live traffic goes first

enum class FinishReason { kStop, kLength, kCancelled, kError };
const char* finish_reason_name(FinishReason reason);

// Which adapter a sequence begins (and ends) with. The fields are private so that only the holder of a VersionPass can
// ask for a version that clients may not reach.
class AdapterChoice {
 public:
  // kServing: the version that serves at admission. kBase: no adapter. kVersion: a published version in state serving,
  // canary or retired, else kNotFound. kPass: any version, for the holder of a pass. kHeld: the very adapter that another
  // sequence runs on (ResponseStream::same_version), so that the choices of one exchange have one version.
  enum class Kind { kServing, kBase, kVersion, kPass, kHeld };

  AdapterChoice() = default;  // serving()
  static AdapterChoice serving() { return {}; }
  static AdapterChoice base() { return {Kind::kBase, kBaseVersion, nullptr}; }
  static AdapterChoice pinned(VersionId v) { return {Kind::kVersion, v, nullptr}; }
  static AdapterChoice with(const VersionPass& pass) { return {Kind::kPass, pass.version(), nullptr}; }

  Kind kind() const { return kind_; }
  VersionId version() const { return version_; }  // invalid for kServing
  const std::shared_ptr<const Adapter>& held() const { return held_; }  // kHeld; null = base

 private:
  friend class ResponseStream;
  AdapterChoice(Kind kind, VersionId version, std::shared_ptr<const Adapter> held)
      : kind_(kind), version_(version), held_(std::move(held)) {}

  Kind kind_ = Kind::kServing;
  VersionId version_;
  std::shared_ptr<const Adapter> held_;
};

// Lets one caller wait for whichever of several responses has news. Thread-safe.
class Wakeup {
 public:
  void signal() SLUICE_EXCLUDES(mu_);
  std::uint64_t count() const SLUICE_EXCLUDES(mu_);  // signals so far
  // Waits until there were more than `seen` signals; false when the deadline passed first.
  bool wait_past(std::uint64_t seen, SteadyTime deadline) SLUICE_EXCLUDES(mu_);

 private:
  mutable Mutex mu_;
  CondVar changed_;
  std::uint64_t count_ SLUICE_GUARDED_BY(mu_) = 0;
};

struct Request {
  std::vector<TokenId> prompt;            // not empty; shorter than the context
  AdapterChoice adapter;
  Priority priority = Priority::kLive;
  SamplingParams sampling;
  int max_tokens = 16;                    // 0 = nothing generated (scoring)
  std::vector<TokenId> stop_ids;          // end-of-generation ids; the sampled one is kept as the last token
  bool ignore_stop_ids = false;
  bool score_prompt = false;              // log-probs of prompt tokens 1..n-1
  float score_temperature = 1.0f;
  int score_top = -1;
  std::shared_ptr<Wakeup> wakeup;         // signalled at each event; may be null
};

// Checks the request against the model: prompt neither empty nor as long as `context_length`, every token id inside the
// vocabulary, sampling parameters within the bounds of serving.md 1.3. kInvalidArgument names the field.
Status check_request(const Request& request, const ModelInfo& model, int context_length);

// One event of a response: tokens in order, then exactly one end.
struct TokenEvent {
  enum class Kind { kToken, kEnd } kind = Kind::kToken;
  SampledToken token;                     // kToken
  FinishReason finish = FinishReason::kStop;  // kEnd
  Status error;                           // kEnd with finish kError
};

// Known from the first moment of a sequence's life in the engine; with score_prompt, from the end of its prefill.
struct StartInfo {
  VersionId version;
  std::shared_ptr<const Adapter> adapter;  // null = base
  int cached_tokens = 0;
  std::vector<float> prompt_scores;       // when score_prompt: one per prompt token from the second on
  std::vector<std::vector<TopLogprob>> prompt_tops;
};

struct Timings {
  std::int64_t queue_us = 0, prefill_us = 0, decode_us = 0;
};

}  // namespace sluice
