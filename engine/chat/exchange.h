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

// What start() found out before anything ran.
struct PreparedExchange {
  CompletionRequest request;
  RecordId id;
  std::vector<TokenId> prompt_ids;
  std::string prompt_text;                 // for the record
  std::string echo_text;                   // "" unless the request wants the echo
  std::vector<std::pair<TokenId, std::string>> stop_reasons;  // stop ids that are not EOS -> what to report
  std::vector<TokenId> stop_ids;
  int max_tokens = 0;
  std::int64_t received_us = 0;
  std::shared_ptr<const Tokenizer> tokenizer;
  Store* store = nullptr;                  // null: nothing is recorded
};

class LocalExchange final : public Exchange {
 public:
  // One stream per choice; a single one for several choices when all are equal (temperature 0). All are started and of
  // one version. `wakeup` is the one their requests carry.
  LocalExchange(PreparedExchange prepared, std::vector<ResponseHandle> streams, const StartInfo& start,
                std::string adapter_name, std::shared_ptr<Wakeup> wakeup);
  ~LocalExchange() override;

  const RecordId& record_id() const override { return facts_.id; }
  VersionId version() const override { return version_; }
  const std::string& adapter_name() const override { return adapter_name_; }
  std::uint64_t seed() const override { return facts_.request.sampling.seed; }
  const std::vector<TokenId>& prompt_ids() const override { return facts_.prompt_ids; }
  const std::vector<TokenLogprob>& prompt_logprobs() const override { return prompt_logprobs_; }
  std::optional<TextEvent> next(SteadyTime deadline) override;
  bool done() const override { return finishes_left_ == 0; }
  void cancel() override;
  CompletionUsage usage() const override;
  const ChoiceResult& choice(int index) const override;

 private:
  struct Choice {
    Choice(ResponseHandle s, const PreparedExchange& facts);

    ResponseHandle stream;
    StreamDecoder decoder;
    StopStrings stops;
    ChoiceResult result;
    std::vector<TokenLogprob> logprobs;  // of tokens whose text has not gone out
    bool ended = false;
    Timings timings;
  };

  void fill_prompt_logprobs(const StartInfo& start);
  void take(std::size_t index, TokenEvent event);
  void take_token(std::size_t index, const SampledToken& token);
  void emit(std::size_t index, std::string text);
  void finish(std::size_t index, FinishReason reason, std::string stop_reason, const Status& error);
  void announce(std::size_t index, TextEvent event);
  std::string stop_reason_of(TokenId token) const;
  TokenLogprob logprob_of(TokenId token, float logprob, const std::vector<TopLogprob>& top) const;
  Status commit(bool complete);

  PreparedExchange facts_;
  const VersionId version_;
  const std::string adapter_name_;
  const int cached_tokens_;
  const std::shared_ptr<Wakeup> wakeup_;
  std::vector<TokenLogprob> prompt_logprobs_;
  std::vector<Choice> choices_;
  std::deque<TextEvent> ready_;
  int finishes_left_;     // kFinish events the caller has not taken yet
  bool cancelled_ = false;
  bool committed_ = false;
};

}  // namespace sluice
