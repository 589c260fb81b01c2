// SPDX-License-Identifier: GPL-3.0-or-later
// The language model as serving sees it. A Model is immutable weights; a ModelContext is one thread's KV cache and scratch
// over it. Plain vectors only: no torch type crosses this header. tests/support/fake_model.h is a second implementation.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "model_api/adapter.h"

namespace sluice {

using TokenId = std::int32_t;

struct ModelInfo {
  std::string name;           // "SmolLM2-135M-Instruct", from the file's metadata or its name
  std::string architecture;   // "llama", "qwen2", "qwen3"
  std::string content_hash;   // hex digest that identifies the weights
  std::string quantisation;   // "Q4_1", ...
  int vocab_size = 0;
  int context_length = 0;     // positions the model was made for
  int hidden_size = 0;
  int layers = 0;
  std::int64_t parameters = 0;
  std::int64_t weight_bytes = 0;
};

// How one token is drawn. Bounds and defaults: serving.md §1.3; checked by the caller.
struct SamplingParams {
  float temperature = 1.0f;         // 0 = argmax
  float top_p = 1.0f;
  float min_p = 0.0f;
  int top_k = 0;                    // <= 0 or above the vocabulary = off
  float presence_penalty = 0.0f;    // generated tokens
  float frequency_penalty = 0.0f;   // generated tokens
  float repetition_penalty = 1.0f;  // prompt and generated tokens
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::uint64_t seed = 0;           // token t of a sequence uses draw t of a counter-based generator
  int min_tokens = 0;               // suppress_tokens may not be drawn before this many tokens
  std::vector<TokenId> suppress_tokens;
  int top_logprobs = -1;            // likeliest tokens to report; -1 = none
};

struct TopLogprob {
  TokenId token = 0;
  float logprob = 0;
};

// One sampled token. See learning.md §2.1 for lp_full and lp_mu.
struct SampledToken {
  TokenId token = 0;
  float lp_full = 0;   // log softmax(z / T)[token] over the whole vocabulary, raw logits (T = 1 when greedy)
  float lp_mu = 0;     // under the distribution really drawn from
  float lp_raw = 0;    // log softmax of the unmodified logits at T = 1: what the HTTP routes report
  bool finite = true;  // false: a logit was NaN or infinite; the request must fail
  std::vector<TopLogprob> top;  // by lp_raw, descending; top_logprobs entries
};

// A sequence's place in a context's KV cache. Never reused within a context.
struct SequenceHandle {
  std::int64_t value = -1;
  bool valid() const { return value >= 0; }
  auto operator<=>(const SequenceHandle&) const = default;
};

// What one sequence does in a step: feed `count` tokens that follow those already in its cache.
struct StepItem {
  SequenceHandle sequence;
  const TokenId* tokens = nullptr;  // valid during step() only
  int count = 0;                    // 1 = decode, more = a chunk of prefill
  bool sample = false;              // draw a token after the last one fed
  const SamplingParams* sampling = nullptr;     // set when sample
  const std::vector<TokenId>* generated = nullptr;  // tokens drawn so far (penalties, draw number); set when sample
  const std::vector<TokenId>* prompt = nullptr;     // for the repetition penalty; set when sample
  // For each of the `count` tokens report log softmax(z / score_temperature) of `score_targets[i]` given all before it.
  bool score = false;
  const TokenId* score_targets = nullptr;  // `count` ids: the token that follows each fed one
  float score_temperature = 1.0f;
  int score_top = -1;                      // likeliest alternatives per scored position; -1 = none
};

struct StepInput {
  std::vector<StepItem> items;  // at most one item per sequence
};

struct StepResult {
  SampledToken sampled;                        // when sample
  std::vector<float> scores;                   // when score: `count` values
  std::vector<std::vector<TopLogprob>> tops;   // when score_top >= 0: `count` lists
};

struct StepOutput {
  std::vector<StepResult> results;  // one per item, same order
};

struct KvUsage {
  std::int64_t tokens_capacity = 0;
  std::int64_t tokens_used = 0;  // held by open sequences
};

struct OpenOptions {
  OpenOptions(int reserve) : reserve_tokens(reserve) {}  // NOLINT: a bare number of positions is the common case
  OpenOptions(int reserve, bool only_exact) : reserve_tokens(reserve), exact(only_exact) {}

  int reserve_tokens;   // positions to hold room for at first; reserve() asks for more
  bool exact = false;   // share cached positions only among exact sequences: what they hold was computed in pieces of at
                        // most exact_rows() tokens, so that an answer is bit-equal whether or not its prefix was cached
};

struct OpenedSequence {
  SequenceHandle handle;
  int cached_tokens = 0;  // leading prompt tokens whose keys and values were already there; at most prompt.size() - 1
};

// KV cache + scratch; used by one thread at a time (the engine's).
class ModelContext {
 public:
  virtual ~ModelContext() = default;

  // Opens a sequence on an adapter (null = base). Finds the longest cached prefix for (version, tokens). kBusy when
  // there is no room for the prompt and `reserve_tokens` positions in all now.
  virtual Result<OpenedSequence> open(std::shared_ptr<const Adapter> adapter, const std::vector<TokenId>& prompt,
                                      OpenOptions options) = 0;
  // Makes sure of room for `tokens` positions in all. kBusy when there is none now, kInvalidArgument when there never is;
  // then the sequence stays as it was.
  virtual Status reserve(SequenceHandle sequence, int tokens) = 0;
  // Ends a sequence. keep_prefix: what it holds stays as reusable prefix until evicted; else nobody finds it again.
  virtual void close(SequenceHandle sequence, bool keep_prefix) = 0;
  void close(SequenceHandle sequence) { close(sequence, true); }
  // One forward pass over all items, whatever versions they use. Fails whole; then every sequence in it is unusable.
  // `output` is overwritten; handing in the same one each time saves its memory from being taken anew.
  virtual Status step(const StepInput& input, StepOutput& output) = 0;
  Result<StepOutput> step(const StepInput& input) {
    StepOutput output;
    SLUICE_RETURN_IF_ERROR(step(input, output));
    return output;
  }
  // Items of at most so many tokens have results that depend on no batch mate and on no way of cutting the prompt.
  virtual int exact_rows() const = 0;
  // No later open() finds anything that was cached before, open sequences' positions included.
  virtual void flush() = 0;
  virtual KvUsage usage() const = 0;
  // From the next step on, at most so many of ContextOptions::threads work. Changes no result.
  virtual void limit_threads(int threads) = 0;
};

struct ContextOptions {
  std::int64_t kv_tokens = 16384;  // positions over all sequences
  int threads = 1;                 // cores a step may use
  bool prefix_cache = true;
};

// Immutable after load, shared by all threads.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual std::unique_ptr<ModelContext> make_context(const ContextOptions& options) const = 0;
  virtual const AdapterLoader& adapter_loader() const = 0;
  // Hands the memory of the weights back to the system; whoever uses them next has them read again. Safe beside any use.
  virtual Status release_memory() const { return unavailable("the weights of this model can't leave memory"); }
};

}  // namespace sluice
