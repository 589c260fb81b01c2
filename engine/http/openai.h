// SPDX-License-Identifier: GPL-3.0-or-later
// The OpenAI wire format: request JSON -> CompletionRequest (serving.md §1.3), answers and chunks -> JSON (§1.4-1.6).
// Pure functions and a writer used by one thread. JSON crosses as text.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chat/completion.h"
#include "http/control.h"
#include "http/http_types.h"
#include "http/tool_calls.h"

namespace sluice {

enum class OpenAiRoute { kText, kChat, kFim };
const char* openai_route_name(OpenAiRoute route);  // "completions", "chat", "fim": in records and metrics

struct OpenAiCall {
  OpenAiRoute route = OpenAiRoute::kText;
  std::string model;                        // as asked; "" = default
  CompletionRequest request;                // adapter, session and split not filled
  bool stream = false;
  bool include_usage = false;
  int logprobs = -1;                        // alternatives asked for; -1 = none wanted
  bool return_token_ids = false;
  int prompt_logprobs = -1;
  bool tool_calls = false;                  // <tool_call> blocks of the answer become calls
  std::string conversation, pin;            // of the body

  bool chat_shape() const { return route != OpenAiRoute::kText; }
};

// What requests are read against.
struct OpenAiModel {
  const Tokenizer& tokenizer;
  const ChatTemplate* chat_template = nullptr;            // null: none
  std::optional<std::array<std::string, 3>> fim_markers;  // of the recipe, for models without their own
  // Of the recipe, where fields of text completions that are absent are its to say; else those of serving.md §1.3.
  std::optional<SamplingDefaults> defaults;
};

// Everything but the model's existence is checked here.
std::optional<ApiError> parse_openai_call(const HttpRequest& request, OpenAiRoute route, const OpenAiModel& model,
                                          OpenAiCall* call);

// What stays the same through an answer.
struct AnswerFacts {
  std::string id;                // "chatcmpl-..." or "cmpl-..."
  std::int64_t created_s = 0;
  std::string model;             // as asked, else the default's id
  std::string fingerprint;
  std::string conversation;
};

// An answer as its events come: either as the chunks of a stream or as one body.
class AnswerWriter {
 public:
  AnswerWriter(const OpenAiCall& call, const AnswerFacts& facts, const Exchange& exchange);

  // One event of the exchange as the data of SSE events, often none (no text yet) or one.
  std::vector<std::string> chunks(const TextEvent& event);
  // The chunk after the last finish chunk, when usage was asked for.
  std::string usage_chunk() const;
  // The chunk before the end of a stream for clients that sent x-reef-scenario.
  std::string reef_chunk() const;

  // For answers that are not streamed: all events, then the body.
  void collect(const TextEvent& event);
  std::string body();

  // "stop", "length" or "tool_calls", once the choice has ended.
  const char* finish_reason(int choice) const;

 private:
  struct Choice {
    std::string text;
    ToolCallReader reader;
    std::vector<ToolCall> calls;
    std::size_t calls_sent = 0;
    std::vector<TokenLogprob> logprobs;  // not written yet
    std::size_t characters = 0;          // of the text so far, the echo included
    std::size_t echo_characters = 0;
    bool echo_due = false;               // its prompt's log-probs were not written yet
    bool opened = false;
    FinishReason finish = FinishReason::kStop;
  };

  std::string take(Choice& choice, const TextEvent& event);
  Choice& choice_of(const TextEvent& event) { return choices_[static_cast<std::size_t>(event.choice)]; }
  int prompt_of(int choice) const { return choice / call_.request.n; }

  friend struct AnswerJson;  // writes the parts, in the .cpp, where the JSON library is known

  const OpenAiCall& call_;
  const AnswerFacts& facts_;
  const Exchange& exchange_;
  std::vector<Choice> choices_;
};

// An error of chat or serve as the API tells it.
ApiError completion_error(const Status& status, int context_length);

}  // namespace sluice
