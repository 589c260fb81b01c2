// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI wire format: request JSON -> CompletionRequest (serving.md §1.3), answers and chunks -> JSON (§1.4-1.6).
// Pure functions and a writer used by one thread. JSON crosses as text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/completion.h"
#include "http/http_types.h"

namespace sluice {

struct OpenAiCall {
  bool chat = false;
  std::string model;                        // as asked; "" = default
  std::vector<CompletionRequest> requests;  // one per prompt, alike but for it; adapter, session and split not filled
  bool stream = false;
  bool include_usage = false;
  int logprobs = -1;                        // alternatives asked for; -1 = none wanted
  bool return_token_ids = false;
  int prompt_logprobs = -1;
  std::string conversation, pin;            // of the body
};

// Everything but the model's existence is checked here.
std::optional<ApiError> parse_openai_call(const HttpRequest& request, bool chat, const Tokenizer& tokenizer,
                                          OpenAiCall* call);

// What stays the same through an answer.
struct AnswerFacts {
  std::string id;                // "chatcmpl-..." or "cmpl-..."
  std::int64_t created_s = 0;
  std::string model;             // as asked, else the default's id
  std::string fingerprint;
  std::string conversation;
};

// The choices of one prompt, as they come.
class AnswerWriter {
 public:
  // `first_index`: index of the prompt's first choice among all choices.
  AnswerWriter(const OpenAiCall& call, const AnswerFacts& facts, const Exchange& exchange, int first_index);

  // One event of the exchange as the data of one SSE event; "" when there is nothing to send. Also collects for body().
  std::string chunk(const TextEvent& event);
  // For answers that are not streamed.
  void collect(const TextEvent& event);
  // The members of "choices", comma between, once all events were collected.
  std::string choices_json() const;

 private:
  struct Choice {
    std::string text;
    std::vector<TokenLogprob> logprobs;
    std::size_t offset = 0;      // characters of text before the next log-prob's token
    bool opened = false;
    FinishReason finish = FinishReason::kStop;
    std::string stop_reason;
  };

  const OpenAiCall& call_;
  const AnswerFacts& facts_;
  const Exchange& exchange_;
  const int first_index_;
  std::vector<Choice> choices_;
};

// {"record_id","adapter","version","session","seed"}; record_ids besides when there are several prompts.
std::string receipt_json(const std::vector<const Exchange*>& exchanges, SessionId session);
// The whole body. `choices`: choices_json() of each prompt, in order.
std::string answer_json(const OpenAiCall& call, const AnswerFacts& facts, const std::vector<std::string>& choices,
                        const CompletionUsage& usage, const std::string& receipt);
// The chunk after the last finish chunk, when usage was asked for.
std::string usage_chunk(const OpenAiCall& call, const AnswerFacts& facts, const CompletionUsage& usage);

// An error of chat or serve as the API tells it.
ApiError completion_error(const Status& status, int context_length);

}  // namespace sluice
