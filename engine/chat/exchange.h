// SPDX-License-Identifier: GPL-3.0-or-later
// The Exchange over the engine's response streams: token ids to text, stop strings, and the record. Used by one thread.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chat/completion.h"
#include "chat/record_builder.h"
#include "chat/stop_strings.h"

namespace sluice {

struct PreparedPrompt {
  std::vector<TokenId> ids;
  std::string text;                        // for the record
  std::string echo;                        // "" unless the request wants the echo
  int max_tokens = 0;                      // clamped
};

// What start() found out before anything ran.
struct PreparedExchange {
  CompletionRequest request;
  RecordId id;
  std::vector<PreparedPrompt> prompts;     // at least one
  // Stop ids that are told: the stop string which is that one token's text; "" where the id itself was asked for.
  std::vector<std::pair<TokenId, std::string>> stop_reasons;
  std::vector<TokenId> stop_ids;
  std::int64_t received_us = 0;
  std::shared_ptr<const Tokenizer> tokenizer;
  Store* store = nullptr;                  // null: nothing is recorded

  // The engine's request for one choice of one prompt; the first scores the prompt where that is wanted.
  Request engine_request(std::size_t prompt, int choice) const;
};

class LocalExchange final : public Exchange {
 public:
  // `first`: the started stream of choice 0 of prompt 0. The others are submitted here, a bounded number at a time so that
  // one request does not fill the queue, all for the version of the first. `wakeup` is the one that all carry.
  LocalExchange(PreparedExchange prepared, Generator& generator, ResponseHandle first, const StartInfo& start,
                std::string adapter_name, std::shared_ptr<Wakeup> wakeup);
  ~LocalExchange() override;

  const RecordId& record_id() const override { return facts_.id; }
  VersionId version() const override { return version_; }
  const std::string& adapter_name() const override { return adapter_name_; }
  std::uint64_t seed() const override { return facts_.request.sampling.seed; }
  const std::vector<TokenId>& prompt_ids(int prompt) const override { return facts_.prompts[index_of(prompt)].ids; }
  const std::vector<TokenLogprob>& prompt_logprobs(int prompt) const override { return prompts_[index_of(prompt)].logprobs; }
  std::optional<TextEvent> next(SteadyTime deadline) override;
  bool done() const override { return finishes_left_ == 0; }
  void cancel() override;
  CompletionUsage usage() const override;
  const ChoiceResult& choice(int index) const override;

 private:
  struct Prompt {
    bool begun = false;
    int cached_tokens = 0;
    std::vector<TokenLogprob> logprobs;
  };
  // What one sequence makes; stands for all choices of its prompt when they are equal (temperature 0).
  struct Choice {
    explicit Choice(const PreparedExchange& facts);

    ResponseHandle stream;               // empty until submitted
    StreamDecoder decoder;
    std::size_t decoded = 0;             // characters that came out of it
    StopStrings stops;
    ChoiceResult result;
    std::vector<TokenLogprob> logprobs;  // of tokens whose text has not gone out
    bool ended = false;
    Timings timings;
  };

  static std::size_t index_of(int value) { return static_cast<std::size_t>(value); }
  std::size_t prompt_of(std::size_t choice) const { return choice / per_prompt_; }
  void submit_more();
  bool prompt_begun(std::size_t prompt);
  void begin_prompt(std::size_t prompt, const StartInfo& start);
  bool take_news();
  void take(std::size_t index, TokenEvent event);
  void take_token(std::size_t index, const SampledToken& token);
  void emit(std::size_t index, std::string text);
  void finish(std::size_t index, FinishReason reason, const std::string& stop_reason, TokenId stop_id, const Status& error);
  // Queues the event for each choice that the sequence stands for.
  void announce(std::size_t index, TextEvent event, std::deque<TextEvent>& queue) const;
  void release_ends();
  std::pair<std::string, TokenId> stop_reason_of(TokenId token) const;
  TokenLogprob logprob_of(TokenId token, float logprob, std::size_t offset, const std::vector<TopLogprob>& top) const;
  Status commit(bool complete);

  PreparedExchange facts_;
  Generator& generator_;
  const std::size_t per_prompt_;  // sequences of one prompt
  const VersionId version_;
  const std::string adapter_name_;
  const std::shared_ptr<Wakeup> wakeup_;
  std::vector<Prompt> prompts_;
  std::vector<Choice> choices_;   // sequences: prompts * per_prompt_
  std::size_t submitted_ = 1;     // choices_ from here on have no stream yet
  std::size_t ended_ = 0;         // of those submitted
  std::deque<TextEvent> ready_;
  std::deque<TextEvent> ends_;    // told when all have ended and the record is committed
  int finishes_left_;             // kFinish events the caller has not taken yet
  bool cancelled_ = false;
  bool committed_ = false;
};

}  // namespace sluice
