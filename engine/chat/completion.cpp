// SPDX-License-Identifier: GPL-3.0-or-later
#include "chat/completion.h"

#include <algorithm>

#include "chat/exchange.h"
#include "model_api/temperature.h"
#include "text/fim.h"
#include "text/utf8.h"

namespace sluice {
namespace {

constexpr int kMaxChoices = 16;
constexpr std::size_t kMaxStops = 16;
constexpr std::size_t kMaxStopIds = 64;
constexpr std::size_t kMaxStopChars = 256;
constexpr auto kPoll = std::chrono::milliseconds(50);  // how often a waiting caller asks whether its client is gone

// Far enough that nobody waits it out, near enough that clocks can add to it.
SteadyTime no_deadline() { return std::chrono::steady_clock::now() + std::chrono::hours(24 * 365); }

Status check(const CompletionRequest& request) {
  const int prompts = int{request.messages.has_value()} + int{request.prompt.has_value()} + int{request.prompt_ids.has_value()};
  if (prompts != 1) return invalid_argument("a request needs exactly one of messages, prompt and prompt ids");
  if (request.messages && (!request.more_prompts.empty() || request.suffix)) {
    return invalid_argument("messages can't have further prompts or a suffix beside them");
  }
  if (request.messages && request.messages->empty()) return invalid_argument("messages is empty: it must hold at least one");
  if (request.n < 1 || request.n > kMaxChoices) {
    return invalid_argument("n is " + std::to_string(request.n) + ", must be 1 to " + std::to_string(kMaxChoices));
  }
  if (request.max_tokens < -1) return invalid_argument("max_tokens is negative");
  if (request.stop.size() > kMaxStops) {
    return invalid_argument("stop has " + std::to_string(request.stop.size()) + " strings, at most " +
                            std::to_string(kMaxStops) + " are allowed");
  }
  for (const std::string& stop : request.stop) {
    if (stop.empty()) return invalid_argument("stop holds an empty string");
    if (count_code_points(stop) > kMaxStopChars) {
      return invalid_argument("stop holds a string of more than " + std::to_string(kMaxStopChars) + " characters");
    }
  }
  if (request.stop_token_ids.size() > kMaxStopIds) {
    return invalid_argument("stop_token_ids has " + std::to_string(request.stop_token_ids.size()) + " ids, at most " +
                            std::to_string(kMaxStopIds) + " are allowed");
  }
  return {};
}

Status check_room(std::size_t prompt_tokens, int context_length, PreparedPrompt& p, const CompletionRequest& request) {
  if (prompt_tokens >= static_cast<std::size_t>(context_length)) {
    return invalid_argument("This model's maximum context length is " + std::to_string(context_length) +
                            " tokens, but the prompt has " + std::to_string(prompt_tokens) +
                            " tokens. Shorten the prompt so that room is left for an answer.")
        .with(Reason::kContextLength, static_cast<std::int64_t>(prompt_tokens));
  }
  const int left = context_length - static_cast<int>(prompt_tokens);
  p.max_tokens = request.max_tokens < 0 ? left : std::min(request.max_tokens, left);
  return {};
}

Result<PreparedPrompt> render_messages(const ChatTemplate* chat_template, const Tokenizer& tokenizer,
                                       const CompletionRequest& request) {
  if (!chat_template) return invalid_argument("this model has no chat template: send a prompt instead of messages");
  PreparedPrompt p;
  Result<std::vector<Segment>> rendered = chat_template->render(*request.messages, request.render);
  if (!rendered.ok()) return Status(rendered.status()).with(Reason::kTemplate);
  const std::vector<Segment>& segments = *rendered;
  if (request.add_special.value_or(false)) {
    SLUICE_ASSIGN_OR_RETURN(p.ids, encode_segments(tokenizer, segments));
  } else {
    SLUICE_ASSIGN_OR_RETURN(p.ids, tokenizer.encode(segments));
  }
  p.text = prompt_text_of(*request.messages);
  if (request.echo) p.echo = join_segments(segments);
  return p;
}

// How many tokens a fill-in-the-middle prompt may have: the answer keeps its room, but never more than half the context.
std::size_t fim_room(const CompletionRequest& request, int context_length) {
  const int half = std::max(context_length / 2, 1);
  return static_cast<std::size_t>(context_length - (request.max_tokens < 0 ? half : std::clamp(request.max_tokens, 1, half)));
}

Result<PreparedPrompt> encode_text(const Tokenizer& tokenizer, const CompletionRequest& request, const std::string& text,
                                   int context_length) {
  PreparedPrompt p;
  p.text = text;
  if (request.suffix) {
    if (!request.fim) return invalid_argument("suffix is given, but no fill-in-the-middle markers");
    SLUICE_ASSIGN_OR_RETURN(FimPrompt made, make_fim_prompt(tokenizer, *request.fim, text, *request.suffix,
                                                            fim_room(request, context_length)));
    p.ids = std::move(made.ids);
  } else {
    const EncodeOptions options{.parse_special = request.parse_special, .add_special = request.add_special.value_or(true)};
    SLUICE_ASSIGN_OR_RETURN(p.ids, tokenizer.encode(text, options));
  }
  if (request.echo) p.echo = text;
  return p;
}

Result<PreparedPrompt> take_ids(const Tokenizer& tokenizer, const CompletionRequest& request,
                                const std::vector<TokenId>& ids, int context_length) {
  if (ids.empty()) return encode_text(tokenizer, request, "", context_length);
  for (const TokenId id : ids) {
    if (id >= 0 && id < tokenizer.size()) continue;
    return invalid_argument("prompt holds token id " + std::to_string(id) + "; the vocabulary has ids 0 to " +
                            std::to_string(tokenizer.size() - 1));
  }
  if (request.suffix) return invalid_argument("suffix needs a prompt of text, not of token ids");
  PreparedPrompt p;
  p.ids = ids;
  p.text = tokenizer.decode_text(ids, request.skip_special_tokens);
  if (request.echo) p.echo = p.text;
  return p;
}

Status add_prompt(Result<PreparedPrompt> made, int context_length, PreparedExchange& out) {
  if (!made.ok()) return made.status();
  PreparedPrompt p = std::move(made).value();
  if (p.ids.empty()) {
    return invalid_argument("the prompt is empty, and this model adds no token in front of it: send some text");
  }
  SLUICE_RETURN_IF_ERROR(check_room(p.ids.size(), context_length, p, out.request));
  out.prompts.push_back(std::move(p));
  return {};
}

Status fill_prompts(const ChatTemplate* chat_template, const Tokenizer& tokenizer, int context_length, PreparedExchange& p) {
  const CompletionRequest& request = p.request;
  if (request.messages) return add_prompt(render_messages(chat_template, tokenizer, request), context_length, p);
  const auto add_text = [&](const std::string& text) {
    return add_prompt(encode_text(tokenizer, request, text, context_length), context_length, p);
  };
  const auto add_ids = [&](const std::vector<TokenId>& ids) {
    return add_prompt(take_ids(tokenizer, request, ids, context_length), context_length, p);
  };
  SLUICE_RETURN_IF_ERROR(request.prompt ? add_text(*request.prompt) : add_ids(*request.prompt_ids));
  for (const auto& more : request.more_prompts) {
    const auto* text = std::get_if<std::string>(&more);
    SLUICE_RETURN_IF_ERROR(text ? add_text(*text) : add_ids(std::get<std::vector<TokenId>>(more)));
  }
  return {};
}

// EOS unless ignored, the ids asked for, and stop strings that are one special token's text.
void fill_stops(const Tokenizer& tokenizer, PreparedExchange& p) {
  for (const TokenId id : p.request.stop_token_ids) p.stop_reasons.emplace_back(id, "");
  for (const std::string& stop : p.request.stop) {
    if (const auto id = tokenizer.special_id(stop)) p.stop_reasons.emplace_back(*id, stop);
  }
  for (const auto& [id, reason] : p.stop_reasons) p.stop_ids.push_back(id);
  const bool ignore = p.request.ignore_eos;
  const auto& ends = tokenizer.end_of_generation();
  if (!ignore) p.stop_ids.insert(p.stop_ids.end(), ends.begin(), ends.end());
  if (p.request.suffix && p.request.fim) {
    for (const TokenId id : p.request.fim->stop_ids) {
      if (!ignore || !tokenizer.is_end_of_generation(id)) p.stop_ids.push_back(id);
    }
  }
  SamplingParams& sampling = p.request.sampling;
  if (sampling.min_tokens <= 0) return;
  sampling.suppress_tokens.insert(sampling.suppress_tokens.end(), p.stop_ids.begin(), p.stop_ids.end());
}

// What a main turn begins with is what the judge reads of the turn before.
Status keep_next_state(const PreparedExchange& p) {
  const CompletionRequest& r = p.request;
  if (p.store == nullptr || !r.store_text || r.turn != "main" || r.conversation.empty() || !r.messages) return {};
  const std::string list = messages_json({r.messages->back()});
  const Result<bool> kept = p.store->add_next_state(r.session, r.conversation, list.substr(1, list.size() - 2));
  return kept.ok() ? Status() : unavailable("store unavailable: " + kept.status().message());
}

Result<StartInfo> wait_started(ResponseHandle& stream, const std::function<bool()>& gone) {
  if (!gone) return stream->wait_started(no_deadline());
  while (true) {
    Result<StartInfo> start = stream->wait_started(std::chrono::steady_clock::now() + kPoll);
    if (start.code() != Code::kDeadline) return start;
    if (gone()) return cancelled("the client went away while its request waited");
  }
}

}  // namespace

CompletionService::CompletionService(Generator& generator, std::shared_ptr<const Tokenizer> tokenizer,
                                     std::shared_ptr<const ChatTemplate> chat_template, Store* store, NameOf name_of,
                                     const Clock& clock)
    : generator_(generator),
      tokenizer_(std::move(tokenizer)),
      chat_template_(std::move(chat_template)),
      store_(store),
      name_of_(std::move(name_of)),
      clock_(clock) {}

Result<std::unique_ptr<Exchange>> CompletionService::start(CompletionRequest request, const std::function<bool()>& gone) {
  SLUICE_RETURN_IF_ERROR(check(request));
  request.sampling.temperature = usable_temperature(request.sampling.temperature);  // the record says what was drawn with
  PreparedExchange p;
  p.id = RecordId::make();
  p.received_us = clock_.wall_us();
  p.tokenizer = tokenizer_;
  p.store = request.store_record ? store_ : nullptr;
  p.request = std::move(request);
  SLUICE_RETURN_IF_ERROR(fill_prompts(chat_template_.get(), *tokenizer_, generator_.context_length(), p));
  fill_stops(*tokenizer_, p);

  const auto wakeup = std::make_shared<Wakeup>();
  Request request_of_first = p.engine_request(0, 0);
  request_of_first.wakeup = wakeup;
  SLUICE_ASSIGN_OR_RETURN(ResponseHandle first, generator_.submit(std::move(request_of_first)));
  SLUICE_RETURN_IF_ERROR(keep_next_state(p));  // while the engine reads the prompt; a refused request leaves nothing behind
  SLUICE_ASSIGN_OR_RETURN(const StartInfo started, wait_started(first, gone));
  return std::unique_ptr<Exchange>(std::make_unique<LocalExchange>(std::move(p), generator_, std::move(first), started,
                                                                   name_of_(started.version), wakeup));
}

Result<Completion> CompletionService::complete(CompletionRequest request, const std::atomic<bool>* cancel) {
  const std::function<bool()> gone = [cancel] { return cancel->load(); };
  SLUICE_ASSIGN_OR_RETURN(const std::unique_ptr<Exchange> exchange,
                          start(std::move(request), cancel ? gone : std::function<bool()>()));
  Completion out;
  Status error;
  bool cancelled_here = false;
  while (!exchange->done()) {
    const auto event = exchange->next(cancel ? std::chrono::steady_clock::now() + kPoll : no_deadline());
    if (cancel && !cancelled_here && cancel->load()) {
      exchange->cancel();
      cancelled_here = true;
    }
    if (!event) continue;
    if (event->kind == TextEvent::Kind::kText) {
      if (event->choice == 0) out.text += event->text;
      continue;
    }
    if (event->choice == 0) out.finish = event->finish;
    if (error.ok() && event->finish == FinishReason::kError) error = event->error;
    if (error.ok() && event->finish == FinishReason::kCancelled) error = cancelled("the completion was cancelled");
  }
  if (!error.ok()) return error;
  out.record = exchange->record_id();
  out.version = exchange->version();
  out.adapter_name = exchange->adapter_name();
  out.seed = exchange->seed();
  out.prompt_ids = exchange->prompt_ids();
  out.token_ids = exchange->choice(0).token_ids;
  out.lp_full = exchange->choice(0).lp_full;
  out.usage = exchange->usage();
  return out;
}

Result<std::vector<float>> CompletionService::score(const std::vector<TokenId>& ids, int prompt_len, float temperature,
                                                    AdapterChoice adapter) {
  if (prompt_len < 1 || static_cast<std::size_t>(prompt_len) > ids.size()) {
    return invalid_argument("prompt_len is " + std::to_string(prompt_len) + ", must be 1 to the number of ids (" +
                            std::to_string(ids.size()) + ")");
  }
  Request r;
  r.prompt = ids;
  r.adapter = std::move(adapter);
  r.priority = Priority::kGate;
  r.max_tokens = 0;
  r.score_prompt = true;
  r.score_temperature = temperature;
  SLUICE_ASSIGN_OR_RETURN(ResponseHandle stream, generator_.submit(std::move(r)));
  SLUICE_ASSIGN_OR_RETURN(StartInfo started, stream->wait_started(no_deadline()));
  std::vector<float>& scores = started.prompt_scores;
  scores.erase(scores.begin(), scores.begin() + (prompt_len - 1));
  return std::move(scores);
}

}  // namespace sluice
