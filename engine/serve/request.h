// SPDX-License-Identifier: GPL-3.0-or-later
// What the engine is asked for and what it sends back. Token ids only; text belongs to `chat`. Values, moved once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/passes.h"
#include "model_api/model.h"

namespace sluice {

enum class Priority { kLive, kGate, kBackground };  // live traffic goes first

enum class FinishReason { kStop, kLength, kCancelled, kError };
const char* finish_reason_name(FinishReason reason);

// Which adapter a sequence begins (and ends) with.
struct AdapterChoice {
  // kServing: the version that serves at admission. kBase: no adapter. kVersion: a published version in state serving,
  // canary or retired, else kNotFound. kPass: any version, for the holder of a pass.
  enum class Kind { kServing, kBase, kVersion, kPass } kind = Kind::kServing;
  VersionId version;
  std::optional<VersionPass> pass;

  static AdapterChoice serving() { return {}; }
  static AdapterChoice base() { return {Kind::kBase, kBaseVersion, std::nullopt}; }
  static AdapterChoice pinned(VersionId v) { return {Kind::kVersion, v, std::nullopt}; }
  static AdapterChoice with(VersionPass p) { return {Kind::kPass, p.version(), p}; }
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
};

// One event of a response: tokens in order, then exactly one end.
struct TokenEvent {
  enum class Kind { kToken, kEnd } kind = Kind::kToken;
  SampledToken token;                     // kToken
  FinishReason finish = FinishReason::kStop;  // kEnd
  Status error;                           // kEnd with finish kError
};

// Known from the first moment of a sequence's life in the engine.
struct StartInfo {
  VersionId version;
  int cached_tokens = 0;
  std::vector<float> prompt_scores;       // when score_prompt: one per prompt token from the second on
  std::vector<std::vector<TopLogprob>> prompt_tops;
};

struct Timings {
  std::int64_t queue_us = 0, prefill_us = 0, decode_us = 0;
};

}  // namespace sluice
