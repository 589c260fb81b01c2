// SPDX-License-Identifier: GPL-3.0-or-later
// Messages or a prompt in, text events out, a durable record before the end is told. Window, HTTP server, gate and judge all
// come through here. Runs on the caller's thread: template, encode, decode, stop strings, the record.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "serve/generator.h"
#include "store/rows.h"
#include "store/store.h"
#include "text/chat_template.h"
#include "text/fim.h"
#include "text/tokenizer.h"

namespace sluice {

struct CompletionRequest {
  // Exactly one of these.
  std::optional<std::vector<ChatMessage>> messages;
  std::optional<std::string> prompt;
  std::optional<std::vector<TokenId>> prompt_ids;
  // Answered beside `prompt` or `prompt_ids`, in one exchange with one record. Choice c of prompt p is choice p * n + c.
  std::vector<std::variant<std::string, std::vector<TokenId>>> more_prompts;
  // Text prompts only: each is the code before the cursor, this the code behind it; what is too long is cut.
  std::optional<std::string> suffix;
  std::optional<FimFormat> fim;            // the markers to use; set when `suffix` is

  RenderOptions render;                    // messages only
  std::string prompt_json;                 // the messages as sent, for the record; "" = written from `messages`
  bool parse_special = true;               // prompt only: markers in the text become their tokens
  std::optional<bool> add_special;         // BOS where the model adds one; unset: for text, not for messages (their
                                           // template writes it)

  SamplingParams sampling;                 // seed is used as given; choice i adds i
  int max_tokens = -1;                     // -1 = rest of the context; clamped to the space left
  int n = 1;
  std::vector<std::string> stop;
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  bool echo = false;
  bool want_logprobs = false;              // fills TextEvent::logprobs
  int prompt_logprobs = -1;                // >= 0: prompt log-probs with that many alternatives
  bool skip_special_tokens = true;

  AdapterChoice adapter;
  Priority priority = Priority::kLive;

  // What the record says besides.
  Purpose purpose = Purpose::kLive;
  Split split = Split::kTrain;
  SessionId session;
  std::string conversation, group_key, route, user;
  std::string metadata_json;               // the client's own object, or ""
  // As in RecordRow. The messages of a main turn end with the next state of the conversation's turn before.
  std::string turn, stream, tags_json;
  bool stream_holds = false;               // the stream answers itself: RecordRow::holds
  bool conversation_done = false;
  // false: the record keeps ids and version, no text of the client. What places it stays: conversation, group_key and stream,
  // by which turns find each other and the split stays clean.
  bool store_text = true;
  bool store_record = true;                // false only for tools without a workspace (`generate`)
};

struct TokenLogprob {
  TokenId token = 0;
  std::string piece;                       // raw bytes
  float logprob = 0;                       // of the unmodified logits
  std::size_t offset = 0;                  // characters of text before it: of the echo's, or of the answer's
  std::vector<std::pair<std::string, float>> top;
};

// kText: text that became certain. kFinish: one per choice, its last event; no text.
struct TextEvent {
  enum class Kind { kText, kFinish } kind = Kind::kText;
  int choice = 0;
  std::string text;                        // whole code points only
  bool echo = false;                       // the text is the prompt's, asked for by `echo`
  std::vector<TokenLogprob> logprobs;      // where wanted: of the tokens since the last event, those without text included
  // kFinish
  FinishReason finish = FinishReason::kStop;
  std::string stop_reason;                 // the stop string or id that ended it; "" for EOS and length
  TokenId stop_id = -1;                    // >= 0: stop_reason is this id, asked for by stop_token_ids
  Status error;                            // finish kError
};

// One choice as it is kept. Whole once its kFinish was returned.
struct ChoiceResult {
  std::string text;                // as the client got it, the echo aside
  std::vector<TokenId> token_ids;  // through the one that ended it: EOS, or the one that completed a stop string
  std::vector<float> lp_full, lp_mu;  // one per token id
  FinishReason finish = FinishReason::kCancelled;
  std::string stop_reason;
  TokenId stop_id = -1;            // as in TextEvent
};

struct CompletionUsage {
  int prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
};

// One exchange in flight. Used by one thread. Its destructor cancels what still runs and commits the record as incomplete.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual const RecordId& record_id() const = 0;
  virtual VersionId version() const = 0;            // fixed at admission
  virtual const std::string& adapter_name() const = 0;  // "be-brief@3" or "base"
  virtual std::uint64_t seed() const = 0;
  virtual const std::vector<TokenId>& prompt_ids(int prompt = 0) const = 0;
  // Where wanted; known from the first event of one of the prompt's choices. The first token's is not defined.
  virtual const std::vector<TokenLogprob>& prompt_logprobs(int prompt = 0) const = 0;
  // Next event of any choice; empty when the deadline passed first. All choices have one record, so the kFinish of one that
  // ended early comes when all have ended and the record is committed; if that commit fails, each carries kUnavailable
  // ("store unavailable"). A failed choice (kError) is told at once.
  virtual std::optional<TextEvent> next(SteadyTime deadline) = 0;
  virtual bool done() const = 0;
  virtual void cancel() = 0;
  virtual CompletionUsage usage() const = 0;
  virtual const ChoiceResult& choice(int index) const = 0;  // 0 <= index < prompts * n
};

// A whole answer, for callers that do not stream.
struct Completion {
  RecordId record;
  VersionId version;
  std::string adapter_name;
  std::uint64_t seed = 0;
  std::string text;                        // of choice 0
  std::vector<TokenId> prompt_ids, token_ids;
  std::vector<float> lp_full;
  FinishReason finish = FinishReason::kStop;
  CompletionUsage usage;
};

class CompletionService {
 public:
  // version -> name on the wire ("be-brief@3"); version 0 -> "base".
  using NameOf = std::function<std::string(VersionId)>;

  CompletionService(Generator& generator, std::shared_ptr<const Tokenizer> tokenizer,
                    std::shared_ptr<const ChatTemplate> chat_template, Store* store, NameOf name_of, const Clock& clock);

  // Returns once the first sequence was admitted and the version is fixed. Errors: kInvalidArgument (template: kTemplate; empty
  // prompt; prompt as long as the context: kContextLength, "maximum context length is N tokens"), kBusy, kNotFound,
  // kUnavailable.
  // `gone`, when given, is asked now and then while the request waits; true ends the wait with kCancelled.
  Result<std::unique_ptr<Exchange>> start(CompletionRequest request, const std::function<bool()>& gone = nullptr);
  // start() and drain. `cancel`, when given and set, ends it early.
  Result<Completion> complete(CompletionRequest request, const std::atomic<bool>* cancel = nullptr);
  // Log-probs of `ids` (those after the first `prompt_len`) at temperature T under the chosen version; nothing is stored.
  Result<std::vector<float>> score(const std::vector<TokenId>& ids, int prompt_len, float temperature, AdapterChoice adapter);

  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatTemplate* chat_template() const { return chat_template_.get(); }  // null: the model can't chat
  int context_length() const { return generator_.context_length(); }

 private:
  Generator& generator_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::shared_ptr<const ChatTemplate> chat_template_;
  Store* store_;
  NameOf name_of_;
  const Clock& clock_;
};

}  // namespace sluice
